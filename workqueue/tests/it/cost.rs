//! What an operation asks of its key: each hash, comparison and copy is counted.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use kubewire_workqueue::Queue;

thread_local! {
    static HASHES: Cell<u32> = const { Cell::new(0) };
    static COMPARISONS: Cell<u32> = const { Cell::new(0) };
    static COPIES: Cell<u32> = const { Cell::new(0) };
}

struct Key;

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {
        HASHES.set(HASHES.get() + 1);
    }
}

impl PartialEq for Key {
    fn eq(&self, _: &Self) -> bool {
        COMPARISONS.set(COMPARISONS.get() + 1);
        true
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        COPIES.set(COPIES.get() + 1);
        Self
    }
}

/// Hashes, comparisons and copies by `operation`.
fn counts<T>(operation: impl FnOnce() -> T) -> (T, [u32; 3]) {
    let take = || [HASHES.take(), COMPARISONS.take(), COPIES.take()];
    take();
    (operation(), take())
}

#[test]
fn a_key_is_hashed_once_by_an_add_and_copied_once_by_a_get() {
    let queue = Queue::new();
    assert_eq!(counts(|| queue.add(Key)).1, [1, 0, 0], "a new key");
    assert_eq!(counts(|| queue.add(Key)).1, [1, 1, 0], "a key that waits");
    let (got, cost) = counts(|| queue.try_get().unwrap());
    assert_eq!(cost, [0, 0, 1], "a get");
    assert_eq!(counts(|| queue.add(Key)).1, [1, 1, 0], "a key that is processed");
    assert_eq!(counts(|| got.done()).1, [0, 0, 0], "a key that waits again");
    let got = queue.try_get().unwrap();
    assert_eq!(counts(|| got.done()).1, [0, 0, 0], "a key that is done");
}
