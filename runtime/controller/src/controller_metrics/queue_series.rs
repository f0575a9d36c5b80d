//! The metrics of a controller's queue.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewire_workqueue::{MetricsProvider, QueueMetrics};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::{ControllerMetrics, FloatGauge, Labels};

/// How many priorities have a series of their own in the depth of a queue; all later ones share one.
const PRIORITIES_MAX: usize = 25;

/// The value of the label `priority` that later priorities share.
const EXCEEDED: &str = "exceeded_cardinality_limit";

/// Makes the series of a controller's queue.
pub(super) struct QueueProvider {
    pub(super) metrics: ControllerMetrics,
    pub(super) controller: String,
    pub(super) prioritized: bool,
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
