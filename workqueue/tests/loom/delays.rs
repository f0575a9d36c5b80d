//! Delayed keys: who keeps the time, and who takes over.

use kubewire_workqueue::ratelimit::{ItemExponentialFailureRateLimiter, ManualClock};
use kubewire_workqueue::{Guard, Queue};
use loom::future::block_on;
use loom::thread;

use crate::{SECOND, model, poll_once};

fn queue(time: &ManualClock) -> Queue<&'static str> {
    Queue::builder().clock(time.clock()).build()
}

#[test]
fn who_keeps_the_time_hands_it_over_when_dropped() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("a", SECOND);
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
        time.advance(SECOND);
        dropped.join().unwrap();
        assert!(consumer.join().unwrap().is_some());
    });
}

#[test]
fn a_delay_reaches_a_get_that_waits_already() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("later", 10 * SECOND);
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add_after("soon", SECOND);
        time.advance(SECOND);
        assert_eq!(consumer.join().unwrap(), Some("soon"));
    });
}

#[test]
fn two_gets_receive_an_added_and_a_delayed_key() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("later", SECOND);
        let consumers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get_key()))
        });
        queue.add("now");
        time.advance(SECOND);
        let mut got = consumers.map(|consumer| consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [Some("later"), Some("now")]);
    });
}

#[test]
fn an_earlier_delay_is_kept_though_who_kept_the_later_one_is_dropped() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("later", 10 * SECOND);
        let dropped = thread::spawn({
            let queue = queue.clone();
            move || poll_once(&queue)
        });
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add_after("soon", SECOND);
        time.advance(SECOND);
        if dropped.join().unwrap().is_some() {
            queue.add("other");
        }
        assert!(matches!(consumer.join().unwrap(), Some("soon" | "other")));
    });
}

#[test]
fn a_blocking_get_is_woken_for_an_earlier_delay() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("later", 10 * SECOND);
        let blocked = thread::spawn({
            let queue = queue.clone();
            move || queue.get_blocking().map(Guard::into_key)
        });
        queue.add_after("soon", SECOND);
        time.advance(SECOND);
        assert_eq!(blocked.join().unwrap(), Some("soon"));
    });
}

/// A task and a thread wait; one of them keeps the time, and hands it over when it has a key.
#[test]
fn a_blocking_get_and_a_waiting_one_receive_an_added_and_a_delayed_key() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("later", SECOND);
        let blocked = thread::spawn({
            let queue = queue.clone();
            move || queue.get_blocking().map(Guard::into_key)
        });
        let waiting = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        queue.add("now");
        time.advance(SECOND);
        let mut got = [blocked.join().unwrap(), waiting.join().unwrap()];
        got.sort_unstable();
        assert_eq!(got, [Some("later"), Some("now")]);
    });
}

/// Who kept the time of a delay that is taken back still hears of the next add.
#[test]
fn a_delay_that_is_taken_back_leaves_nobody_waiting_for_it_alone() {
    model(|| {
        let time = ManualClock::new();
        let queue = queue(&time);
        queue.add_after("a", SECOND);
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        let cancelled = queue.cancel_delayed(&"a");
        queue.add_after("b", 2 * SECOND);
        time.advance(2 * SECOND);
        assert!(cancelled);
        assert_eq!(consumer.join().unwrap(), Some("b"));
    });
}

#[test]
fn rate_limited_adds_of_two_workers_are_both_counted_and_wake_a_get() {
    model(|| {
        let time = ManualClock::new();
        let limiter = ItemExponentialFailureRateLimiter::new(SECOND, 10 * SECOND);
        let queue = Queue::builder().clock(time.clock()).build_rate_limiting(limiter);
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.get_key())
        });
        let worker = thread::spawn({
            let queue = queue.clone();
            move || queue.add_rate_limited_after("a")
        });
        let mut delays = [queue.add_rate_limited_after("a"), worker.join().unwrap()];
        delays.sort_unstable();
        assert_eq!(delays, [SECOND, 2 * SECOND]);
        assert_eq!(queue.num_requeues(&"a"), 2);
        time.advance(SECOND);
        assert_eq!(consumer.join().unwrap(), Some("a"));
        assert!(queue.is_empty() && queue.snapshot().delayed.is_empty(), "the later one is merged into the earlier");
    });
}
