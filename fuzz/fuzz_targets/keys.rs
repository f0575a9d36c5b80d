//! Keys: what is read as a key prints as it was, and equal, hashed and ordered alike are the same.
#![no_main]

use std::collections::HashSet;

use kubewire_indexer::{ObjectKey, compare_versions, split_key};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str)| {
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
});
