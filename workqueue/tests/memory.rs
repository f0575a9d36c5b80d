//! A million delayed keys: what they take, and that it comes back. (B30: kubernetes/client-go#701.)
//!
//! A test binary of its own, because it counts all bytes of its process.
#![cfg(not(loom))]

use std::alloc::System;
use std::task::{Context, Waker};
use std::time::Duration;

use kubewire_workqueue::Queue;
use kubewire_workqueue::ratelimit::{ManualClock, Random};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[test]
fn a_million_delayed_keys_take_one_entry_and_no_timer_each() {
    const KEYS: usize = 1_000_000;
    const HOUR: Duration = Duration::from_secs(3600);
    let time = ManualClock::new();
    let queue: Queue<u64> = Queue::builder().clock(time.clock()).build();
    let mut random = Random::seeded(1);
    let start = allocated();

    let mut add_all = || (0..KEYS as u64).for_each(|key| queue.add_after(key, HOUR.mul_f64(10.0 + random.fraction())));
    add_all();
    let first = allocated() - start;
    assert!(first / KEYS <= 200, "{} bytes a key", first / KEYS);
    add_all();
    assert_eq!(allocated() - start, first, "a later round finds an entry");

    // One that is due soon is not held up: one waiting get, one timer.
    let mut get = Box::pin(queue.get_key());
    let mut context = Context::from_waker(Waker::noop());
    assert!(get.as_mut().poll(&mut context).is_pending());
    queue.add_after(u64::MAX, Duration::from_millis(1));
    assert!(get.as_mut().poll(&mut context).is_pending());
    assert_eq!(time.next_wake(), Some(time.now() + Duration::from_millis(1)));
    time.advance(Duration::from_millis(1));
    assert!(get.as_mut().poll(&mut context).is_ready());
    drop(get);
    queue.done(&u64::MAX);

    queue.shut_down();
    assert_eq!(queue.snapshot().dropped_delayed, KEYS);
    assert!(allocated() - start < 64 * 1024, "{} bytes are left after the shut-down", allocated() - start);
}
