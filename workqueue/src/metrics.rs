//! What a queue tells about itself while it works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Makes the metrics of each named queue; as client-go's `workqueue.MetricsProvider`.
pub trait MetricsProvider: Send + Sync {
    /// The metrics of the queue of this name. Called once for a queue, when it is built.
    fn queue_metrics(&self, queue: &str) -> Box<dyn QueueMetrics>;
}

/// The metrics of one queue, with client-go's names and meanings. Each method does nothing by default, so an
/// implementation has only what it wants.
///
/// Called outside the queue's lock, by whoever uses the queue; it should be quick. So what two threads tell at the same
/// time may come in either order; sums are exact once both have. A panic is caught and reported.
///
/// | method | client-go's name ([`names`]) | kind |
/// |---|---|---|
/// | [`depth`](Self::depth) | `workqueue_depth` | gauge |
/// | [`adds`](Self::adds) | `workqueue_adds_total` | counter |
/// | [`queue_duration`](Self::queue_duration) | `workqueue_queue_duration_seconds` | histogram |
/// | [`work_duration`](Self::work_duration) | `workqueue_work_duration_seconds` | histogram |
/// | [`unfinished_work`](Self::unfinished_work) | `workqueue_unfinished_work_seconds` | gauge |
/// | [`longest_running_processor`](Self::longest_running_processor) | `workqueue_longest_running_processor_seconds` | gauge |
/// | [`retries`](Self::retries) | `workqueue_retries_total` | counter |
#[expect(unused_variables, reason = "the defaults ignore what they are told")]
pub trait QueueMetrics: Send + Sync {
    /// The depth changes by so much: +1 for each accepted add, those of keys in processing too, −1 for each get. It is
    /// not the queue's length: a key added again while it is processed counts at once.
    fn depth(&self, change: i64) {}

    /// The part of [`depth`](Self::depth) that keys of this priority have changes by so much. Told beside it by a
    /// [prioritized](crate::QueueBuilder::prioritized) queue, also where a key that waits is lifted from one priority to
    /// another.
    fn depth_of(&self, priority: i32, change: i64) {}

    /// So many adds were accepted. One of a key that is to be processed anyway is not.
    fn adds(&self, count: u64) {}

    /// A key was got so long after its first accepted add. A delayed add counts from the moment for which it was meant.
    fn queue_duration(&self, waited: Duration) {}

    /// A key is done so long after it was got.
    fn work_duration(&self, worked: Duration) {}

    /// For how long the keys that are being processed have been so, all together. Told by
    /// [`Queue::refresh_metrics`](crate::Queue::refresh_metrics).
    fn unfinished_work(&self, total: Duration) {}

    /// For how long the key that is being processed longest has been so. Told with
    /// [`unfinished_work`](Self::unfinished_work).
    fn longest_running_processor(&self, longest: Duration) {}

    /// So many delayed adds were asked for, those without delay and those of known keys too.
    fn retries(&self, count: u64) {}
}

/// client-go's names for the metrics.
pub mod names {
    /// See [`depth`](super::QueueMetrics::depth).
    pub const DEPTH: &str = "workqueue_depth";
    /// See [`adds`](super::QueueMetrics::adds).
    pub const ADDS: &str = "workqueue_adds_total";
    /// See [`queue_duration`](super::QueueMetrics::queue_duration).
    pub const QUEUE_DURATION: &str = "workqueue_queue_duration_seconds";
    /// See [`work_duration`](super::QueueMetrics::work_duration).
    pub const WORK_DURATION: &str = "workqueue_work_duration_seconds";
    /// See [`unfinished_work`](super::QueueMetrics::unfinished_work).
    pub const UNFINISHED_WORK: &str = "workqueue_unfinished_work_seconds";
    /// See [`longest_running_processor`](super::QueueMetrics::longest_running_processor).
    pub const LONGEST_RUNNING_PROCESSOR: &str = "workqueue_longest_running_processor_seconds";
    /// See [`retries`](super::QueueMetrics::retries).
    pub const RETRIES: &str = "workqueue_retries_total";
    /// All of them.
    pub const ALL: [&str; 7] =
        [DEPTH, ADDS, QUEUE_DURATION, WORK_DURATION, UNFINISHED_WORK, LONGEST_RUNNING_PROCESSOR, RETRIES];
    /// The upper bounds of client-go's buckets for the two histograms, in seconds.
    pub const DURATION_BUCKETS_SECONDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
}

static PROVIDER: OnceLock<Arc<dyn MetricsProvider>> = OnceLock::new();

/// Sets the provider of all queues that are built later, have a name, and none of their own. Only the first call counts;
/// tells whether this was it. As client-go's `workqueue.SetProvider`.
pub fn set_metrics_provider(provider: Arc<dyn MetricsProvider>) -> bool {
    PROVIDER.set(provider).is_ok()
}

pub(crate) fn metrics_provider() -> Option<Arc<dyn MetricsProvider>> {
    PROVIDER.get().cloned()
}

/// What one operation tells the metrics.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) waited: Option<Duration>,
    pub(crate) worked: Option<Duration>,
    /// Changes of the depth, by priority.
    pub(crate) moves: Vec<(i32, i64)>,
}

impl Report {
    pub(crate) fn tell(self, metrics: &dyn QueueMetrics) {
        survive(|| {
            if self.adds > 0 {
                metrics.depth(i64::try_from(self.adds).unwrap_or(i64::MAX));
                metrics.adds(self.adds);
            }
            if self.retries > 0 {
                metrics.retries(self.retries);
            }
            if let Some(waited) = self.waited {
                metrics.depth(-1);
                metrics.queue_duration(waited);
            }
            if let Some(worked) = self.worked {
                metrics.work_duration(worked);
            }
            for (priority, change) in self.moves {
                metrics.depth_of(priority, change);
            }
        });
    }
}

/// How often metrics have panicked, of all queues.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Tells the metrics something; a panic of theirs is reported.
pub(crate) fn survive(tell: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(tell)).is_err() {
        let panics = PANICS.fetch_add(1, Ordering::Relaxed) + 1;
        // Metrics that panic each time write 17 lines in 100,000 times.
        if panics.is_power_of_two() {
            tracing::error!(panics, "the metrics of a work queue panicked; the queue goes on");
        }
    }
}
