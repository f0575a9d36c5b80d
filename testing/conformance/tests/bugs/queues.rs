//! Queues and limiters: B10, B22, B30, B38. They are asked directly: no server has a part in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use kubewire_ratelimit::{
    BackoffTable, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter, ManualClock, RateLimiter,
    WithMaxWaitRateLimiter,
};
use kubewire_workqueue::{Queue, RateLimitingQueue};

const SECOND: Duration = Duration::from_secs(1);
/// The longest delay of a limiter.
const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);

fn queue() -> (ManualClock, Queue<&'static str>) {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clock()).build();
    (clock, queue)
}

fn next(queue: &Queue<&'static str>) -> Option<&'static str> {
    queue.try_get().ok().map(|guard| *guard.key())
}

/// B10: a table of delays; what comes, and when.
#[test]
fn of_several_delays_the_earliest_counts_once_and_none_is_lost() {
    // the delays of one key, when it comes
    let table: [(&[Duration], Option<u64>); 7] = [
        (&[SECOND.saturating_mul(5), SECOND, SECOND.saturating_mul(9)], Some(1)),
        (&[Duration::ZERO], Some(0)),
        (&[Duration::from_nanos(0), SECOND], Some(0)),
        (&[Duration::MAX], None),
        (&[Duration::MAX, SECOND.saturating_mul(2)], Some(2)),
        (&[SECOND.saturating_mul(3), Duration::MAX, SECOND.saturating_mul(3)], Some(3)),
        (&[Duration::from_secs(1 << 40)], None),
    ];
    for (delays, moment) in table {
        let (clock, queue) = queue();
        for delay in delays {
            queue.add_after("a", *delay);
        }
        let mut came = Vec::new();
        for second in 0..20 {
            came.extend(next(&queue).map(|_| second));
            clock.advance(SECOND);
        }
        // Of zero and a later one both come: the first is not waiting any more when the second falls due.
        let expected: Vec<u64> = moment.into_iter().collect();
        let again = delays.len() == 2 && delays[0].is_zero();
        assert_eq!(came, if again { vec![0, 1] } else { expected }, "{delays:?}");
    }
}

/// B10: a moment that has passed is now.
#[test]
fn a_deadline_that_has_passed_is_now() {
    let (clock, queue) = queue();
    let then = clock.now();
    clock.advance(SECOND);
    queue.add_at("a", then);
    queue.add_after("b", then.saturating_duration_since(clock.now()));
    assert_eq!((next(&queue), next(&queue), next(&queue)), (Some("a"), Some("b"), None));
}

/// B10: a plain add leaves the delay: documented, as client-go.
#[test]
fn a_key_that_is_added_and_delayed_comes_twice() {
    let (clock, queue) = queue();
    queue.add_after("a", SECOND * 3600 * 5);
    queue.add("a");
    assert_eq!(next(&queue), Some("a"));
    assert_eq!(next(&queue), None);
    clock.advance(SECOND * 3600 * 5);
    assert_eq!(next(&queue), Some("a"));
}

/// B10: the longest delay blocks nobody who waits behind it.
#[tokio::test(start_paused = true)]
async fn a_get_is_woken_by_the_earliest_of_all_delays() {
    let queue = Queue::new();
    queue.add_after("never", Duration::MAX);
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get_key().await }
    });
    tokio::task::yield_now().await;
    queue.add_after("later", SECOND * 60);
    queue.add_after("soon", SECOND);
    let before = tokio::time::Instant::now();
    assert_eq!(waits.await.unwrap(), Some("soon"));
    assert!(before.elapsed() < SECOND * 2, "{:?}", before.elapsed());
}

/// B22: for every limiter and odd setting: never falling, never above the longest, however often it fails.
#[test]
fn delays_of_a_key_never_fall_and_never_pass_their_limit() {
    let settings = [
        (Duration::from_millis(5), SECOND * 1000),
        (Duration::from_nanos(1), SECOND * 1000),
        (Duration::from_nanos(1), Duration::MAX),
        (Duration::MAX, Duration::MAX),
        (SECOND * 10, SECOND),
        (Duration::ZERO, SECOND),
        (SECOND, Duration::ZERO),
    ];
    for (base, max) in settings {
        let limiters: [Box<dyn RateLimiter<&str>>; 3] = [
            Box::new(ItemExponentialFailureRateLimiter::new(base, max)),
            Box::new(WithMaxWaitRateLimiter::new(ItemExponentialFailureRateLimiter::new(base, Duration::MAX), max)),
            Box::new(ItemFastSlowRateLimiter::new(base.min(max), max, 5)),
        ];
        for mut limiter in limiters {
            let now = Instant::now();
            let mut last = Duration::ZERO;
            let first = limiter.when(&"a", now);
            // Some count in nanoseconds of 63 bits, as Go does: 292 years are the longest.
            assert!([base.min(max), LONGEST].contains(&first), "{base:?} {max:?}: {first:?}");
            for n in 0..1100 {
                let delay = limiter.when(&"a", now);
                assert!(delay >= last && delay <= max, "{base:?} {max:?}: {n}: {delay:?} after {last:?}");
                assert!(!delay.is_zero() || base.min(max).is_zero(), "{base:?} {max:?}: {n}");
                last = delay;
            }
            limiter.forget(&"a");
            assert_eq!(limiter.when(&"a", now), first);
        }
    }
}

/// B22: after a success or "again in five minutes" the next failure costs the base again.
#[test]
fn after_forget_the_next_failure_costs_the_base() {
    let clock = ManualClock::new();
    let limiter = ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), SECOND * 1000);
    let queue: RateLimitingQueue<&str> = Queue::builder().clock(clock.clock()).build_rate_limiting(limiter);
    let mut delays: Vec<u128> = (0..5).map(|_| queue.add_rate_limited_after("a").as_millis()).collect();
    queue.forget(&"a");
    queue.queue().add_after("a", SECOND * 300);
    delays.push(queue.add_rate_limited_after("a").as_millis());
    assert_eq!(delays, [5, 10, 20, 40, 80, 5]);
    assert_eq!(queue.num_requeues(&"a"), 1);
}

/// B22: back-off tables too, and they forget.
#[test]
fn a_table_of_back_offs_is_bounded_and_forgets() {
    let mut table = BackoffTable::new(SECOND, SECOND * 60);
    let mut now = Instant::now();
    for _ in 0..1100 {
        table.next(&"a", now, now);
        let delay = table.get(&"a");
        assert!(delay >= SECOND && delay <= SECOND * 60, "{delay:?}");
        now += delay;
    }
    assert_eq!(table.get(&"a"), SECOND * 60);
    table.gc(now + SECOND * 121);
    assert!(table.is_empty());
}

/// B30: very many keys that wait; one that comes soon is not held up, and nothing is left of them.
#[tokio::test(start_paused = true)]
async fn a_key_that_comes_soon_is_not_held_up_by_many_that_come_much_later() {
    const KEYS: u64 = 100_000;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let queue: Queue<u64> = Queue::new();
    for round in 0..3 {
        for key in 0..KEYS {
            queue.add_after(key, SECOND * 36_000 + Duration::from_millis((key * 7919 + round) % 60_000));
        }
    }
    assert_eq!(queue.snapshot().delayed.len(), 100_000, "one entry a key");
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), tasks, "no task for any of them");
    queue.add_after(KEYS, Duration::from_millis(1));
    let before = tokio::time::Instant::now();
    assert_eq!(queue.get_key().await, Some(KEYS));
    assert!(before.elapsed() <= Duration::from_millis(20), "{:?}", before.elapsed());
    queue.shut_down();
    assert_eq!(queue.get_key().await, None);
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.delayed.len(), snapshot.dropped_delayed), (0, 100_000));
}

/// B38: all gets end at once, and nothing comes after.
#[tokio::test(start_paused = true)]
async fn a_shut_down_ends_every_get_at_once_and_drops_what_is_delayed() {
    for kind in ["shut down", "drain", "full drain"] {
        let queue: Queue<&str> = Queue::new();
        queue.add_after("a", SECOND * 3600);
        let get = |queue: &Queue<&'static str>| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get_key().await })
        };
        let gets = [get(&queue), get(&queue)];
        tokio::task::yield_now().await;
        let before = tokio::time::Instant::now();
        match kind {
            "shut down" => queue.shut_down(),
            "drain" => _ = queue.shut_down_with_drain().await,
            _ => _ = queue.shut_down_with_full_drain().await,
        }
        for get in gets {
            assert_eq!(get.await.unwrap(), None, "{kind}");
        }
        assert!(before.elapsed() < Duration::from_millis(1), "{kind}: {:?}", before.elapsed());
        queue.add_after("b", Duration::from_millis(1));
        queue.add("c");
        tokio::time::sleep(SECOND * 7200).await;
        assert_eq!(queue.get_key().now_or_never(), Some(None), "{kind}");
        assert!(queue.is_empty());
    }
}

/// B38: delayed adds race with the shut-down from eight tasks; none blocks, none arrives later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delayed_adds_that_race_with_a_shut_down_neither_block_nor_arrive() {
    for _ in 0..50 {
        let queue: Queue<usize> = Queue::new();
        let got = Arc::new(AtomicUsize::new(0));
        let adders: Vec<_> = (0..8)
            .map(|task| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    for n in 0..50 {
                        queue.add_after(task * 50 + n, Duration::from_micros(n as u64));
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        let worker = {
            let (queue, got) = (queue.clone(), Arc::clone(&got));
            tokio::spawn(async move {
                while queue.get().await.is_some() {
                    got.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        tokio::task::yield_now().await;
        queue.shut_down();
        worker.await.unwrap();
        let at_the_end = got.load(Ordering::SeqCst);
        for adder in adders {
            adder.await.unwrap();
        }
        assert!(queue.get_key().await.is_none());
        assert!(queue.snapshot().delayed.is_empty() && at_the_end <= 400);
    }
}

/// B38: dropped without a word, it is gone: there is no task that could hold it.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_dropped_leaves_nothing() {
    let key = Arc::new(());
    let queue = Queue::new();
    queue.add_after(Arc::clone(&key), SECOND * 3600);
    queue.add_after(Arc::clone(&key), SECOND);
    assert!(queue.get().now_or_never().is_none());
    drop(queue);
    assert_eq!(Arc::strong_count(&key), 1);
}
