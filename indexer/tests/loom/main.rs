//! Readers, writers and makers of indices on one store, in every interleaving.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p kubewire-indexer --test loom --release
//! ```
//!
//! A write computes its index values without the lock, and looks under the lock whether an index came meanwhile; a new
//! index files what was there before it piece by piece. So there is more to get wrong than one lock. loom runs each model
//! in all orders of the locks, with at most three preemptions in a run (`LOOM_MAX_PREEMPTIONS` sets another bound). Bugs
//! that these models catch stand in `testing/mutants/mutants.toml`, those with `cfg = "loom"`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kubewire_indexer::{
    ExpirationCache, Heap, Id, IndexFunc, Indexer, Indexers, Meta, MutationCache, ObjectKey, Store, Write,
};
use loom::thread;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    let orders = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&orders);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        run();
    });
    println!("{} orders", orders.load(Ordering::Relaxed));
}

fn by_value(name: &'static str) -> Indexers<u32> {
    Indexers::none().with(name, IndexFunc::many(|value: &u32| [value.to_string()]))
}

#[test]
fn a_reader_sees_a_list_whole_and_an_index_that_fits_it() {
    model(|| {
        let store = Store::with_indexers(by_value("value")).unwrap();
        store.replace([(1, 10), (2, 10)]);
        let reader = thread::spawn({
            let store = store.clone();
            move || {
                let values = store.list().to_vec();
                assert!(values == [10, 10] || values == [20, 20, 20], "{values:?}");
                let filed = store.list_index_func_values("value");
                assert_eq!(filed.len(), 1, "{filed:?}");
            }
        });
        store.replace([(1, 20), (2, 20), (3, 20)]);
        reader.join().unwrap();
        store.validate().unwrap();
    });
}

#[test]
fn an_index_that_is_made_beside_writers_is_complete_when_it_can_be_asked() {
    model(|| {
        let store: Store<u32, u32> = Store::new();
        store.replace([(1, 10), (2, 20)]);
        let maker = thread::spawn({
            let store = store.clone();
            move || {
                store.add_indexers(by_value("value")).unwrap();
                assert_eq!(store.count_by_index("value", "20").unwrap(), 1, "nobody touches it");
            }
        });
        let writer = thread::spawn({
            let store = store.clone();
            move || {
                store.add(1, 11);
                store.delete(&1);
                store.add(3, 30);
            }
        });
        if let Ok(count) = store.count_by_index("value", "20") {
            assert_eq!(count, 1, "it can be asked, so it is complete");
        }
        maker.join().unwrap();
        writer.join().unwrap();
        store.validate().unwrap();
        assert_eq!(store.index_keys("value", "30").unwrap(), [3]);
        assert!(store.index_keys("value", "10").unwrap().is_empty());
    });
}

#[test]
fn a_list_and_a_transaction_beside_a_new_index_are_filed_in_it() {
    model(|| {
        let store: Store<u32, u32> = Store::new();
        store.replace([(1, 10)]);
        let maker = thread::spawn({
            let store = store.clone();
            move || store.add_indexers(by_value("value")).unwrap()
        });
        let writer = thread::spawn({
            let store = store.clone();
            move || store.transaction([Write::Put(2, 20), Write::Delete(1)])
        });
        store.replace([(1, 11), (4, 40)]);
        maker.join().unwrap();
        writer.join().unwrap();
        store.validate().unwrap();
        assert_eq!(store.index_keys("value", "40").unwrap(), [4]);
    });
}

#[test]
fn of_two_makers_of_one_index_one_has_it() {
    model(|| {
        let store: Store<u32, u32> = Store::new();
        store.add(1, 10);
        let other = thread::spawn({
            let store = store.clone();
            move || store.add_indexers(by_value("value")).is_ok()
        });
        let mine = store.add_indexers(by_value("value")).is_ok();
        assert!(mine != other.join().unwrap());
        assert_eq!(store.index_keys("value", "10").unwrap(), [1]);
        store.validate().unwrap();
    });
}

#[test]
fn an_entry_that_is_renewed_while_it_is_found_expired_stays() {
    model(|| {
        let cache = ExpirationCache::new(|stamped: &kubewire_indexer::Stamped<u32>, _| stamped.value == 0);
        cache.add("a", 0);
        let reader = thread::spawn({
            let cache = cache.clone();
            move || cache.get("a")
        });
        cache.add("a", 1);
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
        assert_eq!(cache.get("a"), Some(1));
    });
}

#[derive(Debug)]
struct Pod(&'static str);

impl Meta for Pod {
    fn id(&self) -> Id<'_> {
        Id::new("", "web").uid("1").resource_version(self.0)
    }
}

/// The informer brings an older state, then the written one, then a newer one.
#[test]
fn a_controller_never_reads_a_state_older_than_its_own_write() {
    model(|| {
        let indexer = Indexer::new();
        indexer.add(Arc::new(Pod("1"))).unwrap();
        let start = Instant::now();
        let cache = MutationCache::with_clock(indexer.clone(), Default::default(), move || start + Duration::ZERO);
        let key: ObjectKey = "web".parse().unwrap();
        let informer = thread::spawn({
            let (indexer, cache) = (indexer.clone(), cache.clone());
            move || {
                for version in ["2", "4"] {
                    let pod = Arc::new(Pod(version));
                    indexer.update(Arc::clone(&pod)).unwrap();
                    cache.on_add_or_update(&pod);
                }
            }
        });
        cache.mutation(Arc::new(Pod("3")));
        let read: u32 = cache.get_by_key(&key).unwrap().0.parse().unwrap();
        assert!(read >= 3, "{read}");
        informer.join().unwrap();
        assert_eq!(cache.get_by_key(&key).unwrap().0, "4");
        assert!(cache.is_empty(), "the indexer has caught up");
    });
}

#[test]
fn each_entry_of_a_heap_goes_to_one_of_those_who_wait_and_a_close_ends_the_waiting() {
    model(|| {
        let heap = Heap::new();
        let consumers = [(); 2].map(|()| {
            let heap: Heap<&str, u32, u32> = heap.clone();
            thread::spawn(move || heap.pop())
        });
        heap.add("a", 1, 10).unwrap();
        heap.close();
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [None, Some(("a", 10))]);
    });
}
