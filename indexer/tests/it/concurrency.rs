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
                    for listed in [store.list(), store.by_index("all", "x").unwrap()] {
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
                let values = store.list();
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
