//! Adding, getting, done.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use kubewire_workqueue::ratelimit::ManualClock;
use kubewire_workqueue::{ByAddedPriority, Item, Order, Queue, Slot, TryGetError};
use parking_lot::Mutex;
use tokio::task::{JoinSet, yield_now};

use crate::support::{MS, drain, get, timed, waiting};

/// Scenario 1, with both kinds of shut-down, as tasks on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_producers_and_consumers_process_every_key_and_none_twice_at_once() {
    for with_drain in [false, true] {
        let queue: Queue<i32> = Queue::new();
        let held = Arc::new(Mutex::new(HashSet::new()));
        let mut consumers = JoinSet::new();
        for _ in 0..10 {
            let (queue, held) = (queue.clone(), Arc::clone(&held));
            consumers.spawn(async move {
                let mut processed = HashSet::new();
                while let Some(key) = queue.get().await {
                    assert!(held.lock().insert(*key), "{} is processed twice at once", *key);
                    yield_now().await;
                    held.lock().remove(key.key());
                    processed.insert(*key);
                }
                processed
            });
        }
        let mut producers = JoinSet::new();
        for producer in 0..50 {
            let queue = queue.clone();
            producers.spawn(async move {
                for _ in 0..50 {
                    queue.add(producer);
                    yield_now().await;
                }
            });
        }
        producers.join_all().await;
        if with_drain {
            queue.shut_down_with_full_drain().await;
        } else {
            queue.shut_down();
        }
        queue.add(1000);
        let processed: HashSet<i32> = consumers.join_all().await.into_iter().flatten().collect();
        assert_eq!(processed, (0..50).collect());
        assert_eq!(queue.len(), 0);
    }
}

/// Scenario 1 with threads.
#[test]
fn threads_that_block_process_every_key() {
    let queue: Queue<i32> = Queue::new();
    let consumers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            std::thread::spawn(move || std::iter::from_fn(|| queue.get_blocking().map(|key| *key)).collect::<Vec<_>>())
        })
        .collect();
    std::thread::scope(|scope| {
        for producer in 0..8 {
            let queue = &queue;
            scope.spawn(move || (0..100).for_each(|n| queue.add(producer * 100 + n)));
        }
    });
    queue.shut_down();
    let mut processed: Vec<i32> = consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
    processed.sort_unstable();
    assert_eq!(processed, (0..800).collect::<Vec<_>>());
}

#[test]
fn a_queue_that_is_shut_down_refuses_adds() {
    let queue = Queue::new();
    queue.shut_down();
    queue.add("a");
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.try_get().unwrap_err(), TryGetError::ShutDown);
    assert!(queue.is_shutting_down());
}

#[tokio::test]
async fn workers_that_add_the_key_they_hold_get_it_again_and_end_at_the_shut_down() {
    let queue = Queue::new();
    let mut workers = JoinSet::new();
    for _ in 0..5 {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut processed = Vec::new();
            while let Some(key) = queue.get().await {
                if processed.iter().filter(|other| **other == *key).count() < 2 {
                    queue.add(*key);
                }
                processed.push(*key);
                yield_now().await;
            }
            processed.len()
        });
    }
    for key in 0..10 {
        queue.add(key);
    }
    while queue.snapshot().waiting.len() + queue.snapshot().processing.len() > 0 {
        yield_now().await;
    }
    queue.shut_down();
    let processed: usize = workers.join_all().await.iter().sum();
    assert!(processed >= 30, "{processed}");
    assert_eq!(queue.len(), 0);
}

#[test]
fn keys_come_out_in_the_order_in_which_they_went_in_each_once() {
    let queue = Queue::new();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a", "b"]);
}

#[test]
fn a_key_added_while_it_is_processed_waits_again_when_it_is_done() {
    let queue = Queue::new();
    queue.add("a");
    assert_eq!(get(&queue), Some("a"));
    queue.add("a");
    assert_eq!((queue.len(), get(&queue)), (0, None));
    assert!(queue.done(&"a"));
    assert_eq!((queue.len(), get(&queue)), (1, Some("a")));
    assert!(queue.done(&"a"));
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_requeued_key_stands_behind_those_that_waited_meanwhile() {
    let queue = Queue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let held = queue.try_get().unwrap();
    queue.add("a");
    held.done();
    assert_eq!(drain(&queue), ["b", "c", "a"]);
}

/// An order that notes what it is told.
#[derive(Clone, Default)]
struct Recording {
    slots: Vec<Slot>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Order<&'static str> for Recording {
    fn push(&mut self, item: Item<'_, &'static str>) {
        self.calls.lock().push(format!("push {}", item.key));
        self.slots.push(item.slot);
    }

    fn touch(&mut self, item: Item<'_, &'static str>) {
        self.calls.lock().push(format!("touch {}", item.key));
    }

    fn pop(&mut self) -> Option<Slot> {
        self.slots.pop()
    }
}

#[test]
fn an_order_of_ones_own_is_told_of_keys_that_wait_and_are_added_again() {
    let order = Recording::default();
    let calls = Arc::clone(&order.calls);
    let queue = Queue::builder().order(order).build();
    queue.add("x");
    queue.add("x");
    queue.add("y");
    assert_eq!(*calls.lock(), ["push x", "touch x", "push y"]);
    assert_eq!(drain(&queue), ["y", "x"], "last in, first out");
}

#[test]
fn an_order_is_not_told_of_keys_added_while_they_are_processed() {
    let order = Recording::default();
    let calls = Arc::clone(&order.calls);
    let queue = Queue::builder().order(order).build();
    queue.add("x");
    let held = queue.try_get().unwrap();
    queue.add("x");
    queue.add("x");
    assert_eq!((queue.len(), calls.lock().len()), (0, 1));
    let mut second = waiting(&queue);
    drop(held);
    assert_eq!(second.settle(), Some(Some("x")));
    assert_eq!(*calls.lock(), ["push x", "push x"]);
    queue.done(&"x");
    assert_eq!(get(&queue), None, "exactly once more");
}

#[test]
fn a_key_that_is_done_is_freed_though_the_queue_lives() {
    let queue = Queue::new();
    let key = Arc::new("a".to_owned());
    let weak: Weak<String> = Arc::downgrade(&key);
    queue.add(Arc::clone(&key));
    queue.add(key);
    assert!(weak.upgrade().is_some());
    queue.try_get().unwrap().done();
    assert!(weak.upgrade().is_none());
}

#[test]
fn done_of_a_key_that_waits_or_is_unknown_changes_nothing() {
    let queue = Queue::new();
    queue.add("a");
    assert!(!queue.done(&"a"));
    assert!(!queue.done(&"b"));
    assert_eq!(queue.len(), 1);
    assert_eq!(get(&queue), Some("a"));
    assert_eq!(get(&queue), None, "it is handed out once");
    assert!(queue.done(&"a"));
    assert!(!queue.done(&"a"));
}

#[test]
fn a_guard_finishes_its_own_hand_out_only() {
    let queue = Queue::new();
    queue.add("a");
    let stale = queue.try_get().unwrap();
    assert!(queue.done(&"a"), "done by hand while a guard holds it");
    queue.add("a");
    let held = queue.try_get().unwrap();
    drop(stale);
    queue.add("a");
    assert_eq!(get(&queue), None, "still held by the second one");
    drop(held);
    assert_eq!(get(&queue), Some("a"));
}

#[test]
fn a_guard_may_outlive_the_handles_and_move_to_another_thread() {
    let queue = Queue::new();
    queue.add("a".to_owned());
    let guard = queue.try_get().unwrap();
    assert_eq!((guard.len(), guard.to_string(), format!("{guard:?}")), (1, "a".into(), "Guard(\"a\")".into()));
    drop(queue);
    std::thread::spawn(move || drop(guard)).join().unwrap();
}

#[test]
fn handles_guards_and_gets_move_between_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Queue<String>>();
    sync::<Queue<String>>();
    send::<kubewire_workqueue::RateLimitingQueue<String>>();
    sync::<kubewire_workqueue::RateLimitingQueue<String>>();
    send::<kubewire_workqueue::Guard<String>>();
    send::<kubewire_workqueue::Get<'static, String>>();
    send::<kubewire_workqueue::Drain<'static, String>>();
}

#[test]
fn snapshot_and_status_tell_where_each_key_is_and_since_when() {
    let (time, queue) = timed();
    let ms = |millis| std::time::Duration::from_millis(millis);
    for key in ["held", "dirty", "waits"] {
        queue.add(key);
    }
    let _held = queue.try_get().unwrap();
    time.advance(ms(5));
    let _dirty = queue.try_get().unwrap();
    queue.add("dirty");
    queue.add_after("later", ms(100));
    queue.add_after("held", ms(50));
    time.advance(ms(2));
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.waiting, [("waits", ms(7))]);
    let processing: Vec<_> = snapshot.processing.iter().map(|key| (key.key, key.worked, key.dirty)).collect();
    assert_eq!(processing, [("held", ms(7), None), ("dirty", ms(2), Some(ms(2)))]);
    assert_eq!(snapshot.delayed, [("held", ms(48)), ("later", ms(98))]);
    assert!(!snapshot.shutting_down);

    let status = queue.status(&"held");
    assert_eq!((status.waiting, status.processing, status.delayed), (None, Some(ms(7)), Some(ms(48))));
    assert_eq!(queue.status(&"unknown"), kubewire_workqueue::KeyStatus::default());
    assert_eq!(
        format!("{queue:?}"),
        r#"Queue { name: "", waiting: 1, processing: 2, delayed: 2, shutting_down: false }"#
    );
}

/// One high key comes each millisecond and one key is taken: there is always something that comes first, but for age.
#[test]
fn under_constant_load_a_low_key_waits_for_ever_or_no_longer_than_its_age_allows() {
    // a step of priority is worth | when the key of priority -100 is taken, in milliseconds
    for (aging, want) in [(0, None), (1, Some(100)), (10, Some(1000))] {
        let time = ManualClock::new();
        let order = ByAddedPriority::new().aging(aging * MS);
        let queue = Queue::builder().clock(time.clock()).prioritized(order).build();
        queue.add_at_priority("low", -100);
        let mut taken = (0..5000).filter(|n| {
            // Two keys, so that the one that was just taken is not in the way.
            queue.add_at_priority(["high", "as high"][n % 2], 0);
            time.advance(MS);
            get(&queue).is_some_and(|key| {
                queue.done(&key);
                key == "low"
            })
        });
        assert_eq!(taken.next(), want, "{aging}");
    }
}
