//! The store that tells its whole content after each write.

use std::sync::{Arc, mpsc};

use kubewire_indexer::{Store, UndeltaStore};

#[test]
fn each_write_pushes_the_exact_list_and_reads_push_nothing() {
    let (sender, pushes) = mpsc::channel();
    let store = UndeltaStore::new(Store::new(), move |mut list: Vec<u32>| {
        list.sort_unstable();
        sender.send(list).unwrap();
    });
    let pushed = || pushes.try_iter().collect::<Vec<_>>();
    store.add("a", 1);
    store.add("b", 2);
    store.update("a", 3);
    assert_eq!(pushed(), [vec![1], vec![1, 2], vec![2, 3]]);
    store.delete(&"b");
    store.delete(&"missing");
    assert_eq!(pushed(), [[3], [3]]);
    store.replace([("x", 8), ("y", 9)], "5");
    assert_eq!(pushed(), [[8, 9]]);
    let read = store.store();
    assert_eq!((read.get(&"x"), read.len(), read.last_version().as_str()), (Some(8), 2, "5"));
    read.list();
    read.list_keys();
    assert!(pushed().is_empty());
}

#[test]
fn a_push_that_panics_loses_no_write() {
    let store = UndeltaStore::new(Store::new(), |_: Vec<Arc<u32>>| std::panic::resume_unwind(Box::new("no")));
    store.add("a", Arc::new(1));
    store.add("b", Arc::new(2));
    assert_eq!(store.store().len(), 2);
}
