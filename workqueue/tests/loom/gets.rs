//! Gets: who waits, who is woken, who leaves.

use std::task::{Context, Waker};

use kubewire_workqueue::{Guard, Queue};
use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::{model, poll_once};

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
fn a_get_that_is_dropped_passes_its_key_on() {
    model(|| {
        let queue = Queue::new();
        let dropped = thread::spawn({
            let queue = queue.clone();
            move || {
                if poll_once(&queue).is_some() {
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
fn a_wake_up_passes_over_two_dropped_gets_to_the_one_that_stays() {
    model(|| {
        let queue = Queue::new();
        let dropped = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || poll_once(&queue))
        });
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("a");
        if dropped.map(|get| get.join().unwrap()).iter().any(Option::is_some) {
            queue.add("b");
        }
        assert!(consumer.join().unwrap().is_some());
    });
}

/// The get is dropped without another poll, whether it was called meanwhile or not. (Before its first poll it has no
/// place in line, so that there is nothing to pass on.)
#[test]
fn a_get_that_is_dropped_after_it_was_woken_passes_its_key_on() {
    model(|| {
        let queue = Queue::new();
        let woken = Arc::new(AtomicBool::new(false));
        let dropped = thread::spawn({
            let (queue, woken) = (queue.clone(), Arc::clone(&woken));
            move || {
                let waker = Waker::from(std::sync::Arc::new(Flag(woken)));
                let mut get = Box::pin(queue.get_key());
                let first = get.as_mut().poll(&mut Context::from_waker(&waker));
                thread::yield_now();
                drop(get);
                first.is_ready()
            }
        });
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("a");
        if dropped.join().unwrap() {
            queue.add("b");
        }
        assert!(consumer.join().unwrap().is_some());
    });
}

/// Sets a flag when woken.
struct Flag(Arc<AtomicBool>);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_blocking_get_is_woken_by_an_add_beside_a_get_that_is_dropped() {
    model(|| {
        let queue = Queue::new();
        let blocked = thread::spawn({
            let queue = queue.clone();
            move || queue.get_blocking().map(Guard::into_key)
        });
        let dropped = thread::spawn({
            let queue = queue.clone();
            move || poll_once(&queue)
        });
        queue.add("a");
        if dropped.join().unwrap().is_some() {
            queue.add("b");
        }
        assert!(blocked.join().unwrap().is_some());
    });
}

/// Who comes while a key is reserved for a get that is called may not take it.
#[test]
fn a_try_get_takes_no_key_from_a_get_that_is_called() {
    model(|| {
        let queue = Queue::new();
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("a");
        match queue.try_get() {
            Ok(key) => {
                queue.add("b");
                drop(key);
                assert_eq!(consumer.join().unwrap(), Some("b"));
            }
            Err(_) => assert_eq!(consumer.join().unwrap(), Some("a")),
        }
    });
}
