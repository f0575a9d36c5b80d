//! Metrics of a queue as a Prometheus registry keeps them: counters, a gauge, and histograms with client-go's buckets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use kubewire_workqueue::metrics::names::DURATION_BUCKETS_SECONDS;
use kubewire_workqueue::{MetricsProvider, QueueMetrics};

pub(crate) fn provider() -> Arc<dyn MetricsProvider> {
    Arc::new(Provider)
}

struct Provider;

impl MetricsProvider for Provider {
    fn queue_metrics(&self, _: &str) -> Box<dyn QueueMetrics> {
        Box::<Metrics>::default()
    }
}

#[derive(Default)]
struct Metrics {
    depth: AtomicI64,
    adds: AtomicU64,
    retries: AtomicU64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl QueueMetrics for Metrics {
    fn depth(&self, change: i64) {
        self.depth.fetch_add(change, Relaxed);
    }

    fn adds(&self, count: u64) {
        self.adds.fetch_add(count, Relaxed);
    }

    fn queue_duration(&self, waited: Duration) {
        self.queue_duration.observe(waited);
    }

    fn work_duration(&self, worked: Duration) {
        self.work_duration.observe(worked);
    }

    fn retries(&self, count: u64) {
        self.retries.fetch_add(count, Relaxed);
    }
}

#[derive(Default)]
struct Histogram {
    /// The last is for what is longer than all bounds.
    buckets: [AtomicU64; DURATION_BUCKETS_SECONDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let bucket = DURATION_BUCKETS_SECONDS.partition_point(|&bound| bound < duration.as_secs_f64());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.nanos.fetch_add(duration.as_nanos() as u64, Relaxed);
    }
}
