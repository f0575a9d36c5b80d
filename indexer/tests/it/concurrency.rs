//! Many threads on one store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kubewire_indexer::{IndexFunc, Indexers, Store, Write};

/// A value that knows which list it came with, and counts the living.
struct Tracked {
    list: usize,
    alive: Arc<AtomicUsize>,
}

impl Tracked {
    fn new(list: usize, alive: &Arc<AtomicUsize>) -> Arc<Self> {
        alive.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { list, alive: Arc::clone(alive) })
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// List n has 300 + n entries, all of list n.
fn entries(list: usize, alive: &Arc<AtomicUsize>) -> Vec<(usize, Arc<Tracked>)> {
    (0..300 + list).map(|key| (key, Tracked::new(list, alive))).collect()
}

#[test]
fn readers_during_replace_see_one_list_whole_and_never_a_mix() {
    let by_list = Indexers::none()
        .with("list", IndexFunc::many(|value: &Arc<Tracked>| [value.list.to_string()]))
        .with("all", IndexFunc::many(|_: &Arc<Tracked>| ["x"]));
    let store = Store::with_indexers(by_list).unwrap();
    let alive = Arc::default();
    let done = AtomicBool::new(false);
    store.replace_at(entries(0, &alive), "0");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for listed in [store.list().to_vec(), store.by_index("all", "x").unwrap()] {
                        let lists: BTreeSet<usize> = listed.iter().map(|value| value.list).collect();
                        let list = *lists.first().unwrap();
                        assert_eq!((lists.len(), listed.len()), (1, 300 + list));
                    }
                    let values = store.list_index_func_values("list");
                    assert_eq!(values.len(), 1, "{values:?}");
                }
            });
        }
        for list in 1..60 {
            store.replace_at(entries(list, &alive), &list.to_string());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.last_version(), "59");
    store.validate().unwrap();
    assert_eq!(alive.load(Ordering::Relaxed), store.len(), "old values are dropped");
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let store = Store::new();
    store.transaction([Write::Put("a", 0), Write::Put("b", 0)]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let values = store.list().to_vec();
                assert_eq!((values.len(), values[0]), (2, values[1]));
            }
        });
        for n in 0..2000 {
            store.transaction([Write::Put("a", n), Write::Put("b", n)]);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn indices_added_while_others_write_end_complete() {
    for round in 0..20 {
        let store: Store<u32, u32> = Store::new();
        store.replace((0..500).map(|n| (n, n)));
        let name = |n: usize| format!("mod-{n}");
        thread::scope(|scope| {
            for writer in 0..2u32 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..300u32 {
                        let key = (n * 7 + writer * 13) % 600;
                        match n % 7 {
                            0 => drop(store.delete(&key)),
                            1 => drop(store.transaction([Write::Put(key, n), Write::Delete(key + 1)])),
                            2 if n % 70 == 2 => store.replace((0..400).map(|key| (key, key + n))),
                            _ => drop(store.add(key, n * 1000 + key)),
                        }
                    }
                });
            }
            for n in 2..5 {
                let store = &store;
                scope.spawn(move || {
                    let function = IndexFunc::many(move |value: &u32| [(*value as usize % n).to_string()]);
                    store.add_indexers(Indexers::none().with(name(n), function)).unwrap();
                    // Complete at once: each value is under exactly one text, so that nothing can be missing.
                    assert!(store.count_by_index(&name(n), "0").is_ok());
                });
            }
        });
        store.validate().unwrap_or_else(|broken| panic!("round {round}: {broken}"));
        for n in 2..5 {
            let counted: usize = (0..n).map(|rest| store.count_by_index(&name(n), &rest.to_string()).unwrap()).sum();
            assert_eq!(counted, store.len(), "round {round}");
        }
    }
}

#[test]
fn values_are_dropped_without_the_lock() {
    /// Reads the store when it is dropped: a lock that is still held would stand still here for ever.
    struct Reader(Store<u32, Arc<Self>>, Arc<AtomicUsize>);

    impl Drop for Reader {
        fn drop(&mut self) {
            self.1.fetch_add(self.0.len() + 1, Ordering::Relaxed);
        }
    }

    let store = Store::new();
    let drops = Arc::new(AtomicUsize::new(0));
    let reader = || Arc::new(Reader(store.clone(), Arc::clone(&drops)));
    store.add(1, reader());
    drop(store.add(1, reader()));
    drop(store.delete(&1));
    store.add(2, reader());
    store.replace([(3, reader()), (3, reader())]);
    store.transaction([Write::Put(3, reader()), Write::Delete(3), Write::Put(4, reader())]);
    store.replace([]);
    assert_eq!(store.len(), 0);
    assert!(drops.load(Ordering::Relaxed) >= 8);
}

/// A store of which the entries 1, 2 and 3 hold 10, 20 and 30, and the index "value", during whose making `meanwhile`
/// is done once.
fn indexed_with(meanwhile: impl Fn(&Store<u32, u32>) + Send + Sync + 'static) -> Store<u32, u32> {
    let store = Store::new();
    store.replace([(1, 10), (2, 20), (3, 30)]);
    let (writer, begun) = (store.clone(), AtomicBool::new(false));
    let function = IndexFunc::many(move |value: &u32| {
        if !begun.swap(true, Ordering::Relaxed) {
            assert!(writer.index_keys("value", "10").is_err(), "unknown until it is complete");
            meanwhile(&writer);
        }
        [value.to_string()]
    });
    store.add_indexers(Indexers::none().with("value", function)).unwrap();
    store.validate().unwrap();
    store
}

#[test]
fn what_is_written_while_an_index_is_made_is_filed_as_it_was_written() {
    let values = |store: &Store<u32, u32>| {
        let mut values: Vec<_> = store.list_index_func_values("value").iter().map(ToString::to_string).collect();
        values.sort();
        values
    };
    let updated = indexed_with(|store| {
        store.add(1, 11);
    });
    assert_eq!(values(&updated), ["11", "20", "30"]);

    let deleted = indexed_with(|store| {
        store.delete(&2);
    });
    assert_eq!(values(&deleted), ["10", "30"]);

    // The new entry takes the place of the deleted one.
    let exchanged = indexed_with(|store| drop(store.transaction([Write::Delete(3), Write::Put(4, 40)])));
    assert_eq!(values(&exchanged), ["10", "20", "40"]);

    let replaced = indexed_with(|store| store.replace([(5, 50)]));
    assert_eq!(values(&replaced), ["50"]);

    let clash = indexed_with(|store| {
        let taken = store.add_indexers(Indexers::none().with("value", IndexFunc::many(|_: &u32| [""])));
        assert!(taken.is_err(), "the name is taken from the beginning");
    });
    assert_eq!(values(&clash), ["10", "20", "30"]);
}

#[test]
fn indices_that_are_added_while_a_write_is_prepared_are_not_missed() {
    /// Adds the index "late" when a value is prepared for the first time.
    fn adds_late() -> Store<u32, u32> {
        let store: Store<u32, u32> = Store::new();
        let (other, begun) = (store.clone(), AtomicBool::new(false));
        let function = IndexFunc::many(move |value: &u32| {
            if !begun.swap(true, Ordering::Relaxed) {
                let late = Indexers::none().with("late", IndexFunc::many(|value: &u32| [value.to_string()]));
                other.add_indexers(late).unwrap();
            }
            [value.to_string()]
        });
        store.add_indexers(Indexers::none().with("early", function)).unwrap();
        store
    }

    let writes: [fn(&Store<u32, u32>); 3] = [
        |store| {
            store.add(1, 10);
        },
        |store| drop(store.transaction([Write::Put(1, 10), Write::Delete(7)])),
        |store| store.replace([(1, 10)]),
    ];
    for write in writes {
        let store = adds_late();
        write(&store);
        assert_eq!(store.index_keys("early", "10").unwrap(), [1]);
        assert_eq!(store.index_keys("late", "10").unwrap(), [1]);
        store.validate().unwrap();
    }
}
