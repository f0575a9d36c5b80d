//! Adding later.

use std::time::Duration;

use kubewire_workqueue::Queue;
use kubewire_workqueue::ratelimit::{ManualClock, Random};

use crate::support::{MS, SECOND, drain, get, timed, waiting};

#[test]
fn a_delayed_key_is_added_once_at_its_moment_and_not_before() {
    let (time, queue) = timed();
    queue.add_after("x", 50 * MS);
    assert_eq!(queue.len(), 0);
    time.advance(49 * MS);
    assert_eq!(queue.len(), 0, "one millisecond before");
    time.advance(MS);
    assert_eq!(queue.len(), 1, "a moment that is now has come");
    assert_eq!(drain(&queue), ["x"]);
    time.advance(10 * SECOND);
    assert_eq!(queue.len(), 0);
}

#[test]
fn of_two_delays_the_earlier_counts_whichever_came_first() {
    for delays in [[50, 70], [70, 50]] {
        let (time, queue) = timed();
        for delay in delays {
            queue.add_after("x", delay * MS);
        }
        time.advance(49 * MS);
        assert_eq!(queue.len(), 0);
        time.advance(11 * MS);
        assert_eq!(drain(&queue), ["x"]);
        time.advance(20 * MS);
        assert_eq!(queue.len(), 0, "once");
    }
}

#[test]
fn delayed_keys_come_in_the_order_of_their_moments() {
    let (time, queue) = timed();
    queue.add_after("a", SECOND);
    queue.add_after("b", 50 * MS);
    time.advance(60 * MS);
    assert_eq!(drain(&queue), ["b"]);
    queue.add_after("c", 2 * SECOND);
    time.advance(SECOND);
    assert_eq!(drain(&queue), ["a"]);
    time.advance(2 * SECOND);
    assert_eq!(drain(&queue), ["c"]);
}

#[test]
fn one_jump_of_the_clock_brings_all_in_the_order_of_their_moments() {
    let (time, queue) = timed();
    queue.add_after("a", SECOND);
    queue.add_after("b", 500 * MS);
    queue.add_after("c", 250 * MS);
    queue.add("first");
    time.advance(2 * SECOND);
    queue.add("last");
    assert_eq!(drain(&queue), ["first", "c", "b", "a", "last"]);
}

#[test]
fn no_delay_and_a_moment_that_has_passed_add_at_once() {
    let (time, queue) = timed();
    queue.add_after("a", Duration::ZERO);
    assert_eq!(queue.len(), 1);
    queue.add_at("b", time.now() - SECOND);
    queue.add_at("c", time.now());
    assert_eq!(queue.len(), 3);
    queue.add_at("d", time.now() + SECOND);
    assert_eq!(drain(&queue), ["a", "b", "c"]);
    time.advance(SECOND);
    assert_eq!(drain(&queue), ["d"]);
}

#[test]
fn an_add_does_not_take_a_delay_back_but_cancel_does() {
    let (time, queue) = timed();
    queue.add_after("x", 5 * SECOND);
    queue.add("x");
    assert_eq!(drain(&queue), ["x"]);
    time.advance(5 * SECOND);
    assert_eq!(drain(&queue), ["x"], "again at its moment");

    queue.add_after("x", 5 * SECOND);
    queue.add("x");
    assert!(queue.cancel_delayed(&"x"));
    assert!(!queue.cancel_delayed(&"x"));
    assert_eq!(queue.len(), 1, "what waits is not touched");
    assert_eq!(drain(&queue), ["x"]);
    queue.add_after("y", 7 * SECOND);
    assert!(queue.cancel_delayed(&"y"));
    time.advance(10 * SECOND);
    assert_eq!(drain(&queue), [""; 0]);
}

#[test]
fn a_key_that_falls_due_while_it_is_processed_waits_again_when_it_is_done() {
    let (time, queue) = timed();
    queue.add_after("x", 10 * MS);
    queue.add("x");
    assert_eq!(get(&queue), Some("x"));
    time.advance(10 * MS);
    assert_eq!((queue.len(), get(&queue)), (0, None));
    queue.done(&"x");
    assert_eq!(get(&queue), Some("x"));
}

/// Scenarios 29 and 31; B38 (a), racing adds.
#[test]
fn delayed_keys_are_dropped_at_the_shut_down_and_later_ones_refused() {
    let (time, queue) = timed();
    queue.add_after("due", MS);
    queue.add_after("never", 3600 * SECOND);
    time.advance(MS);
    queue.shut_down();
    queue.shut_down();
    for _ in 0..5000 {
        queue.add_after("never", 5 * MS);
        queue.add_after("never", Duration::ZERO);
    }
    time.advance(7200 * SECOND);
    assert_eq!(drain(&queue), ["due"], "what was due before is not dropped");
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.dropped_delayed, snapshot.delayed.len(), snapshot.shutting_down), (1, 0, true));
    assert!(!queue.cancel_delayed(&"never"));
}

#[test]
fn a_hundred_thousand_random_delays_are_all_delivered_once() {
    let time = ManualClock::new();
    let queue = Queue::builder().clock(time.clock()).build();
    let mut random = Random::seeded(17);
    let delays: Vec<Duration> = (0..100_000).map(|_| SECOND.mul_f64(random.fraction())).collect();
    for (key, delay) in delays.iter().enumerate() {
        queue.add_after(key, *delay);
    }
    let mut seen = Vec::new();
    for _ in 0..100 {
        time.advance(10 * MS);
        seen.extend(drain(&queue));
    }
    assert!(seen.is_sorted_by_key(|key| delays[*key]));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..100_000));
}

/// B10 (c): the longest delay never ends, does not overflow, and holds nobody up.
#[test]
fn the_longest_delay_never_ends_and_holds_up_nobody() {
    let (time, queue) = timed();
    queue.add_after("never", Duration::MAX);
    queue.add_after("never too", Duration::from_nanos(i64::MAX as u64));
    queue.add_after("soon", MS);
    let mut get = waiting(&queue);
    time.advance(MS);
    assert_eq!(get.settle(), Some(Some("soon")));
    time.advance(Duration::from_secs(100 * 365 * 86_400));
    assert_eq!(queue.len(), 0);
}

/// B10 (a).
#[test]
fn of_three_delays_the_earliest_counts_once() {
    let (time, queue) = timed();
    for delay in [5, 1, 9] {
        queue.add_after("a", delay * SECOND);
    }
    time.advance(SECOND);
    assert_eq!(drain(&queue), ["a"]);
    time.advance(100 * SECOND);
    assert_eq!(queue.len(), 0);
}

/// Scenarios 33 and 52, B38 (c): there is no task that could outlive a queue or hold up its end.
#[tokio::test(start_paused = true)]
async fn a_queue_has_no_task() {
    let queue = Queue::new();
    queue.add_after("later", 3600 * SECOND);
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.is_none() }
    });
    tokio::task::yield_now().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 1, "the waiter");
    let begun = tokio::time::Instant::now();
    queue.shut_down_with_drain().await;
    assert!(waiter.await.unwrap());
    assert_eq!((tasks(), begun.elapsed()), (0, Duration::ZERO));

    let dropped = Queue::new();
    dropped.add_after("later", 3600 * SECOND);
    drop(dropped);
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_gets_delayed_keys_by_the_systems_clock() {
    let queue = Queue::new();
    let begun = tokio::time::Instant::now();
    queue.add_after("b", 20 * MS);
    queue.add_after("a", 10 * MS);
    assert_eq!(queue.get_key().await, Some("a"));
    assert!(begun.elapsed() >= 10 * MS && begun.elapsed() < 20 * MS, "{:?}", begun.elapsed());
    assert_eq!(queue.get_key().await, Some("b"));
}

#[test]
fn a_blocked_thread_gets_delayed_keys_without_a_runtime() {
    let (time, queue) = timed();
    queue.add_after("later", 3600 * SECOND);
    let thread = std::thread::spawn({
        let queue = queue.clone();
        move || queue.get_blocking().map(|key| *key)
    });
    while time.next_wake().is_none() {
        std::thread::yield_now();
    }
    time.advance(3600 * SECOND);
    assert_eq!(thread.join().unwrap(), Some("later"));

    let system = Queue::new();
    system.add_after("soon", MS);
    assert_eq!(system.get_blocking().map(|key| *key), Some("soon"));
}
