//! Gets that wait: who is woken, who keeps the time, what a dropped one leaves.

use std::time::Duration;

use kubewire_workqueue::{Queue, TryGetError};

use crate::support::{MS, Polled, SECOND, drain, get, timed, waiting};

#[test]
fn each_add_wakes_one_get_in_the_order_in_which_they_came() {
    let (_, queue) = timed();
    let mut gets = [waiting(&queue), waiting(&queue), waiting(&queue)];
    queue.add("a");
    assert_eq!(gets.each_ref().map(Polled::is_woken), [true, false, false]);
    queue.add("a");
    assert_eq!(gets.each_ref().map(Polled::is_woken), [true, false, false], "it waits already");
    queue.add("b");
    assert_eq!(gets.each_ref().map(Polled::is_woken), [true, true, false]);
    assert_eq!(gets[1].settle(), Some(Some("a")));
    assert_eq!(gets[0].settle(), Some(Some("b")));
    assert_eq!(gets[2].wakes(), 0);
}

#[test]
fn a_newcomer_does_not_take_the_key_for_which_another_was_woken() {
    let (_, queue) = timed();
    let mut first = waiting(&queue);
    queue.add("a");
    assert_eq!(queue.try_get().unwrap_err(), TryGetError::Empty);
    let mut newcomer = waiting(&queue);
    assert_eq!(queue.len(), 1);
    assert_eq!(first.settle(), Some(Some("a")));
    queue.add("b");
    assert_eq!(newcomer.settle(), Some(Some("b")));
}

#[test]
fn a_get_that_was_woken_and_is_dropped_passes_the_key_on() {
    let (_, queue) = timed();
    let first = waiting(&queue);
    let mut second = waiting(&queue);
    queue.add("a");
    queue.add_after("later", SECOND);
    assert!(first.is_woken());
    drop(first);
    assert!(second.is_woken());
    assert_eq!(second.settle(), Some(Some("a")));

    let only = waiting(&queue);
    queue.add("b");
    drop(only);
    assert_eq!(get(&queue), Some("b"), "or leaves it to whoever comes");
}

#[test]
fn a_get_that_is_dropped_in_line_is_not_woken() {
    let (_, queue) = timed();
    let mut gets: Vec<_> = (0..4).map(|_| waiting(&queue)).collect();
    gets.remove(1);
    gets.remove(0);
    queue.add("a");
    queue.add("b");
    assert_eq!(gets[0].settle(), Some(Some("a")));
    assert_eq!(gets[1].settle(), Some(Some("b")));
}

#[test]
fn one_get_keeps_the_time_and_the_first_in_line_is_served() {
    let (time, queue) = timed();
    let (mut first, mut second) = (waiting(&queue), waiting(&queue));
    queue.add_after("a", 10 * MS);
    assert_eq!([first.is_woken(), second.is_woken()], [false, true], "the last in line takes the time over");
    assert_eq!(second.settle(), None);
    assert_eq!(time.next_wake(), Some(time.now() + 10 * MS));
    time.advance(10 * MS);
    assert!(second.is_woken());
    assert_eq!(second.settle(), None);
    assert_eq!(first.settle(), Some(Some("a")));
}

#[test]
fn a_delayed_key_wakes_one_get_though_several_came_after_it() {
    let (time, queue) = timed();
    queue.add_after("a", 10 * MS);
    let (mut first, second) = (waiting(&queue), waiting(&queue));
    time.advance(10 * MS);
    assert_eq!([first.is_woken(), second.is_woken()], [true, false], "the first keeps the time for all");
    assert_eq!(first.settle(), Some(Some("a")));
}

#[test]
fn an_earlier_moment_wakes_who_keeps_the_time() {
    let (time, queue) = timed();
    queue.add_after("later", 3600 * SECOND);
    let mut get = waiting(&queue);
    assert_eq!(time.next_wake(), Some(time.now() + 3600 * SECOND));
    queue.add_after("much later", 7200 * SECOND);
    assert!(!get.is_woken());
    queue.add_after("soon", MS);
    assert!(get.is_woken());
    assert_eq!(get.settle(), None);
    assert_eq!(time.next_wake(), Some(time.now() + MS));
    time.advance(MS);
    assert_eq!(get.settle(), Some(Some("soon")));
}

#[test]
fn nobody_keeps_the_time_for_a_moment_that_is_not_to_come() {
    let (time, queue) = timed();
    let mut get = waiting(&queue);
    for (key, delay) in [("at once", Duration::ZERO), ("soon", MS)] {
        queue.add_after(key, delay);
        time.advance(delay);
        assert_eq!(get.settle(), Some(Some(key)));
        get = waiting(&queue);
        assert_eq!(time.next_wake(), None, "{key}");
    }
}

#[test]
fn who_keeps_the_time_hands_it_over_when_it_is_dropped_or_gets_a_key() {
    let (time, queue) = timed();
    let mut first = waiting(&queue);
    let mut second = waiting(&queue);
    queue.add_after("later", SECOND);
    assert_eq!(second.settle(), None);
    drop(second);
    assert_eq!(first.settle(), None, "takes over");
    assert_eq!(time.next_wake(), Some(time.now() + SECOND));

    let mut third = waiting(&queue);
    queue.add("now");
    assert_eq!(first.settle(), Some(Some("now")));
    assert_eq!(third.settle(), None, "takes over");
    assert_eq!(time.next_wake(), Some(time.now() + SECOND));
    time.advance(SECOND);
    assert_eq!(third.settle(), Some(Some("later")));
}

/// As in `select!`: each turn makes a get and drops it.
#[test]
fn gets_that_are_polled_once_and_dropped_miss_nothing() {
    let (time, queue) = timed();
    queue.add_after("later", 5 * MS);
    let mut other = waiting(&queue);
    for _ in 0..5 {
        drop(waiting(&queue));
        time.advance(MS);
    }
    assert_eq!(other.settle(), Some(Some("later")));
    assert_eq!(time.next_wake(), None);
}

#[test]
fn a_cancelled_delay_wakes_no_get_in_vain_for_a_key() {
    let (time, queue) = timed();
    queue.add_after("later", MS);
    let mut get = waiting(&queue);
    queue.cancel_delayed(&"later");
    time.advance(MS);
    assert_eq!(get.settle(), None);
    assert_eq!(time.next_wake(), None);
    queue.add("a");
    assert_eq!(get.settle(), Some(Some("a")));
}

#[test]
fn keys_that_fall_due_are_seen_by_any_operation_and_wake_the_gets() {
    let (time, queue) = timed();
    let mut gets = [waiting(&queue), waiting(&queue)];
    queue.add_after("a", MS);
    queue.add_after("b", MS);
    time.advance(MS);
    assert_eq!(queue.len(), 2, "though nobody was polled since");
    assert_eq!(gets.each_ref().map(Polled::is_woken), [true, true]);
    assert_eq!(gets[0].settle(), Some(Some("a")));
    assert_eq!(gets[1].settle(), Some(Some("b")));
}

#[tokio::test]
async fn a_worker_that_always_finds_a_key_lets_others_run() {
    let queue = Queue::new();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut rounds = 0_u64;
            while let Some(key) = queue.get().await {
                rounds += 1;
                queue.add(*key);
            }
            rounds
        }
    });
    queue.add("again and again");
    // Were the worker never to yield, this one would never run again.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    queue.shut_down();
    assert!(worker.await.unwrap() > 0);
    assert_eq!(drain(&queue), [""; 0]);
}

#[tokio::test]
async fn gets_may_begin_before_their_runtime_and_queues_live_outside_one() {
    let queue = std::thread::spawn(Queue::new).join().unwrap();
    let get = queue.get();
    queue.add(1);
    assert_eq!(get.await.map(|key| *key), Some(1));
}
