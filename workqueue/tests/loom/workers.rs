//! Those who process keys: guards, panics, order, metrics.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use kubewire_workqueue::{ByPriority, Guard, MetricsProvider, Queue, QueueMetrics};
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use loom::thread;

use crate::model;

#[test]
fn no_key_is_processed_by_two_workers_at_a_time() {
    model(|| {
        let queue = Queue::new();
        let busy = Arc::new(AtomicBool::new(false));
        let workers = [(); 2].map(|()| {
            let (queue, busy) = (queue.clone(), Arc::clone(&busy));
            thread::spawn(move || {
                block_on(async {
                    while let Some(key) = queue.get().await {
                        assert!(!busy.swap(true, Ordering::SeqCst), "two at a time");
                        busy.store(false, Ordering::SeqCst);
                        drop(key);
                    }
                });
            })
        });
        queue.add("a");
        queue.add("a");
        queue.shut_down();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn a_worker_that_panics_gives_its_key_back_with_what_was_added_meanwhile() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let worker = thread::spawn(move || {
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let _held = held;
                // Without the message of a panic.
                resume_unwind(Box::new("it went wrong"));
            }));
            assert!(worked.is_err());
        });
        queue.add("a");
        assert_eq!(block_on(queue.get_key()), Some("a"));
        worker.join().unwrap();
        assert!(queue.done(&"a"));
        assert!(queue.is_empty());
    });
}

/// A guard and a `done` by name for the same key, at once: one of them counts.
#[test]
fn a_key_is_done_once_though_two_say_so() {
    model(|| {
        let queue = Queue::new();
        queue.add("a");
        let held = queue.try_get().unwrap();
        let worker = thread::spawn(move || drop(held));
        queue.done(&"a");
        queue.add("a");
        let again = block_on(queue.get_key());
        assert_eq!(again, Some("a"));
        worker.join().unwrap();
        assert_eq!(queue.snapshot().processing.len(), 1, "the old guard ends nothing new");
    });
}

#[test]
fn the_first_in_order_of_all_that_wait_is_handed_out() {
    model(|| {
        let queue = Queue::builder().order(ByPriority::new(|key: &u32| *key)).build();
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || {
                let first = block_on(queue.get());
                let second = block_on(queue.get());
                (first.map(Guard::into_key), second.map(Guard::into_key))
            }
        });
        queue.add(1);
        queue.add(2);
        let got = consumer.join().unwrap();
        assert!(matches!(got, (Some(1), Some(2)) | (Some(2), Some(1))), "{got:?}");

        // All that follow are there before the first get.
        let producers = [3, 4].map(|key| {
            let queue = queue.clone();
            thread::spawn(move || queue.add(key))
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!([queue.try_get().unwrap().into_key(), queue.try_get().unwrap().into_key()], [4, 3]);
    });
}

/// Counts what it is told, and looks into the queue meanwhile.
#[derive(Default)]
struct Counts {
    depth: AtomicI64,
    adds: AtomicI64,
    gets: AtomicI64,
    dones: AtomicI64,
    queue: std::sync::OnceLock<Queue<&'static str>>,
}

impl Counts {
    fn look(&self) {
        self.queue.get().map(Queue::len);
    }
}

struct Tells(std::sync::Arc<Counts>);

impl QueueMetrics for Tells {
    fn depth(&self, change: i64) {
        self.0.look();
        self.0.depth.fetch_add(change, Ordering::SeqCst);
    }

    fn adds(&self, count: u64) {
        self.0.adds.fetch_add(count.cast_signed(), Ordering::SeqCst);
    }

    fn queue_duration(&self, _: Duration) {
        self.0.gets.fetch_add(1, Ordering::SeqCst);
    }

    fn work_duration(&self, _: Duration) {
        self.0.look();
        self.0.dones.fetch_add(1, Ordering::SeqCst);
    }
}

impl MetricsProvider for Tells {
    fn queue_metrics(&self, _: &str) -> Box<dyn QueueMetrics> {
        Box::new(Self(std::sync::Arc::clone(&self.0)))
    }
}

#[test]
fn metrics_add_up_and_are_told_without_the_lock() {
    model(|| {
        let counts = std::sync::Arc::new(Counts::default());
        let metrics = std::sync::Arc::new(Tells(std::sync::Arc::clone(&counts)));
        let queue = Queue::builder().name("model").metrics(metrics).build();
        let inside = queue.clone();
        // Not a handle that keeps the queue alive for ever: it is taken out in the end.
        assert!(counts.queue.set(inside).is_ok());
        let worker = thread::spawn({
            let queue = queue.clone();
            move || {
                block_on(async {
                    while let Some(key) = queue.get().await {
                        drop(key);
                    }
                });
            }
        });
        queue.add("a");
        queue.add("a");
        queue.shut_down();
        worker.join().unwrap();
        let (adds, gets) = (counts.adds.load(Ordering::SeqCst), counts.gets.load(Ordering::SeqCst));
        assert_eq!((counts.depth.load(Ordering::SeqCst), counts.dones.load(Ordering::SeqCst)), (0, gets));
        assert!(adds == gets && (1..=2).contains(&adds));
    });
}
