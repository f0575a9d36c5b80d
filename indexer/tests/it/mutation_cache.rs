//! One's own writes, read before the watch brings them.

use std::time::Duration;

use kubewire_indexer::{Deleted, IndexFunc, Indexer, Indexers, MutationCache, MutationCacheOptions, Object, ObjectKey};

use super::PodRef;
use crate::record::{Form, Pod};

fn state(name: &str, version: u32, note: &str) -> PodRef {
    let (namespace, name, uid) = ("ns".to_owned(), name.to_owned(), format!("u-{name}"));
    PodRef::make(&Pod { namespace, name, uid, version: version.to_string(), note: note.to_owned() })
}

#[test]
fn a_write_of_ones_own_is_read_by_key_and_index_until_the_store_has_it() {
    let by_note = IndexFunc::one(|pod: &PodRef| pod.label("note").unwrap_or_default());
    let indexer = Indexer::with_indexers(Indexers::none().with("note", by_note)).unwrap();
    indexer.add(state("a", 1, "old")).unwrap();
    indexer.add(state("b", 2, "old")).unwrap();
    let options = MutationCacheOptions::default().include_adds().ttl(Duration::from_secs(3600));
    let cache = MutationCache::with_options(indexer.clone(), options);
    cache.mutation(state("a", 5, "new"));
    cache.mutation(state("c", 6, "new"));
    let read = |name: &str| cache.get_by_key(&ObjectKey::new("ns", name)).map(|pod| pod.read().version);
    let noted = |note: &str| {
        let mut names: Vec<_> = cache.by_index("note", note).unwrap().iter().map(|pod| pod.read().name).collect();
        names.sort();
        names
    };
    assert_eq!(["a", "b", "c", "d"].map(read), [Some("5"), Some("2"), Some("6"), None].map(|v| v.map(str::to_owned)));
    assert_eq!((noted("old"), noted("new")), (vec!["b".to_owned()], vec!["a".to_owned(), "c".to_owned()]));
    let seen = state("a", 7, "newest");
    indexer.add(seen.clone()).unwrap();
    cache.on_add_or_update(&seen);
    assert!(cache.get_by_key(&seen.key()).unwrap().is_handle_of(&seen), "the store's own");
    cache.on_delete(&Deleted::Known(state("c", 8, "new")));
    assert_eq!(read("c"), None);
}
