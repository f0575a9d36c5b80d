//! The metrics of controllers and their queues, with controller-runtime's names, labels and buckets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kubewire_workqueue::metrics::names as queue_names;
use kubewire_workqueue::{MetricsProvider, QueueMetrics};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::decision::ResultLabel;

/// The names of the metrics, as controller-runtime has them.
pub mod names {
    /// Attempts, by controller and result: `error`, `requeue_after`, `requeue`, `success`.
    pub const RECONCILE_TOTAL: &str = "controller_runtime_reconcile_total";
    /// Attempts that failed, with terminal errors too.
    pub const RECONCILE_ERRORS: &str = "controller_runtime_reconcile_errors_total";
    /// Attempts that failed with a terminal error.
    pub const TERMINAL_RECONCILE_ERRORS: &str = "controller_runtime_terminal_reconcile_errors_total";
    /// Attempts that panicked, recovered or not.
    pub const RECONCILE_PANICS: &str = "controller_runtime_reconcile_panics_total";
    /// Attempts that were not done within the controller's time-out.
    pub const RECONCILE_TIMEOUTS: &str = "controller_runtime_reconcile_timeouts_total";
    /// How long attempts took, whatever became of them.
    pub const RECONCILE_TIME: &str = "controller_runtime_reconcile_time_seconds";
    /// How many attempts can be made at a time.
    pub const MAX_CONCURRENT_RECONCILES: &str = "controller_runtime_max_concurrent_reconciles";
    /// How many are being made.
    pub const ACTIVE_WORKERS: &str = "controller_runtime_active_workers";
    /// The upper bounds of the buckets of [`RECONCILE_TIME`], in seconds.
    pub const RECONCILE_TIME_BUCKETS_SECONDS: [f64; 40] = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
        1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ];
    /// The upper bounds of the buckets of the queue's two histograms, in seconds: ten times ten nanoseconds, and so on.
    pub const QUEUE_BUCKETS_SECONDS: [f64; 12] =
        [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];
}

/// How many priorities have a series of their own in the depth of a queue; all later ones share one.
const PRIORITIES_MAX: usize = 25;

/// The value of the label `priority` that later priorities share.
const EXCEEDED: &str = "exceeded_cardinality_limit";

type Labels = Vec<(&'static str, String)>;
type FloatGauge = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of any number of controllers. Cloning counts a reference.
///
/// There is no global registry: it belongs to a manager, or to whoever makes one and [registers](Self::register) it. All
/// series of a controller are there, at zero, once the controller has been built.
///
/// ```
/// use kubewire_controller::{Attempt, Controller, ControllerMetrics, ControllerOptions, Outcome, Request};
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// let metrics = ControllerMetrics::new();
/// metrics.register(&mut registry);
/// let reconcile = |_: Request, _: Attempt| async { Ok::<_, std::io::Error>(Outcome::Done) };
/// let controller = Controller::with_metrics("pods", reconcile, ControllerOptions::new(), &metrics);
/// // When asked for them:
/// metrics.refresh();
/// let mut text = String::new();
/// encode(&mut text, &registry).unwrap();
/// assert!(text.contains(r#"controller_runtime_reconcile_errors_total{controller="pods"} 0"#));
/// ```
#[derive(Clone, Default)]
pub struct ControllerMetrics {
    families: Arc<Families>,
}

#[derive(Default)]
struct Families {
    reconciles: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    terminal_errors: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    timeouts: Family<Labels, Counter>,
    time: TimeHistograms,
    max_concurrent: Family<Labels, Gauge>,
    active: Family<Labels, Gauge>,
    depth: Family<Labels, Gauge>,
    adds: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    queue_duration: QueueHistograms,
    work_duration: QueueHistograms,
    unfinished: Family<Labels, FloatGauge>,
    longest: Family<Labels, FloatGauge>,
    /// Asks the queues for their gauges; one that answers no is gone. Called without the lock.
    refreshers: Mutex<Vec<Refresher>>,
}

type Refresher = Arc<dyn Fn() -> bool + Send + Sync>;

/// Histograms with the buckets of an attempt.
struct TimeHistograms(Histograms);

/// Histograms with the buckets of the queue.
struct QueueHistograms(Histograms);

impl Default for TimeHistograms {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(names::RECONCILE_TIME_BUCKETS_SECONDS)))
    }
}

impl Default for QueueHistograms {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(names::QUEUE_BUCKETS_SECONDS)))
    }
}

impl ControllerMetrics {
    /// Metrics of no controller yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a registry show them. The library adds `_total` to the names of counters.
    pub fn register(&self, registry: &mut Registry) {
        let families = &self.families;
        let mut counter = |name: &str, help: &str, family: &Family<Labels, Counter>| {
            registry.register(name.trim_end_matches("_total"), help, family.clone());
        };
        counter(names::RECONCILE_TOTAL, "Attempts to reconcile, by result", &families.reconciles);
        counter(names::RECONCILE_ERRORS, "Attempts that failed", &families.errors);
        counter(names::TERMINAL_RECONCILE_ERRORS, "Attempts that failed for good", &families.terminal_errors);
        counter(names::RECONCILE_PANICS, "Attempts that panicked", &families.panics);
        counter(names::RECONCILE_TIMEOUTS, "Attempts that took too long", &families.timeouts);
        counter(queue_names::ADDS, "Accepted adds", &families.adds);
        counter(queue_names::RETRIES, "Delayed adds", &families.retries);
        let mut gauge = |name: &str, help: &str, family: &Family<Labels, Gauge>| {
            registry.register(name, help, family.clone());
        };
        gauge(names::MAX_CONCURRENT_RECONCILES, "Attempts that can be made at a time", &families.max_concurrent);
        gauge(names::ACTIVE_WORKERS, "Attempts that are being made", &families.active);
        gauge(queue_names::DEPTH, "Requests that wait", &families.depth);
        let longest =
            (queue_names::LONGEST_RUNNING_PROCESSOR, "How long the oldest has been worked on", &families.longest);
        let unfinished =
            (queue_names::UNFINISHED_WORK, "How long all have been worked on, together", &families.unfinished);
        for (name, help, family) in [unfinished, longest] {
            registry.register(name, help, family.clone());
        }
        registry.register(names::RECONCILE_TIME, "How long attempts took", families.time.0.clone());
        registry.register(queue_names::QUEUE_DURATION, "How long requests waited", families.queue_duration.0.clone());
        registry.register(
            queue_names::WORK_DURATION,
            "How long requests were worked on",
            families.work_duration.0.clone(),
        );
    }

    /// Brings the gauges of how long requests have been worked on up to date. To be called before they are read; upstream
    /// does so every 500 ms.
    pub fn refresh(&self) {
        let refreshers = self.families.refreshers.lock().clone();
        let gone: Vec<_> = refreshers.into_iter().filter(|refresh| !refresh()).collect();
        self.families.refreshers.lock().retain(|known| !gone.iter().any(|gone| Arc::ptr_eq(known, gone)));
    }

    /// Calls this at each refresh, until it says no.
    pub(crate) fn at_refresh(&self, refresh: impl Fn() -> bool + Send + Sync + 'static) {
        self.families.refreshers.lock().push(Arc::new(refresh));
    }

    /// The series of one controller, all made.
    pub(crate) fn of_controller(&self, controller: &str, max_concurrent: usize) -> ControllerSeries {
        let families = &self.families;
        let labels: Labels = vec![("controller", controller.to_owned())];
        let with_result = |label: ResultLabel| {
            let labels = vec![("controller", controller.to_owned()), ("result", label.as_str().to_owned())];
            families.reconciles.get_or_create_owned(&labels)
        };
        let max = families.max_concurrent.get_or_create_owned(&labels);
        max.set(i64::try_from(max_concurrent).unwrap_or(i64::MAX));
        ControllerSeries {
            results: ResultLabel::ALL.map(with_result),
            errors: families.errors.get_or_create_owned(&labels),
            terminal_errors: families.terminal_errors.get_or_create_owned(&labels),
            panics: families.panics.get_or_create_owned(&labels),
            timeouts: families.timeouts.get_or_create_owned(&labels),
            time: families.time.0.get_or_create_owned(&labels),
            active: families.active.get_or_create_owned(&labels),
        }
    }

    /// Makes the metrics of a controller's queue.
    pub(crate) fn of_queue(&self, controller: &str, prioritized: bool) -> Arc<dyn MetricsProvider> {
        let provider = QueueProvider { metrics: self.clone(), controller: controller.to_owned(), prioritized };
        Arc::new(provider)
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerMetrics")
    }
}

/// The series of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerSeries {
    /// By result, in the order of [`ResultLabel::ALL`].
    results: [Counter; 4],
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    time: Histogram,
    active: Gauge,
}

impl ControllerSeries {
    pub(crate) fn count(&self, label: ResultLabel) {
        for (counter, of) in self.results.iter().zip(ResultLabel::ALL) {
            if of == label {
                counter.inc();
            }
        }
    }

    pub(crate) fn took(&self, time: Duration) {
        self.time.observe(time.as_secs_f64());
    }

    /// A worker is active until this is dropped.
    pub(crate) fn active(&self) -> Active {
        self.active.inc();
        Active(self.active.clone())
    }
}

/// Counts a worker as active until it is dropped.
pub(crate) struct Active(Gauge);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

struct QueueProvider {
    metrics: ControllerMetrics,
    controller: String,
    prioritized: bool,
}

impl MetricsProvider for QueueProvider {
    fn queue_metrics(&self, queue: &str) -> Box<dyn QueueMetrics> {
        let families = &self.metrics.families;
        let labels: Labels = vec![("name", queue.to_owned()), ("controller", self.controller.clone())];
        let series = QueueSeries {
            depth: families.depth.clone(),
            labels: labels.clone(),
            prioritized: self.prioritized,
            depths: Mutex::default(),
            adds: families.adds.get_or_create_owned(&labels),
            retries: families.retries.get_or_create_owned(&labels),
            queue_duration: families.queue_duration.0.get_or_create_owned(&labels),
            work_duration: families.work_duration.0.get_or_create_owned(&labels),
            unfinished: families.unfinished.get_or_create_owned(&labels),
            longest: families.longest.get_or_create_owned(&labels),
        };
        // So that it is there before the first request.
        series.depth_gauge(0);
        Box::new(series)
    }
}

struct QueueSeries {
    depth: Family<Labels, Gauge>,
    labels: Labels,
    prioritized: bool,
    /// The gauges by priority. Nothing is called under its lock but the family's.
    depths: Mutex<Depths>,
    adds: Counter,
    retries: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: FloatGauge,
    longest: FloatGauge,
}

#[derive(Default)]
struct Depths {
    /// The first priorities that came; each keeps its series, so that what was added to one is taken from the same.
    own: BTreeMap<i32, Gauge>,
    others: Option<Gauge>,
}

impl QueueSeries {
    fn depth_gauge(&self, priority: i32) -> Gauge {
        let series = |label: String| {
            let mut labels = self.labels.clone();
            labels.push(("priority", label));
            self.depth.get_or_create_owned(&labels)
        };
        let mut depths = self.depths.lock();
        if let Some(gauge) = depths.own.get(&priority) {
            return gauge.clone();
        }
        if depths.own.len() < PRIORITIES_MAX {
            let label = if self.prioritized { priority.to_string() } else { String::new() };
            return depths.own.entry(priority).or_insert_with(|| series(label)).clone();
        }
        depths.others.get_or_insert_with(|| series(EXCEEDED.to_owned())).clone()
    }
}

impl QueueMetrics for QueueSeries {
    fn depth(&self, change: i64) {
        if !self.prioritized {
            self.depth_gauge(0).inc_by(change);
        }
    }

    fn depth_of(&self, priority: i32, change: i64) {
        self.depth_gauge(priority).inc_by(change);
    }

    fn adds(&self, count: u64) {
        self.adds.inc_by(count);
    }

    fn queue_duration(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }

    fn work_duration(&self, worked: Duration) {
        self.work_duration.observe(worked.as_secs_f64());
    }

    fn unfinished_work(&self, total: Duration) {
        self.unfinished.set(total.as_secs_f64());
    }

    fn longest_running_processor(&self, longest: Duration) {
        self.longest.set(longest.as_secs_f64());
    }

    fn retries(&self, count: u64) {
        self.retries.inc_by(count);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn text(metrics: &ControllerMetrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn every_series_of_a_controller_is_there_at_zero_before_anything_happens() {
        let metrics = ControllerMetrics::new();
        let _series = metrics.of_controller("pods", 3);
        let _queue = metrics.of_queue("pods", true).queue_metrics("pods");
        let text = text(&metrics);
        for line in [
            r#"controller_runtime_reconcile_total{controller="pods",result="error"} 0"#,
            r#"controller_runtime_reconcile_total{controller="pods",result="requeue_after"} 0"#,
            r#"controller_runtime_reconcile_total{controller="pods",result="requeue"} 0"#,
            r#"controller_runtime_reconcile_total{controller="pods",result="success"} 0"#,
            r#"controller_runtime_reconcile_errors_total{controller="pods"} 0"#,
            r#"controller_runtime_terminal_reconcile_errors_total{controller="pods"} 0"#,
            r#"controller_runtime_reconcile_panics_total{controller="pods"} 0"#,
            r#"controller_runtime_reconcile_timeouts_total{controller="pods"} 0"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="pods"} 0"#,
            r#"controller_runtime_reconcile_time_seconds_bucket{le="0.005",controller="pods"} 0"#,
            r#"controller_runtime_reconcile_time_seconds_bucket{le="60.0",controller="pods"} 0"#,
            r#"controller_runtime_max_concurrent_reconciles{controller="pods"} 3"#,
            r#"controller_runtime_active_workers{controller="pods"} 0"#,
            r#"workqueue_depth{name="pods",controller="pods",priority="0"} 0"#,
            r#"workqueue_adds_total{name="pods",controller="pods"} 0"#,
            r#"workqueue_retries_total{name="pods",controller="pods"} 0"#,
            r#"workqueue_queue_duration_seconds_count{name="pods",controller="pods"} 0"#,
            r#"workqueue_work_duration_seconds_count{name="pods",controller="pods"} 0"#,
            r#"workqueue_unfinished_work_seconds{name="pods",controller="pods"} 0.0"#,
            r#"workqueue_longest_running_processor_seconds{name="pods",controller="pods"} 0.0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        let buckets = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name}_bucket{{"))).count();
        assert_eq!(buckets("controller_runtime_reconcile_time_seconds"), 40 + 1);
        assert_eq!(buckets("workqueue_queue_duration_seconds"), 12 + 1);
        assert_eq!(buckets("workqueue_work_duration_seconds"), 12 + 1);
    }

    #[test]
    fn the_depth_of_a_queue_without_priorities_has_an_empty_label() {
        let metrics = ControllerMetrics::new();
        let queue = metrics.of_queue("pods", false).queue_metrics("pods");
        queue.depth(2);
        let text = text(&metrics);
        assert!(text.contains(r#"workqueue_depth{name="pods",controller="pods",priority=""} 2"#), "{text}");
    }

    #[test]
    fn beyond_25_priorities_all_share_a_series_which_stays_balanced() {
        let metrics = ControllerMetrics::new();
        let queue = metrics.of_queue("pods", true).queue_metrics("pods");
        for priority in 0..40 {
            queue.depth_of(priority, 1);
        }
        let shown = text(&metrics);
        assert!(shown.contains(r#"priority="24"} 1"#) && !shown.contains(r#"priority="25""#), "{shown}");
        assert!(shown.contains(r#"priority="exceeded_cardinality_limit"} 15"#), "{shown}");
        for priority in 0..40 {
            queue.depth_of(priority, -1);
        }
        let shown = text(&metrics);
        let depths: Vec<_> = shown.lines().filter(|line| line.starts_with("workqueue_depth{")).collect();
        assert_eq!(depths.len(), 26);
        assert!(depths.iter().all(|line| line.ends_with(" 0")), "{depths:?}");
    }
}
