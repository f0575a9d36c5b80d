//! Delayed adds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kubewire_indexer::ObjectKey;
use kubewire_workqueue::Queue;

use crate::flags::{Defaults, Flags};
use crate::keys::{make_keys, number};
use crate::line::{percentiles, rounded};
use crate::process::heap_bytes;
use crate::runtime::runtime;
use crate::sample::{Sample, bench, expect, measure};

pub(crate) const FLAGS: Defaults = &[("n", "100000"), ("repeat", "1")];

const HOUR: Duration = Duration::from_secs(3600);

/// Milliseconds that are spread over `n` as if at random.
fn spread(place: usize, factor: usize, n: usize) -> Duration {
    Duration::from_millis((place * factor % n) as u64)
}

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (n, repeat) = (flags.get("n")?, flags.get("repeat")?);
    let keys: Arc<[ObjectKey]> = make_keys(n).into();
    let more: Vec<_> =
        keys.iter().map(|key| ObjectKey::new(&format!("more-{}", key.namespace()), key.name())).collect();

    bench("queue-delayed/spread-over-1s", n, repeat, || spread_over_a_second(&keys));
    bench("queue-delayed/add-after-fill", n, repeat, || {
        let before = heap_bytes();
        let queue = Queue::new();
        let sample = measure(|| fill(&queue, &keys));
        let each = (heap_bytes() - before) / n as i64;
        queue.shut_down();
        sample.with("heap_bytes_per_item", each)
    });
    bench("queue-delayed/add-after-new-while-n-wait", n, repeat, || {
        let queue = waiting(&keys);
        measure(|| {
            for (place, key) in more.iter().enumerate() {
                queue.add_after(key.clone(), HOUR + spread(place, 104_729, n));
            }
        })
    });
    bench("queue-delayed/add-after-sooner-of-waiting", n, repeat, || {
        let queue = waiting(&keys);
        measure(|| {
            for (place, key) in keys.iter().enumerate() {
                queue.add_after(key.clone(), Duration::from_secs(60) + spread(place, 104_729, n));
            }
        })
    });
    Ok(())
}

fn fill(queue: &Queue<ObjectKey>, keys: &[ObjectKey]) {
    for (place, key) in keys.iter().enumerate() {
        queue.add_after(key.clone(), HOUR + spread(place, 7919, keys.len()));
    }
}

fn waiting(keys: &[ObjectKey]) -> Queue<ObjectKey> {
    let queue = Queue::new();
    fill(&queue, keys);
    queue
}

/// Each key is due at another moment of the second after the first add; one worker takes them.
fn spread_over_a_second(keys: &Arc<[ObjectKey]>) -> Sample {
    let (queue, n) = (Queue::<ObjectKey>::new(), keys.len());
    let (mut dues, mut lateness) = (Vec::new(), vec![0; n]);
    let mut adding = Duration::ZERO;
    let sample = measure(|| {
        let start = Instant::now();
        let (adder, all) = (queue.clone(), Arc::clone(keys));
        let adder = std::thread::spawn(move || {
            let dues: Vec<_> = all
                .iter()
                .enumerate()
                .map(|(place, key)| {
                    let due = start + Duration::from_secs_f64((place * 7919 % n) as f64 / n as f64);
                    let now = Instant::now();
                    let due = due.max(now);
                    adder.add_after(key.clone(), due - now);
                    due
                })
                .collect();
            (dues, start.elapsed())
        });
        let taker = queue.clone();
        let taken = runtime().spawn(async move {
            let mut taken = vec![None; n];
            for _ in 0..n {
                let Some(key) = taker.get().await else { break };
                taken[number(&key)] = Some(Instant::now());
                key.done();
            }
            taken
        });
        let taken = runtime().block_on(taken).expect("the worker does not panic");
        (dues, adding) = adder.join().expect("the adder does not panic");
        for ((late, taken), due) in lateness.iter_mut().zip(taken).zip(&dues) {
            let Some(taken) = taken else { continue };
            *late = taken.saturating_duration_since(*due).as_nanos() as i64;
        }
    });
    expect("left", (queue.len(), dues.len()), (0, n));
    let (wall, cpu) = (sample.wall.as_secs_f64(), sample.cpu);
    sample
        .with("seconds_until_all_fired", rounded(wall))
        .with("seconds_adding", rounded(adding.as_secs_f64()))
        .with("cpu_s", rounded(cpu))
        .with_all(percentiles(["lateness_p50_us", "lateness_p99_us", "lateness_max_us"], &mut lateness))
}
