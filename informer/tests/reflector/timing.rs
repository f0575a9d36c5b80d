//! How long it waits, on a clock that runs by itself.

use std::time::Duration;

use kubewire_informer::reflector::ReflectorOptions;
use kubewire_ratelimit::{Backoff, ManualClock, Random};
use tokio::time::Instant;

use super::fake_server::{refused, status};
use super::running::Running;

/// The time from the first of so many refusals of the watch to the last try.
async fn refusals(backoff: Backoff, count: u32) -> Vec<Duration> {
    let running = Running::start(false, ReflectorOptions::new().backoff(backoff).random(Random::seeded(3)));
    running.server.list().await.ok(&[], "10");
    let mut watch = running.server.watch().await;
    let mut gaps = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        watch.fail(refused());
        watch = running.server.watch().await;
        gaps.push(start.elapsed());
    }
    running.stop().await;
    gaps
}

#[tokio::test(start_paused = true)]
async fn refused_connections_are_tried_again_after_growing_delays_without_a_list() {
    let millis = Duration::from_millis;
    let backoff = Backoff::new(millis(1)).factor(2.0).jitter(1.0).cap(millis(50)).steps(20);
    let total: Duration = refusals(backoff, 5).await.iter().sum();
    // A timer of tokio rounds up to whole milliseconds.
    assert!((millis(31)..=millis(67)).contains(&total), "{total:?}");
}

#[tokio::test(start_paused = true)]
async fn the_delay_flattens_at_the_cap() {
    let millis = Duration::from_millis;
    let backoff = Backoff::new(millis(1)).factor(2.0).jitter(1.0).cap(millis(50)).steps(20);
    let gaps = refusals(backoff, 40).await;
    assert!(gaps[10..].iter().all(|gap| (millis(50)..=millis(101)).contains(gap)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_custom_back_off_without_jitter_is_kept_to_the_letter() {
    let millis = Duration::from_millis;
    let backoff = Backoff::new(millis(10)).factor(2.0).cap(millis(100)).steps(20);
    assert_eq!(refusals(backoff, 5).await, [10, 20, 40, 80, 100].map(millis));
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_server_asks_for_is_kept() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&["x@10"], "10");
    let start = Instant::now();
    let busy = status(429, "TooManyRequests").with_retry_after(Some(Duration::from_secs(2)));
    running.server.watch().await.fail(busy);
    let watch = running.server.watch().await;
    assert_eq!((watch.version(), start.elapsed()), ("10", Duration::from_secs(2)));
    watch.open().send("+y@11");
    running.store.until("version 11").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_manual_clock_moves_the_delays() {
    let time = ManualClock::new();
    let running = Running::start(false, ReflectorOptions::new().clock(time.clock()));
    running.server.list().await.fail(status(500, "InternalError"));
    // On a single thread the reflector runs while we yield.
    while time.next_wake().is_none() {
        tokio::task::yield_now().await;
    }
    time.advance(Duration::from_millis(700));
    tokio::task::yield_now().await;
    assert!(running.server.is_quiet());
    time.advance(Duration::from_secs(1));
    running.server.list().await.ok(&["a@1"], "1");
    running.store.until("list 1: a@1").await;
    running.stop().await;
}
