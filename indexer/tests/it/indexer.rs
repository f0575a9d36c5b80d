//! The indexer of objects.

use kubewire_indexer::{
    BoxError, Change, Deleted, IndexFunc, Indexer, Indexers, KeyError, NAMESPACE_INDEX, Object, ObjectKey,
    Transforming, WriteError,
};

use super::PodRef;
use crate::record::{Form, Pod, edited};

/// In the namespace `ns`.
fn object(name: &str, uid: &str, version: impl ToString) -> PodRef {
    let (namespace, name, uid) = ("ns".to_owned(), name.to_owned(), uid.to_owned());
    PodRef::make(&Pod { namespace, name, uid, version: version.to_string(), note: String::new() })
}

fn thing(name: &str, version: impl ToString) -> PodRef {
    object(name, "", version)
}

fn tombstone(name: &str, last: Option<PodRef>) -> Deleted<PodRef> {
    Deleted::final_state_unknown(ObjectKey::new("ns", name), last)
}

fn by_uid(indexers: Indexers<PodRef>) -> Indexers<PodRef> {
    indexers.with("uid", IndexFunc::maybe(|pod: &PodRef| Some(pod.id().uid)))
}

#[test]
fn the_store_remembers_the_version_that_it_saw_last() {
    let store = Indexer::new();
    let sees = |version: &str| assert_eq!(store.last_version(), version);
    sees("");
    store.add(thing("a", 10)).unwrap();
    sees("10");
    store.add(thing("b", 10)).unwrap();
    sees("10");
    store.update(thing("a", 20)).unwrap();
    sees("20");
    store.delete(&thing("a", 30)).unwrap();
    sees("30");
    store.add(thing("c", "")).unwrap();
    sees("30");
    store.update(thing("b", 40)).unwrap();
    sees("40");
    store.delete_by_key(&("ns", "b"));
    store.delete_deleted(&tombstone("b", Some(thing("b", 77)))).unwrap();
    sees("40");
    store.transaction([Change::put(thing("a", 40)), Change::put(thing("b", 30)), Change::put(thing("c", 50))]).unwrap();
    sees("50");
    store.apply([Change::put(thing("c", 55)).unwrap(), Change::delete(tombstone("c", None)).unwrap()]);
    sees("55");
    store.apply([Change::delete(Deleted::Known(thing("b", 60))).unwrap()]);
    sees("60");
    store.replace([thing("a", 70)], "50").unwrap();
    sees("50");
    store.bookmark("45");
    sees("45");
    store.delete(&thing("missing", 46)).unwrap();
    sees("46");
}

#[test]
fn a_transaction_makes_what_can_be_made_and_says_what_failed() {
    let store = Indexer::new();
    let changes = [
        Change::put(thing("a", 1)),
        Change::put(thing("", 2)),
        Change::delete(tombstone("a", None)),
        Change::delete(Deleted::Known(thing("", 3))),
        Change::put(thing("b", 4)),
    ];
    let error = store.transaction(changes).unwrap_err();
    let made: Vec<_> =
        error.made.iter().map(|(position, old)| (*position, old.as_ref().map(|old| old.id().name))).collect();
    assert_eq!(made, [(0, None), (2, Some("a")), (4, None)]);
    assert_eq!(error.failed, [(1, KeyError::NoName), (3, KeyError::NoName)]);
    assert!(error.to_string().starts_with("2 of 5 changes failed"), "{error}");
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<KeyError>());
    assert_eq!(cause, Some(&KeyError::NoName));
    assert_eq!(store.list_keys(), [ObjectKey::new("ns", "b")]);
    assert_eq!(store.last_version(), "4");
}

#[test]
fn a_list_that_names_an_object_twice_has_its_later_state_once() {
    let store = Indexer::with_indexers(by_uid(Indexers::by_namespace())).unwrap();
    store.replace([object("x", "u1", 10), thing("y", 11), object("x", "u2", 12)], "12").unwrap();
    assert_eq!(store.len(), 2);
    assert_eq!(store.get_by_key(&("ns", "x")).unwrap().id().resource_version, "12");
    assert!(store.by_index("uid", "u1").unwrap().is_empty());
    assert_eq!(store.index_keys("uid", "u2").unwrap(), [ObjectKey::new("ns", "x")]);
    store.store().validate().unwrap();
}

#[test]
fn an_object_that_was_created_again_is_found_by_its_new_values_only() {
    let store = Indexer::with_indexers(by_uid(Indexers::none())).unwrap();
    assert!(store.update(object("x", "u1", "")).unwrap().is_none());
    assert_eq!(store.update(object("x", "u2", "")).unwrap().unwrap().id().uid, "u1");
    assert!(store.by_index("uid", "u1").unwrap().is_empty());
    assert_eq!(store.by_index("uid", "u2").unwrap().len(), 1);
}

#[test]
fn a_tombstone_cleans_store_and_indices_and_a_second_one_is_no_error() {
    let store = Indexer::with_indexers(Indexers::by_namespace()).unwrap();
    store.add(thing("x", 1)).unwrap();
    // What the tombstone's object says does not count.
    let deleted = tombstone("x", Some(thing("other", 1)));
    assert_eq!(store.delete_deleted(&deleted).unwrap().unwrap().id().name, "x");
    assert!(store.delete_deleted(&deleted).unwrap().is_none());
    assert!(store.by_index(NAMESPACE_INDEX, "ns").unwrap().is_empty());
    assert!(store.list_index_func_values(NAMESPACE_INDEX).is_empty());
}

#[test]
fn an_object_without_a_name_is_an_error_and_changes_nothing() {
    let store = Indexer::new();
    assert_eq!(store.add(thing("", 1)).unwrap_err(), KeyError::NoName);
    assert_eq!(store.delete(&thing("", 1)).unwrap_err(), KeyError::NoName);
    assert_eq!(store.replace([thing("a", 1), thing("", 2)], "9"), Err(KeyError::NoName));
    assert!(store.is_empty() && store.last_version().is_empty());
    assert!(store.get(&thing("", 1)).is_none());
    // By a key at hand it goes, as a queue of deltas has keys for everything.
    store.put(ObjectKey::new("ns", ""), thing("", 1));
    assert!(store.contains(&("ns", "")));
}

#[test]
fn names_in_cluster_scope_and_in_a_namespace_do_not_meet() {
    let store = Indexer::with_indexers(Indexers::by_namespace()).unwrap();
    store.add(edited(&object("x", "c", ""), |pod| pod.namespace.clear())).unwrap();
    store.add(thing("x", 1)).unwrap();
    assert_eq!(store.len(), 2);
    assert_eq!(store.get_by_key(&("", "x")).unwrap().id().uid, "c");
    assert_eq!(store.index_keys(NAMESPACE_INDEX, "").unwrap(), [ObjectKey::cluster("x")]);
}

fn louder(object: PodRef) -> Result<PodRef, BoxError> {
    match object.id().resource_version {
        "poison" => Err("poison".into()),
        "panic" => std::panic::resume_unwind(Box::new("panic")),
        _ => Ok(edited(&object, |pod| {
            "changed".clone_into(&mut pod.namespace);
            pod.version.push('!');
        })),
    }
}

#[test]
fn a_transformed_store_transforms_adds_updates_lists_and_transactions_once() {
    let store = Transforming::new(Indexer::new(), louder);
    let read = |name: &str| store.indexer().get_by_key(&("ns", name)).map(|thing| thing.read().version);
    store.add(thing("a", 1)).unwrap();
    // The key is the one from before the function.
    assert_eq!(read("a").as_deref(), Some("1!"));
    store.update(thing("a", 2)).unwrap();
    assert_eq!(read("a").as_deref(), Some("2!"));
    store.transaction([Change::put(thing("b", 3))]).unwrap();
    assert_eq!(read("b").as_deref(), Some("3!"));
    store.replace([thing("c", 4)], "9").unwrap();
    assert_eq!(read("c").as_deref(), Some("4!"));
    assert_eq!(store.indexer().len(), 1);
}

#[test]
fn a_transform_that_fails_or_panics_aborts_its_own_write() {
    let store = Transforming::new(Indexer::new(), louder);
    store.add(thing("a", 1)).unwrap();
    let error = store.update(thing("a", "poison")).unwrap_err();
    assert!(matches!(&error, WriteError::Transform { key, .. } if key.as_str() == "ns/a"));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "poison");
    assert!(store.add(thing("b", "panic")).is_err());
    assert!(store.replace([thing("x", 1), thing("y", "poison")], "9").is_err());
    let error = store
        .transaction([Change::put(thing("c", 3)), Change::put(thing("d", "poison")), Change::put(thing("", 1))])
        .unwrap_err();
    assert_eq!(error.failed.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [1, 2]);
    let mut keys = store.indexer().list_keys();
    keys.sort_unstable();
    assert_eq!(keys, [ObjectKey::new("ns", "a"), ObjectKey::new("ns", "c")]);
}
