//! Add, get, done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kubewire_indexer::ObjectKey;
use kubewire_workqueue::Queue;

use crate::flags::{Defaults, Flags};
use crate::keys::make_keys;
use crate::line::rounded;
use crate::prometheus;
use crate::runtime::runtime;
use crate::sample::{Sample, bench, expect, measure};

pub(crate) const FLAGS: Defaults = &[("n", "1000000"), ("keys", "0"), ("repeat", "1"), ("workers", "1,2,8,64")];
pub(crate) const PRIORITY_FLAGS: Defaults = &[("n", "300000"), ("keys", "0"), ("repeat", "1"), ("workers", "1,2,8,64")];

pub(crate) fn plain(flags: &Flags) -> anyhow::Result<()> {
    cycle("queue-cycle", flags, Queue::new)
}

/// A named queue, which keeps metrics.
pub(crate) fn metrics(flags: &Flags) -> anyhow::Result<()> {
    cycle("queue-cycle-metrics", flags, || Queue::builder().name("compare").metrics(prometheus::provider()).build())
}

/// All cases on the queues that `make` makes.
pub(crate) fn cycle(prefix: &str, flags: &Flags, make: impl Fn() -> Queue<ObjectKey>) -> anyhow::Result<()> {
    let (n, repeat) = (flags.get("n")?, flags.get("repeat")?);
    let keys = make_keys(flags.keys()?);
    let key = |n: usize| keys[n % keys.len()].clone();

    bench(&format!("{prefix}/uncontended"), n, repeat, || {
        let queue = make();
        measure(|| {
            for n in 0..n {
                queue.add(key(n));
                take(&queue, 1);
            }
        })
    });

    // All adds first: the queue grows to its full size.
    bench(&format!("{prefix}/fill-drain"), keys.len(), repeat, || {
        let queue = make();
        let mut fill = Duration::ZERO;
        let sample = measure(|| {
            let start = Instant::now();
            keys.iter().for_each(|key| queue.add(key.clone()));
            expect("queued", queue.len(), keys.len());
            fill = start.elapsed();
            take(&queue, keys.len());
        });
        expect("left", queue.len(), 0);
        let each = |time: Duration| rounded(time.as_nanos() as f64 / keys.len() as f64);
        let drain = sample.wall.saturating_sub(fill);
        sample.with("fill_ns_per_op", each(fill)).with("drain_ns_per_op", each(drain))
    });

    // Rounds of 1,000 new keys, each added nine more times while it waits.
    const ROUND: usize = 1000;
    let (rounds, hot) = ((n / (10 * ROUND)).max(1), make_keys(ROUND));
    bench(&format!("{prefix}/hot-90pct-duplicates"), rounds * 10 * ROUND, repeat, || {
        let queue = make();
        let sample = measure(|| {
            for _ in 0..rounds {
                for _ in 0..10 {
                    hot.iter().for_each(|key| queue.add(key.clone()));
                }
                expect("pending", queue.len(), ROUND);
                take(&queue, ROUND);
            }
        });
        sample.with("processed", rounds * ROUND)
    });

    for workers in flags.list("workers")? {
        bench(&format!("{prefix}/1-producer-{workers}-workers"), n, repeat, || {
            produce(make(), workers, n, keys.len() >= n, key)
        });
    }
    // The same over 1,000 keys: adds meet waiting keys and running ones.
    for workers in flags.list("workers")? {
        bench(&format!("{prefix}/1-producer-{workers}-workers-1000-keys"), n, repeat, || {
            produce(make(), workers, n, false, |n| hot[n % hot.len()].clone())
        });
    }
    Ok(())
}

fn take(queue: &Queue<ObjectKey>, count: usize) {
    for _ in 0..count {
        match queue.try_get() {
            Ok(key) => key.done(),
            Err(error) => crate::sample::fail(error),
        }
    }
}

/// Adds keys from one thread while tasks take them, until the queue is empty.
fn produce(
    queue: Queue<ObjectKey>,
    workers: usize,
    n: usize,
    distinct: bool,
    key: impl Fn(usize) -> ObjectKey,
) -> Sample {
    let processed = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let (queue, processed) = (queue.clone(), Arc::clone(&processed));
            runtime().spawn(async move {
                let mut count = 0;
                while let Some(key) = queue.get().await {
                    key.done();
                    count += 1;
                }
                processed.fetch_add(count, Relaxed);
            })
        })
        .collect();
    let sample = measure(|| {
        (0..n).for_each(|n| queue.add(key(n)));
        while !queue.is_empty() {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    queue.shut_down();
    for task in tasks {
        runtime().block_on(task).expect("no worker panics");
    }
    let processed = processed.load(Relaxed);
    if distinct {
        expect("processed", processed, n);
    }
    sample.with("workers", workers).with("processed", processed)
}
