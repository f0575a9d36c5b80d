//! Retries that wait as a limiter says.

use std::time::Duration;

use kubewire_workqueue::ratelimit::{ItemExponentialFailureRateLimiter, ManualClock, default_controller_rate_limiter};
use kubewire_workqueue::{Queue, RateLimitingQueue};

use crate::support::{MS, SECOND, drain};

fn exponential() -> (ManualClock, RateLimitingQueue<&'static str>) {
    let time = ManualClock::new();
    let limiter = ItemExponentialFailureRateLimiter::new(MS, SECOND);
    let queue = Queue::builder().clock(time.clock()).build_rate_limiting(limiter);
    (time, queue)
}

#[test]
fn each_retry_of_a_key_waits_longer_until_it_is_forgotten() {
    let (time, queue) = exponential();
    let delays = ["one", "one", "two"].map(|key| queue.add_rate_limited_after(key).as_millis());
    assert_eq!(delays, [1, 2, 1]);
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (2, 1));
    queue.forget(&"one");
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (0, 1));
    assert_eq!(queue.add_rate_limited_after("one").as_millis(), 1);
    time.advance(MS);
    assert_eq!(drain(&queue), ["one", "two"]);
}

#[test]
fn a_forgotten_key_that_is_delayed_still_comes() {
    let (time, queue) = exponential();
    queue.add_rate_limited("one");
    queue.forget(&"one");
    assert_eq!(queue.num_requeues(&"one"), 0, "it is charged by the call, not when it falls due");
    time.advance(MS);
    assert_eq!(drain(&queue), ["one"]);
    assert_eq!(queue.num_requeues(&"one"), 0);
    queue.forget(&"unknown");
}

#[test]
fn the_limiter_counts_after_the_shut_down_though_nothing_is_queued() {
    let (time, queue) = exponential();
    queue.shut_down();
    queue.add_rate_limited("one");
    queue.add_rate_limited("one");
    time.advance(SECOND);
    assert_eq!((queue.num_requeues(&"one"), queue.len()), (2, 0));
}

#[test]
fn a_clone_shares_queue_and_limiter() {
    let (_, queue) = exponential();
    let clone = queue.clone();
    queue.add_rate_limited("one");
    assert_eq!(clone.num_requeues(&"one"), 1);
    clone.add("two");
    assert_eq!((queue.len(), queue.queue().len()), (1, 1));
}

/// B22: after success the next failure costs the base again, and a key that never ends its failing never runs hot.
#[test]
fn a_key_that_always_fails_never_runs_hot() {
    let time = ManualClock::new();
    let queue = Queue::builder().clock(time.clock()).build_rate_limiting(default_controller_rate_limiter());
    let delays: Vec<Duration> = (0..1100).map(|_| queue.add_rate_limited_after("one")).collect();
    assert!(delays.is_sorted() && delays[0] == 5 * MS, "never shorter than before");
    queue.forget(&"one");
    time.advance(3600 * SECOND);
    assert_eq!(queue.add_rate_limited_after("one"), 5 * MS);
}

#[test]
fn a_limited_add_waits_for_the_shorter_of_two_delays_and_is_charged_once() {
    let (_time, queue) = exponential();
    let hour = Duration::from_secs(3600);
    // what is asked for at most | the delay
    let rows = [(hour, Duration::from_millis(1)), (Duration::ZERO, Duration::ZERO), (hour, Duration::from_millis(4))];
    for (nth, (at_most, want)) in rows.into_iter().enumerate() {
        assert_eq!(queue.add_rate_limited_at_priority("a", 0, at_most), want);
        assert_eq!(queue.num_requeues(&"a"), nth as u32 + 1);
    }
    // Each key has delays of its own.
    assert_eq!(queue.add_rate_limited_at_priority("b", 0, Duration::MAX), Duration::from_millis(1));
}
