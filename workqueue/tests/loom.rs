//! Who waits and who wakes, in every interleaving.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p kubewire-workqueue --test loom --release
//! ```
//!
//! Each model is a few threads with a few operations; loom runs it in all orders of their locks and wake-ups (with at
//! most three preemptions in a run) and reports a deadlock, a lost wake-up, or a failed assertion. A get that is never
//! woken is a deadlock, so most models assert by ending.
#![cfg(loom)]

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kubewire_workqueue::ratelimit::ManualClock;
use kubewire_workqueue::{DrainOutcome, Queue};
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

const SECOND: Duration = Duration::from_secs(1);

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A manual clock that moves at any point between the polls of others. The clock itself is none of loom's, so what is
/// to be interleaved with it touches `steps` as well.
#[derive(Clone)]
struct Time {
    clock: ManualClock,
    steps: Arc<AtomicUsize>,
}

impl Time {
    fn new() -> Self {
        Self { clock: ManualClock::new(), steps: Arc::new(AtomicUsize::new(0)) }
    }

    fn queue(&self) -> Queue<&'static str> {
        Queue::builder().clock(self.clock.clock()).build()
    }

    fn advance(&self, by: Duration) {
        self.step();
        self.clock.advance(by);
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::SeqCst);
    }

    /// A get, with a step after each poll.
    fn get(&self, queue: &Queue<&'static str>) -> Option<&'static str> {
        block_on(async {
            let mut get = pin!(queue.get_key());
            std::future::poll_fn(|cx| {
                let poll = get.as_mut().poll(cx);
                self.step();
                poll
            })
            .await
        })
    }

    /// Begins a get, polls it once, and drops it if it waits.
    fn get_and_drop(&self, queue: &Queue<&'static str>) -> Option<&'static str> {
        block_on(async {
            let mut get = pin!(queue.get_key());
            std::future::poll_fn(|cx| {
                let poll = get.as_mut().poll(cx);
                self.step();
                match poll {
                    Poll::Ready(key) => Poll::Ready(key),
                    Poll::Pending => Poll::Ready(None),
                }
            })
            .await
        })
    }
}

#[test]
fn an_add_wakes_a_waiting_get() {
    model(|| {
        let queue = Queue::new();
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("a");
        assert_eq!(consumer.join().unwrap(), Some("a"));
    });
}

#[test]
fn two_adds_reach_two_waiting_gets() {
    model(|| {
        let queue = Queue::new();
        let consumers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get_key()))
        });
        queue.add("a");
        queue.add("b");
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [Some("a"), Some("b")]);
    });
}

/// A change before an add is seen by some processing after it, though adds are merged.
#[test]
fn the_last_change_of_a_key_is_always_processed() {
    model(|| {
        let queue = Queue::new();
        let version = Arc::new(AtomicUsize::new(0));
        let producer = thread::spawn({
            let (queue, version) = (queue.clone(), Arc::clone(&version));
            move || {
                for change in 1..=2 {
                    version.store(change, Ordering::Release);
                    queue.add("a");
                }
                queue.shut_down();
            }
        });
        let mut seen = 0;
        block_on(async {
            while let Some(_key) = queue.get().await {
                seen = version.load(Ordering::Acquire);
            }
        });
        producer.join().unwrap();
        assert_eq!(seen, 2);
    });
}

#[test]
fn a_key_added_while_it_is_processed_reaches_another_get_when_it_is_done() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        let producer = thread::spawn({
            let queue = queue.clone();
            move || queue.add("a")
        });
        producer.join().unwrap();
        drop(held);
        assert_eq!(consumer.join().unwrap(), Some("a"));
    });
}

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
fn a_get_that_is_dropped_passes_its_key_on() {
    model(|| {
        let time = Time::new();
        let queue = time.queue();
        let dropped = thread::spawn({
            let (queue, time) = (queue.clone(), time.clone());
            move || {
                if time.get_and_drop(&queue).is_some() {
                    queue.add("b");
                }
            }
        });
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("a");
        dropped.join().unwrap();
        assert!(consumer.join().unwrap().is_some());
    });
}

#[test]
fn who_keeps_the_time_hands_it_over_when_dropped() {
    model(|| {
        let time = Time::new();
        let queue = time.queue();
        queue.add_after("a", SECOND);
        let dropped = thread::spawn({
            let (queue, time) = (queue.clone(), time.clone());
            move || {
                if time.get_and_drop(&queue).is_some() {
                    queue.add("b");
                }
            }
        });
        let consumer = thread::spawn({
            let (queue, time) = (queue.clone(), time.clone());
            move || time.get(&queue)
        });
        time.advance(SECOND);
        dropped.join().unwrap();
        assert!(consumer.join().unwrap().is_some());
    });
}

#[test]
fn a_delay_reaches_a_get_that_waits_already() {
    model(|| {
        let time = Time::new();
        let queue = time.queue();
        queue.add_after("later", 10 * SECOND);
        let consumer = thread::spawn({
            let (queue, time) = (queue.clone(), time.clone());
            move || time.get(&queue)
        });
        queue.add_after("soon", SECOND);
        time.advance(SECOND);
        assert_eq!(consumer.join().unwrap(), Some("soon"));
    });
}

#[test]
fn two_gets_receive_an_added_and_a_delayed_key() {
    model(|| {
        let time = Time::new();
        let queue = time.queue();
        queue.add_after("later", SECOND);
        let consumers = [(); 2].map(|()| {
            let (queue, time) = (queue.clone(), time.clone());
            thread::spawn(move || time.get(&queue))
        });
        queue.add("now");
        time.advance(SECOND);
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [Some("later"), Some("now")]);
    });
}
