//! The work queue: `cargo bench -p kubewire-benches --bench queue`.
//!
//! Each figure is the time for one key all its way. Keys are `namespace/name` in one allocation, cloned by counting a
//! reference, as an informer's handler has them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kubewire_indexer::ObjectKey;
use kubewire_ratelimit::{ManualClock, default_controller_rate_limiter, default_item_based_rate_limiter};
use kubewire_workqueue::{MetricsProvider, Queue, QueueMetrics};

const KEYS: usize = 10_000;

fn keys(count: usize) -> Vec<ObjectKey> {
    (0..count).map(|n| ObjectKey::new("default", &format!("pod-{n:07}"))).collect()
}

/// Metrics as a registry would have them: one atomic each.
struct Counters([std::sync::atomic::AtomicU64; 4]);

impl Counters {
    fn bump(&self, index: usize, by: u64) {
        self.0[index].fetch_add(by, std::sync::atomic::Ordering::Relaxed);
    }
}

impl QueueMetrics for Counters {
    fn depth(&self, change: i64) {
        self.bump(0, change as u64);
    }
    fn adds(&self, count: u64) {
        self.bump(1, count);
    }
    fn queue_duration(&self, waited: Duration) {
        self.bump(2, waited.as_nanos() as u64);
    }
    fn work_duration(&self, worked: Duration) {
        self.bump(3, worked.as_nanos() as u64);
    }
}

struct Provider;

impl MetricsProvider for Provider {
    fn queue_metrics(&self, _: &str) -> Box<dyn QueueMetrics> {
        Box::new(Counters(Default::default()))
    }
}

fn with_metrics() -> Queue<ObjectKey> {
    Queue::builder().name("bench").metrics(Arc::new(Provider)).build()
}

fn cycle(c: &mut Criterion) {
    let mut group = c.benchmark_group("add_get_done");
    let key = &keys(1)[0];
    for (name, queue) in [("plain", Queue::new()), ("with_metrics", with_metrics())] {
        group.bench_function(name, |b| {
            b.iter(|| {
                queue.add(key.clone());
                drop(black_box(queue.try_get()));
            });
        });
    }
    let queue = Queue::new();
    keys(100_000).into_iter().for_each(|key| queue.add_after(key, Duration::from_secs(3600)));
    group.bench_function("beside_100000_delayed", |b| {
        b.iter(|| {
            queue.add(key.clone());
            drop(black_box(queue.try_get()));
        });
    });
    let queue = Queue::new();
    group.bench_function("string_keys", |b| {
        b.iter(|| {
            queue.add("default/pod-0000001".to_owned());
            drop(black_box(queue.try_get()));
        });
    });
    group.finish();
}

fn fill_and_drain(c: &mut Criterion) {
    let mut group = c.benchmark_group("fill_and_drain");
    group.throughput(Throughput::Elements(KEYS as u64));
    let keys = keys(KEYS);
    let queue = Queue::new();
    group.bench_function("10000", |b| {
        b.iter(|| {
            keys.iter().for_each(|key| queue.add(key.clone()));
            while let Ok(key) = queue.try_get() {
                black_box(key).done();
            }
        });
    });
    group.finish();
}

fn duplicates(c: &mut Criterion) {
    let mut group = c.benchmark_group("add_again");
    let keys = keys(KEYS);
    let queue = Queue::new();
    keys.iter().for_each(|key| queue.add(key.clone()));
    group.bench_function("waiting", |b| b.iter(|| queue.add(keys[0].clone())));
    let held = queue.try_get();
    queue.add(keys[0].clone());
    group.bench_function("processed_and_dirty", |b| b.iter(|| queue.add(keys[0].clone())));
    drop(held);
    group.finish();
}

fn workers(c: &mut Criterion) {
    let mut group = c.benchmark_group("one_producer");
    group.throughput(Throughput::Elements(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    let keys = keys(KEYS);
    for (name, with) in [("workers", false), ("workers_with_metrics", true)] {
        for workers in [1, 8, 64] {
            group.bench_function(BenchmarkId::new(name, workers), |b| {
                b.iter_custom(|iterations| {
                    let queue = if with { with_metrics() } else { Queue::new() };
                    runtime.block_on(async {
                        let tasks: Vec<_> = (0..workers)
                            .map(|_| {
                                let queue = queue.clone();
                                tokio::spawn(async move { while queue.get().await.is_some() {} })
                            })
                            .collect();
                        let start = Instant::now();
                        for n in 0..iterations {
                            queue.add(keys[n as usize % KEYS].clone());
                        }
                        queue.shut_down();
                        for task in tasks {
                            task.await.expect("a worker");
                        }
                        start.elapsed()
                    })
                });
            });
        }
    }
    group.finish();
}

fn delayed(c: &mut Criterion) {
    let mut group = c.benchmark_group("delayed");
    let keys = keys(100_000);
    let hour = Duration::from_secs(3600);
    let filled = || {
        let time = ManualClock::new();
        let queue = Queue::builder().clock(time.clock()).build();
        for (n, key) in keys.iter().enumerate() {
            queue.add_after(key.clone(), hour + Duration::from_micros((n * 7919 % keys.len()) as u64 * 10));
        }
        (time, queue)
    };
    let (_, queue) = filled();
    let mut n = 0_u64;
    group.bench_function("add_after_and_cancel_beside_100000", |b| {
        let key = ObjectKey::new("default", "another");
        b.iter(|| {
            n += 1;
            queue.add_after(key.clone(), hour + Duration::from_micros(n * 7919 % 1_000_000));
            queue.cancel_delayed(&key)
        });
    });
    group.sample_size(10);
    group.throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function("add_100000", |b| b.iter_batched(|| (), |()| filled(), BatchSize::PerIteration));
    group.bench_function("promote_and_get_100000_over_a_second", |b| {
        b.iter_batched(
            filled,
            |(time, queue)| {
                time.advance(hour);
                for _ in 0..1000 {
                    time.advance(Duration::from_millis(1));
                    while let Ok(key) = queue.try_get() {
                        black_box(key).done();
                    }
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn rate_limited(c: &mut Criterion) {
    let mut group = c.benchmark_group("rate_limited");
    let keys = keys(100_000);
    let time = ManualClock::new();
    let queue = Queue::builder().clock(time.clock()).build_rate_limiting(default_item_based_rate_limiter());
    let mut n = 0;
    group.bench_function("add_and_forget", |b| {
        b.iter(|| {
            n += 1;
            let key = &keys[n % keys.len()];
            queue.add_rate_limited(key.clone());
            queue.forget(key);
        });
    });
    let default = Queue::builder().clock(time.clock()).build_rate_limiting(default_controller_rate_limiter());
    group.bench_function("add_and_forget_by_default_limiter", |b| {
        b.iter(|| {
            n += 1;
            let key = &keys[n % keys.len()];
            default.add_rate_limited(key.clone());
            default.forget(key);
        });
    });
    group.bench_function("forget_of_a_key_that_never_failed", |b| b.iter(|| queue.forget(&keys[0])));
    group.finish();
}

criterion_group!(benches, cycle, fill_and_drain, duplicates, workers, delayed, rate_limited);
criterion_main!(benches);
