//! Shutting down.

use kubewire_workqueue::{DrainOutcome, Queue, TryGetError};

use crate::support::{Polled, SECOND, drain, get, timed, waiting};

/// A queue with keys in processing.
fn holding(keys: &[&'static str]) -> Queue<&'static str> {
    let queue = Queue::new();
    for &key in keys {
        queue.add(key);
        assert_eq!(get(&queue), Some(key));
    }
    queue
}

#[test]
fn a_drain_waits_until_all_keys_in_processing_are_done() {
    let queue = holding(&["a", "b"]);
    let mut drain = Polled::new(queue.shut_down_with_drain());
    assert!(queue.is_shutting_down(), "before it is polled");
    assert_eq!(queue.try_get().unwrap_err(), TryGetError::ShutDown);
    assert_eq!(drain.poll(), None);
    queue.done(&"a");
    assert_eq!((drain.is_woken(), drain.poll()), (false, None));
    queue.done(&"b");
    assert_eq!(drain.settle(), Some(DrainOutcome::Drained));
}

#[test]
fn a_plain_shut_down_waits_for_nothing() {
    let queue = holding(&["a", "b"]);
    queue.shut_down();
    assert_eq!(queue.snapshot().processing.len(), 2);
}

/// Scenarios 10 and 17.
#[test]
fn a_later_shut_down_overrules_all_drains_that_wait() {
    let queue = holding(&["a"]);
    let mut drains = [
        Polled::new(queue.shut_down_with_drain()),
        Polled::new(queue.shut_down_with_drain()),
        Polled::new(queue.shut_down_with_full_drain()),
    ];
    assert_eq!(drains.each_mut().map(Polled::poll), [None; 3]);
    queue.shut_down();
    assert_eq!(drains.each_mut().map(Polled::settle), [Some(DrainOutcome::Overruled); 3]);
    let mut anew = Polled::new(queue.shut_down_with_drain());
    assert_eq!(anew.poll(), None, "a drain after the shut-down waits again");
    queue.done(&"a");
    assert_eq!(anew.settle(), Some(DrainOutcome::Drained));
}

/// Scenario 11: the key that was added again while it was processed is still processed.
#[test]
fn a_key_that_is_dirty_when_the_drain_begins_is_handed_out_again() {
    let queue = holding(&["a"]);
    queue.add("a");
    let mut in_flight = Polled::new(queue.shut_down_with_drain());
    let mut full = Polled::new(queue.shut_down_with_full_drain());
    assert_eq!((in_flight.poll(), full.poll()), (None, None));
    queue.done(&"a");
    assert_eq!(in_flight.settle(), Some(DrainOutcome::Drained), "nothing is processed at this moment, as client-go");
    assert_eq!((full.is_woken(), full.poll()), (false, None));
    assert_eq!(get(&queue), Some("a"));
    assert_eq!(full.poll(), None);
    queue.done(&"a");
    assert_eq!(full.settle(), Some(DrainOutcome::Drained));
    assert_eq!(queue.try_get().unwrap_err(), TryGetError::ShutDown);
}

/// Scenario 12 and the wish of kubernetes#141079.
#[test]
fn keys_that_wait_hold_up_the_full_drain_only() {
    let queue = Queue::new();
    queue.add("a");
    queue.add("b");
    assert_eq!(Polled::new(queue.shut_down_with_drain()).poll(), Some(DrainOutcome::Drained));
    let mut full = Polled::new(queue.shut_down_with_full_drain());
    assert_eq!(full.poll(), None);
    assert_eq!(drain(&queue), ["a", "b"]);
    assert_eq!(full.settle(), Some(DrainOutcome::Drained));
}

#[test]
fn a_drain_within_a_time_tells_what_is_left_when_it_is_out() {
    let (time, queue) = timed();
    queue.add("a");
    queue.add("b");
    assert_eq!(get(&queue), Some("a"));
    let mut full = Polled::new(queue.shut_down_with_full_drain().within(30 * SECOND));
    assert_eq!(full.poll(), None);
    time.advance(29 * SECOND);
    assert_eq!((full.is_woken(), full.poll()), (false, None));
    time.advance(SECOND);
    assert_eq!(full.settle(), Some(DrainOutcome::TimedOut { processing: 1, waiting: 1 }));
    let mut late = Polled::new(queue.shut_down_with_drain().until(time.now()));
    assert_eq!(late.poll(), Some(DrainOutcome::TimedOut { processing: 1, waiting: 1 }));
}

#[test]
fn a_thread_may_block_on_a_drain() {
    let queue = holding(&["a"]);
    let thread = std::thread::spawn({
        let queue = queue.clone();
        move || queue.shut_down_with_drain().block()
    });
    while !queue.is_shutting_down() {
        std::thread::yield_now();
    }
    assert_eq!(
        queue.shut_down_with_drain().within(std::time::Duration::ZERO).block(),
        DrainOutcome::TimedOut { processing: 1, waiting: 0 }
    );
    queue.done(&"a");
    assert_eq!(thread.join().unwrap(), DrainOutcome::Drained);
}

#[test]
fn keys_that_wait_are_still_handed_out_after_a_shut_down() {
    let queue = Queue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.shut_down();
    assert_eq!(drain(&queue), ["a", "b", "c"]);
    assert_eq!(queue.try_get().unwrap_err(), TryGetError::ShutDown);
}

/// Scenario 14, B38 (a) to (c).
#[test]
fn every_waiting_get_says_shut_down_at_once() {
    let shut_downs: [fn(&Queue<&'static str>); 3] = [
        |queue| queue.shut_down(),
        |queue| drop(queue.shut_down_with_drain()),
        |queue| drop(queue.shut_down_with_full_drain()),
    ];
    for shut_down in shut_downs {
        let (time, queue) = timed();
        queue.add_after("later", 3600 * SECOND);
        let mut gets = [waiting(&queue), waiting(&queue), waiting(&queue)];
        shut_down(&queue);
        assert_eq!(gets.each_mut().map(Polled::settle), [Some(None); 3]);
        drop(gets);
        assert_eq!(time.next_wake(), None, "nobody keeps the time any more");
        assert_eq!(queue.snapshot().dropped_delayed, 1);
    }
}

#[test]
fn a_woken_get_and_a_shut_down_lose_no_key() {
    let (_, queue) = timed();
    let mut gets = [waiting(&queue), waiting(&queue)];
    queue.add("a");
    queue.shut_down();
    let mut got = gets.each_mut().map(|get| get.settle().unwrap());
    got.sort_unstable();
    assert_eq!(got, [None, Some("a")]);
}

/// B38 (d): eight tasks add delayed keys while the queue shuts down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delayed_adds_that_race_with_the_shut_down_neither_block_nor_arrive() {
    let queue = Queue::new();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let queue = queue.clone();
        tasks.spawn(async move {
            for key in 0..1000 {
                queue.add_after(task * 1000 + key, 3600 * SECOND);
                tokio::task::yield_now().await;
            }
        });
    }
    tokio::task::yield_now().await;
    queue.shut_down();
    tasks.join_all().await;
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.waiting.len(), snapshot.delayed.len()), (0, 0));
    assert!(queue.get().await.is_none());
}
