//! The metrics of controllers and their queues, with controller-runtime's names, labels and buckets.

pub mod names;
mod queue_series;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kubewire_workqueue::MetricsProvider;
use kubewire_workqueue::metrics::names as queue_names;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::queue_series::QueueProvider;
use crate::decision::ResultLabel;

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

#[cfg(test)]
mod tests;
