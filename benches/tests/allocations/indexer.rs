//! The indexer: reads allocate what they hand out, writes nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{IndexFunc, Indexer, Indexers, Meta, NAMESPACE_INDEX, Object, ObjectKey};

use crate::counting::{allocations, each};
use crate::thing::{Thing, things};

const COUNT: usize = 1000;

fn filled(things: &[Arc<Thing>]) -> Indexer<Arc<Thing>> {
    let by_version = IndexFunc::one(|thing: &Arc<Thing>| Object::id(thing).resource_version);
    let indexer = Indexer::with_indexers(Indexers::by_namespace().with("version", by_version)).unwrap();
    indexer.replace(things.iter().cloned(), "1").unwrap();
    indexer
}

#[test]
fn a_look_up_allocates_nothing_and_a_list_its_result() {
    let things = things(COUNT, 1);
    let indexer = filled(&things);
    let keys: Vec<_> = things.iter().map(|thing| Meta::key(&**thing)).collect();
    assert_eq!(each(COUNT, |n| assert!(indexer.get_by_key(&keys[n]).is_some())), 0.0);
    assert_eq!(each(COUNT, |n| assert!(indexer.get(&things[n]).is_some())), 0.0);
    assert_eq!(each(COUNT, |n| assert!(indexer.get_by_key(&(keys[n].namespace(), keys[n].name())).is_some())), 0.0);
    assert_eq!(each(10, |_| assert_eq!(indexer.by_index(NAMESPACE_INDEX, "namespace-3").unwrap().len(), 100)), 1.0);
    // The references to the store's memory that a list walks without the lock.
    assert_eq!(each(10, |_| assert_eq!(indexer.list().iter().count(), COUNT)), 1.0);
    assert_eq!(each(10, |_| assert_eq!(indexer.list().to_vec().len(), COUNT)), 2.0);
}

#[test]
fn a_write_allocates_nothing_and_one_that_moves_in_an_index_next_to_nothing() {
    let [first, second] = [1, 2].map(|version| things(COUNT, version));
    let indexer = filled(&first);
    assert_eq!(each(COUNT, |n| drop(indexer.update(first[n].clone()))), 0.0, "the same index values");
    let moved = each(COUNT, |n| {
        drop(indexer.update(second[n].clone()));
        drop(indexer.update(first[n].clone()));
    });
    assert!(moved <= 3.0, "{moved}: the text of a value that is used again, and its members");
    let again = each(COUNT, |n| {
        drop(indexer.delete(&first[n]));
        drop(indexer.add(first[n].clone()));
    });
    assert!(again <= 0.1, "{again}");
}

#[test]
fn a_key_as_long_as_most_costs_no_allocation() {
    let mut pod = Pod::default();
    (pod.metadata.namespace, pod.metadata.name) = (Some("default".to_owned()), Some("web".to_owned()));
    let pod = Arc::new(pod);
    let indexer = Indexer::with_indexers(Indexers::by_namespace()).unwrap();
    assert_eq!(each(10, |_| drop(pod.key())), 0.0);
    assert_eq!(each(10, |_| drop(indexer.update(Arc::clone(&pod)))), 0.0);
    assert_eq!(each(10, |_| assert!(indexer.get(&pod).is_some())), 0.0);
    assert_eq!(allocations(|| drop(ObjectKey::cluster(&"n".repeat(200)))), 2, "the text, and that of the key");
}
