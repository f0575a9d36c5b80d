//! Keys that panic: the queue goes on for all others.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use kubewire_workqueue::{Item, Order, Queue, Slot};

use crate::support::{Polled, drain, get};

thread_local! {
    /// What panics at this moment.
    static PANICS: Cell<&'static str> = const { Cell::new("") };
}

#[derive(Debug)]
struct Key(&'static str);

fn perhaps_panic(place: &str) {
    assert!(PANICS.get() != place || std::thread::panicking(), "{place} panics");
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        perhaps_panic("hash");
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        perhaps_panic("eq");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        perhaps_panic("clone");
        Self(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        perhaps_panic("drop");
    }
}

/// Runs `operation` while `place` panics; tells whether it did.
fn with_panic<T>(place: &'static str, operation: impl FnOnce() -> T) -> bool {
    PANICS.set(place);
    let outcome = catch_unwind(AssertUnwindSafe(|| drop(operation())));
    PANICS.set("");
    outcome.is_err()
}

#[test]
fn a_key_that_panics_when_hashed_compared_cloned_or_dropped_blocks_nobody() {
    let queue = Queue::new();
    queue.add(Key("a"));
    assert!(with_panic("hash", || queue.add(Key("a"))));
    assert!(with_panic("eq", || queue.add(Key("a"))));
    assert!(with_panic("clone", || queue.try_get()));
    assert!(with_panic("drop", || queue.add(Key("a"))), "the second one is dropped");
    assert_eq!(queue.len(), 1);

    let mut waiter = Polled::new(queue.get());
    let held = waiter.poll().unwrap().unwrap();
    queue.add(Key("b"));
    assert!(with_panic("drop", || drop(held)));
    assert_eq!(drain(&queue).iter().map(|key| key.0).collect::<Vec<_>>(), ["b"]);
    assert!(queue.snapshot().processing.is_empty());
}

#[test]
fn a_panic_in_an_add_still_wakes_for_keys_that_fell_due() {
    let time = kubewire_workqueue::ratelimit::ManualClock::new();
    let queue = Queue::builder().clock(time.clock()).build();
    let mut waiter = Polled::new(queue.get());
    assert!(waiter.poll().is_none());
    queue.add_after(Key("a"), crate::support::MS);
    time.advance(crate::support::MS);
    assert!(with_panic("eq", || queue.add(Key("a"))));
    assert_eq!(waiter.settle().flatten().unwrap().0, "a");
}

#[test]
fn an_order_that_panics_costs_at_most_the_key_at_hand() {
    struct Panics(Vec<Slot>);
    impl Order<&'static str> for Panics {
        fn push(&mut self, item: Item<'_, &'static str>) {
            assert!(*item.key != "bad" || PANICS.get() != "push", "push panics");
            self.0.insert(0, item.slot);
        }
        fn pop(&mut self) -> Option<Slot> {
            self.0.pop()
        }
    }
    let queue = Queue::builder().order(Panics(Vec::new())).build();
    queue.add("good");
    assert!(with_panic("push", || queue.add("bad")));
    queue.add("fine");
    assert_eq!(drain(&queue), ["good", "fine"]);
    queue.add("bad");
    assert_eq!(get(&queue), Some("bad"), "added again it is as good as any");
}

#[tokio::test]
async fn a_worker_that_panics_is_done_with_its_key() {
    let queue = Queue::new();
    queue.add("a");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let _key = queue.get().await;
            panic!("worker");
        }
    });
    assert!(worker.await.unwrap_err().is_panic());
    assert!(queue.snapshot().processing.is_empty());
    queue.add("a");
    assert_eq!(get(&queue), Some("a"));
}
