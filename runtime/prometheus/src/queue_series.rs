//! The series of work queues.

use std::time::Duration;

use kubewire_workqueue::metrics::names;
use kubewire_workqueue::{MetricsProvider, QueueMetrics};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::families::{Families, Kind, Make, Metric};
use crate::series::Series;

const DURATION: Make = || Histogram::new(names::DURATION_BUCKETS_SECONDS);

const METRICS: [Metric; names::ALL.len()] = [
    (names::DEPTH, "Accepted adds that were not got yet", Kind::Gauge),
    (names::ADDS, "Accepted adds", Kind::Counter),
    (names::QUEUE_DURATION, "From the first add of a key until it was got", Kind::Histogram(DURATION)),
    (names::WORK_DURATION, "From a get until its done", Kind::Histogram(DURATION)),
    (names::UNFINISHED_WORK, "How long the keys in processing have been so, together", Kind::Gauge),
    (names::LONGEST_RUNNING_PROCESSOR, "How long the key in processing for longest has been so", Kind::Gauge),
    (names::RETRIES, "Delayed adds", Kind::Counter),
];

/// The series of any number of queues, each with the label `name`: a provider for
/// [`QueueBuilder::metrics`](kubewire_workqueue::QueueBuilder::metrics) or
/// [`set_metrics_provider`](kubewire_workqueue::set_metrics_provider). Cloning counts a reference.
#[derive(Clone, Debug)]
pub struct QueueSeries {
    families: Families,
}

impl QueueSeries {
    /// Series of no queue yet.
    pub fn new() -> Self {
        Self { families: Families::new(&METRICS) }
    }

    /// Has a registry show them.
    pub fn register(&self, registry: &mut Registry) {
        self.families.register(registry);
    }
}

impl Default for QueueSeries {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricsProvider for QueueSeries {
    fn queue_metrics(&self, queue: &str) -> Box<dyn QueueMetrics> {
        Box::new(OneQueue(Series::new(self.families.clone(), vec![("name", queue.to_owned())])))
    }
}

struct OneQueue(Series);

impl QueueMetrics for OneQueue {
    fn depth(&self, change: i64) {
        self.0.change(names::DEPTH, change);
    }
    fn adds(&self, count: u64) {
        self.0.count(names::ADDS, None, count);
    }
    fn queue_duration(&self, waited: Duration) {
        self.0.observe(names::QUEUE_DURATION, waited.as_secs_f64());
    }
    fn work_duration(&self, worked: Duration) {
        self.0.observe(names::WORK_DURATION, worked.as_secs_f64());
    }
    fn unfinished_work(&self, total: Duration) {
        self.0.set(names::UNFINISHED_WORK, None, total.as_secs_f64());
    }
    fn longest_running_processor(&self, longest: Duration) {
        self.0.set(names::LONGEST_RUNNING_PROCESSOR, None, longest.as_secs_f64());
    }
    fn retries(&self, count: u64) {
        self.0.count(names::RETRIES, None, count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubewire_workqueue::Queue;
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_queue_has_all_its_series_until_its_last_handle_is_dropped() {
        let (series, mut registry) = (QueueSeries::new(), Registry::default());
        series.register(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let queue = Queue::builder().name("mine").metrics(Arc::new(series)).build();
        queue.add(1);
        queue.add(2);
        queue.add_after(3, Duration::from_secs(3600));
        drop(queue.try_get().unwrap());
        queue.refresh_metrics();
        let shown = text();
        for (name, _, kind) in METRICS {
            let ending = if matches!(kind, Kind::Histogram(_)) { "_count" } else { "" };
            assert!(shown.contains(&format!("\n{name}{ending}{{name=\"mine\"}} ")), "{name} in {shown}");
        }
        assert_eq!(METRICS.map(|(name, ..)| name), names::ALL);
        assert!(shown.contains("\nworkqueue_depth{name=\"mine\"} 1.0\n"), "{shown}");
        assert!(shown.contains("\nworkqueue_adds_total{name=\"mine\"} 2\n"), "{shown}");
        drop(queue);
        assert!(!text().contains("mine"), "no series outlives its queue: {}", text());
    }
}
