//! The shut-down, and those who wait until all is done.

use std::future::poll_fn;
use std::task::Poll;

use kubewire_workqueue::ratelimit::ManualClock;
use kubewire_workqueue::{DrainOutcome, Guard, Queue};
use loom::future::block_on;
use loom::thread;

use crate::{SECOND, model};

#[test]
fn a_shut_down_wakes_all_gets() {
    model(|| {
        let queue: Queue<&str> = Queue::new();
        let consumers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get_key()))
        });
        queue.shut_down();
        assert_eq!(consumers.map(|consumer| consumer.join().unwrap()), [None, None]);
    });
}

#[test]
fn a_shut_down_loses_no_key_that_waits() {
    model(|| {
        let queue = Queue::new();
        let consumers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get_key()))
        });
        queue.add("a");
        queue.shut_down();
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [None, Some("a")]);
    });
}

#[test]
fn a_drain_ends_when_the_last_key_is_done() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let worker = thread::spawn(move || drop(held));
        assert_eq!(block_on(queue.shut_down_with_drain()), DrainOutcome::Drained);
        worker.join().unwrap();
    });
}

#[test]
fn a_full_drain_ends_when_a_worker_has_done_all() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let worker = thread::spawn({
            let queue = queue.clone();
            move || {
                block_on(async {
                    let mut again = true;
                    while let Some(key) = queue.get().await {
                        if std::mem::take(&mut again) {
                            queue.add(*key);
                        }
                    }
                });
            }
        });
        assert_eq!(block_on(queue.shut_down_with_full_drain()), DrainOutcome::Drained);
        assert!(queue.is_empty());
        worker.join().unwrap();
    });
}

#[test]
fn a_shut_down_frees_a_drain() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let _held = queue.try_get().unwrap();
        let drain = thread::spawn({
            let queue = queue.clone();
            move || {
                let drain = queue.shut_down_with_drain();
                block_on(drain)
            }
        });
        while !queue.is_shutting_down() {
            thread::yield_now();
        }
        queue.shut_down();
        // The drain may begin after this shut-down only if its own came first and it has not joined yet.
        queue.done(&"a");
        let outcome = drain.join().unwrap();
        assert!(matches!(outcome, DrainOutcome::Overruled | DrainOutcome::Drained), "{outcome:?}");
    });
}

#[test]
fn a_drain_that_is_dropped_takes_no_end_from_another() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let dropped = thread::spawn({
            let queue = queue.clone();
            move || {
                let mut drain = Box::pin(queue.shut_down_with_drain());
                block_on(poll_fn(|cx| Poll::Ready(drain.as_mut().poll(cx).is_ready())))
            }
        });
        let worker = thread::spawn(move || drop(held));
        assert_eq!(block_on(queue.shut_down_with_drain()), DrainOutcome::Drained);
        dropped.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn a_drain_with_a_deadline_ends_by_whichever_comes() {
    model(|| {
        let time = ManualClock::new();
        let queue = Queue::builder().clock(time.clock()).build();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let drain = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.shut_down_with_drain().within(SECOND))
        });
        time.advance(SECOND);
        drop(held);
        // Where the drain began after the advance only the worker can end it.
        let outcome = drain.join().unwrap();
        assert!(matches!(outcome, DrainOutcome::Drained | DrainOutcome::TimedOut { processing: 1, waiting: 0 }));
    });
}

#[test]
fn a_drain_ends_at_its_deadline_though_nobody_is_done() {
    model(|| {
        let time = ManualClock::new();
        let queue = Queue::builder().clock(time.clock()).build();
        queue.add("a");
        let _held = queue.try_get().unwrap();
        let deadline = time.now() + SECOND;
        let drains = [
            thread::spawn({
                let queue = queue.clone();
                move || block_on(queue.shut_down_with_drain().until(deadline))
            }),
            thread::spawn({
                let queue = queue.clone();
                move || queue.shut_down_with_drain().until(deadline).block()
            }),
        ];
        time.advance(SECOND);
        for drain in drains {
            assert_eq!(drain.join().unwrap(), DrainOutcome::TimedOut { processing: 1, waiting: 0 });
        }
    });
}

/// The delayed keys are dropped, and with them the time that a get keeps.
#[test]
fn a_shut_down_ends_gets_that_wait_for_a_delay() {
    model(|| {
        let time = ManualClock::new();
        let queue = Queue::builder().clock(time.clock()).build();
        queue.add_after("a", SECOND);
        let waiting = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        let blocked = thread::spawn({
            let queue = queue.clone();
            move || queue.get_blocking().map(Guard::into_key)
        });
        queue.shut_down();
        assert_eq!([waiting.join().unwrap(), blocked.join().unwrap()], [None, None]);
        assert_eq!(queue.snapshot().dropped_delayed, 1);
    });
}
