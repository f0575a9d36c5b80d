//! Keys: what is read as a key prints as it was, and equal, hashed and ordered alike are the same.

use std::collections::HashSet;

use kubewire_indexer::{ObjectKey, compare_versions, split_key};

/// A text to read; a namespace and a name, also taken for versions.
pub type Input<'a> = (&'a str, &'a str, &'a str);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (text, namespace, name) = input;
    match text.parse::<ObjectKey>() {
        Ok(key) => {
            assert_eq!(split_key(text), Ok((key.namespace(), key.name())));
            assert_eq!(key.to_string(), text.strip_prefix('/').unwrap_or(text));
        }
        Err(_) => assert!(text.matches('/').count() > 1),
    }
    let (one, other) = (ObjectKey::new(namespace, name), ObjectKey::new(name, namespace));
    assert_eq!((one.namespace(), one.name()), (namespace, name));
    assert_eq!(one == other, namespace == name);
    assert_eq!(one.cmp(&other), (namespace, name).cmp(&(name, namespace)));
    assert!(HashSet::from([one.clone()]).contains(&one));
    if let Some(order) = compare_versions(namespace, name) {
        assert_eq!(compare_versions(name, namespace), Some(order.reverse()));
        if let (Ok(namespace), Ok(name)) = (namespace.parse::<u128>(), name.parse::<u128>()) {
            assert_eq!(namespace.cmp(&name), order);
        }
    }
}
