//! Keys and their texts.

use std::hash::BuildHasher;

use kubewire_indexer::{Equivalent, KeyError, ObjectKey, Store, split_key};
use proptest::prelude::*;

#[test]
fn odd_keys_split_as_client_go_splits_them() {
    // text | namespace | name
    let rows = [
        ("ns/a", "ns", "a"),
        ("a", "", "a"),
        ("/a", "", "a"),
        ("a/", "a", ""),
        ("", "", ""),
        ("/", "", ""),
        ("..", "", ".."),
        ("%2e/a%b", "%2e", "a%b"),
        ("a?x=1/b#c", "a?x=1", "b#c"),
        ("system:node", "", "system:node"),
    ];
    for (text, namespace, name) in rows {
        assert_eq!(split_key(text), Ok((namespace, name)), "{text:?}");
        let key: ObjectKey = text.parse().unwrap();
        assert_eq!((key.namespace(), key.name()), (namespace, name), "{text:?}");
    }
    for text in ["a/b/c", "//", "a//b", "/a/b", "a/b/"] {
        assert_eq!(split_key(text), Err(KeyError::Format(text.to_owned())));
        assert!(text.parse::<ObjectKey>().is_err());
    }
    let error = "a/b/c".parse::<ObjectKey>().unwrap_err().to_string();
    assert_eq!(error, r#"unexpected key format "a/b/c": want `namespace/name`, or `name` for cluster scope"#);
}

#[test]
fn a_key_with_a_slash_in_a_part_prints_joined_and_is_no_other_key() {
    let keys = [ObjectKey::new("a", "b/c"), ObjectKey::new("a/b", "c"), ObjectKey::new("", "a/b/c")];
    assert!(keys.iter().all(|key| key.to_string() == "a/b/c"));
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert_eq!((keys[1].namespace(), keys[1].name()), ("a/b", "c"));
}

#[test]
fn a_key_fills_one_cache_line() {
    assert_eq!(size_of::<ObjectKey>(), 64);
    assert_eq!(size_of::<Option<ObjectKey>>(), 64);
    assert_eq!(size_of::<kubewire_indexer::ObjectId>(), 88);
}

#[test]
fn a_key_is_the_same_however_long_it_is() {
    for len in [1, 20, 47, 48, 49, 56, 57, 253] {
        for namespace in ["", "default", &"n".repeat(63)] {
            let name = "x".repeat(len);
            let key = ObjectKey::new(namespace, &name);
            assert_eq!((key.namespace(), key.name()), (namespace, &*name));
            assert_eq!(key.to_string().parse(), Ok(key.clone()));
            assert_ne!(key, ObjectKey::new(namespace, &"x".repeat(len - 1)));
            let store = Store::new();
            store.add(key, len);
            assert_eq!(store.get(&(namespace, &*name)), Some(len));
        }
    }
}

proptest! {
    #[test]
    fn a_printed_key_parses_to_itself(namespace in "[^/]{0,12}", name in "[^/]{0,12}") {
        let key = ObjectKey::new(&namespace, &name);
        prop_assert_eq!(key.to_string().parse::<ObjectKey>(), Ok(key.clone()));
        prop_assert_eq!((key.namespace(), key.name()), (&*namespace, &*name));
    }

    #[test]
    fn a_pair_finds_its_key_and_no_other(a in "[a/]{0,4}", b in "[a/]{0,4}", c in "[a/]{0,4}", d in "[a/]{0,4}") {
        let key = ObjectKey::new(&a, &b);
        let pair = (&*c, &*d);
        let same = (&*a, &*b) == pair;
        prop_assert_eq!(pair.equivalent(&key), same);
        prop_assert_eq!(ObjectKey::new(&c, &d) == key, same);
        prop_assert_eq!(ObjectKey::new(&c, &d).cmp(&key).is_eq(), same);
        let hasher = std::hash::RandomState::new();
        prop_assert_eq!(hasher.hash_one((&*a, &*b)), hasher.hash_one(&key));
    }
}
