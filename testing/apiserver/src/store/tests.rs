use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Registry;
use crate::collection::TooOld;
use crate::watch_event::EventKind;

fn store(events_max: usize) -> Store {
    let pods = Registry::default().get(&"pods".into()).unwrap().clone();
    Store::new([pods], HistoryLimits { events_max, superseded_bytes_max: 1 << 30 })
}

const PODS: CollectionId = CollectionId(0);

fn put(store: &mut Store, namespace: &str, name: &str, label: u8) -> u64 {
    let pod = json!({"metadata": {"namespace": namespace, "name": name, "labels": {"l": label.to_string()}}});
    let resource = store.collection(PODS).resource.clone();
    store.put(PODS, Draft::new(&resource, &pod)).version
}

type Oracle = BTreeMap<(String, String), u64>;

fn listed(store: &Store, version: u64, namespace: Option<&str>) -> Result<Oracle, TooOld> {
    let page = store.collection(PODS).page(version, namespace, None, usize::MAX, |_| true)?;
    assert_eq!(page.remaining, 0);
    let parts = |o: &Arc<Stored>| ((o.key.namespace().to_owned(), o.key.name().to_owned()), o.version);
    assert!(page.items.windows(2).all(|pair| pair[0].key < pair[1].key), "in the order of keys, each once");
    Ok(page.items.iter().map(parts).collect())
}

proptest! {
    /// Random writes; every state that was ever listed is listed again at its version, in pages too, or refused as
    /// too old; replaying the events from each version gives the present state.
    #[test]
    fn every_kept_version_can_be_listed_and_watched_from(
        steps in prop::collection::vec((0..3u8, 0..2usize, 0..5usize), 1..60), events_max in 1usize..40,
    ) {
        let mut store = store(events_max);
        let mut now = Oracle::new();
        let mut states = vec![(store.version(), now.clone())];
        for (what, namespace, name) in steps {
            let (namespace, name) = (["a", "a-b"][namespace], format!("n{name}"));
            let key = (namespace.to_owned(), name.clone());
            if what == 0 {
                let removed = store.remove(PODS, &ObjectKey::new(namespace, &name));
                prop_assert_eq!(removed.is_some(), now.remove(&key).is_some());
            } else {
                let version = put(&mut store, namespace, &name, what);
                now.insert(key, version);
            }
            store.collection(PODS).validate();
            states.push((store.version(), now.clone()));
        }
        for (version, state) in &states {
            match listed(&store, *version, None) {
                Err(TooOld(oldest)) => prop_assert!(*version < oldest),
                Ok(found) => {
                    prop_assert_eq!(&found, state);
                    let mut of_a = state.clone();
                    of_a.retain(|(namespace, _), _| namespace == "a");
                    prop_assert_eq!(listed(&store, *version, Some("a")).unwrap(), of_a);
                    let mut paged = Vec::new();
                    let mut after = None;
                    loop {
                        let page = store.collection(PODS).page(*version, None, after.as_ref(), 2, |_| true).unwrap();
                        after = page.items.last().map(|object| object.key.clone());
                        paged.extend(page.items.iter().map(|object| object.version));
                        prop_assert_eq!(page.remaining, state.len() - paged.len());
                        if page.remaining == 0 { break }
                    }
                    prop_assert_eq!(paged.len(), state.len());
                }
            }
            let Ok(events) = store.collection(PODS).events_after(*version, usize::MAX) else { continue };
            prop_assert_eq!(events.len(), store.collection(PODS).backlog(*version));
            let mut replayed = state.clone();
            for event in events {
                let key = (event.object.key.namespace().to_owned(), event.object.key.name().to_owned());
                prop_assert_eq!(event.previous.as_ref().map(|previous| previous.version), replayed.get(&key).copied());
                match event.kind {
                    EventKind::Deleted => replayed.remove(&key),
                    _ => replayed.insert(key, event.version),
                };
            }
            prop_assert_eq!(&replayed, &now);
        }
    }
}

#[test]
fn history_is_bounded_by_the_bytes_that_only_it_holds() {
    let pods = Registry::default().get(&"pods".into()).unwrap().clone();
    let mut store = Store::new([pods], HistoryLimits { events_max: 1_000_000, superseded_bytes_max: 10_000 });
    for _ in 0..200 {
        put(&mut store, "a", "n", 1);
    }
    store.collection(PODS).validate();
    let kept = store.collection(PODS).backlog(0);
    assert!((5..100).contains(&kept), "{kept} events");
}

#[test]
fn after_a_compaction_new_requests_for_the_past_are_refused_and_open_watches_read_on() {
    let mut store = store(100);
    let first = put(&mut store, "a", "n", 1);
    let second = put(&mut store, "a", "n", 2);
    store.compact();
    let collection = store.collection(PODS);
    assert_eq!(collection.check_not_compacted(first), Err(TooOld(second)));
    assert_eq!(collection.check_not_compacted(second), Ok(()));
    assert_eq!(collection.events_after(first, 10).unwrap().len(), 1);
}

#[test]
fn an_object_that_left_a_selection_is_told_with_its_previous_state_at_the_new_version() {
    let mut store = store(100);
    put(&mut store, "a", "n", 1);
    let second = put(&mut store, "a", "n", 2);
    let collection = store.collection(PODS);
    let event = collection.events_after(0, 10).unwrap().pop().unwrap();
    let line: serde_json::Value = serde_json::from_slice(&event.left(&collection.resource)).unwrap();
    assert_eq!(line["type"], "DELETED");
    assert_eq!(line["object"]["metadata"]["resourceVersion"], second.to_string());
    assert_eq!(line["object"]["metadata"]["labels"]["l"], "1");
}
