//! The series of informers and their reflectors.

use std::time::Duration;

use kubewire_informer::metrics::names;
use kubewire_informer::reflector::RestartCause;
use kubewire_informer::{InformerLabels, InformerMetrics, MetricsProvider};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::families::{Families, Kind, Make, Metric};
use crate::series::{More, Series};

const SECONDS: Make = || Histogram::new([0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 600.0]);
const ITEMS: Make = || Histogram::new([0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
const LATENCY: Make = || Histogram::new(names::PROCESSING_LATENCY_BUCKETS_SECONDS);

const METRICS: [Metric; names::ALL.len()] = [
    (names::LISTS, "Lists that were begun", Kind::Counter),
    (names::LIST_DURATION, "From the first request of a list until it was complete", Kind::Histogram(SECONDS)),
    (names::ITEMS_PER_LIST, "Items of a list", Kind::Histogram(ITEMS)),
    (names::WATCHES, "Watches that were asked for", Kind::Counter),
    (names::SHORT_WATCHES, "Watches that were over within a second without an event", Kind::Counter),
    (names::WATCH_DURATION, "How long a watch was open", Kind::Histogram(SECONDS)),
    (names::ITEMS_PER_WATCH, "Events of a watch", Kind::Histogram(ITEMS)),
    (names::LAST_RESOURCE_VERSION, "The version that the reflector has come to, its last 15 digits", Kind::Gauge),
    (names::RESTARTS, "Lists and watches that were over, by cause", Kind::Counter),
    (names::UNDECODABLE, "Objects that could not be decoded and were skipped", Kind::Counter),
    (names::FAILURES_IN_A_ROW, "Tries to list or watch that failed since one worked", Kind::Gauge),
    (names::QUEUED_ITEMS, "Entries between the reflector and the store", Kind::Gauge),
    (names::PROCESSING_LATENCY, "How long a batch took into the store", Kind::Histogram(LATENCY)),
    (names::STORE_RESOURCE_VERSION, "The version up to which the store is complete, its last 15 digits", Kind::Gauge),
    (names::OBJECTS, "Objects in the store", Kind::Gauge),
    (names::STALENESS, "How long ago the server was last heard of", Kind::Gauge),
    (names::PENDING_NOTIFICATIONS, "Notifications, or keys, that wait for a handler", Kind::Gauge),
    (names::HANDLER_BUSY, "How long a handler has been at one notification", Kind::Gauge),
    (names::HANDLER_NOTIFICATIONS, "Calls of a handler that have returned", Kind::Counter),
    (names::HANDLER_COALESCED, "Notifications merged into others that waited", Kind::Counter),
    (names::HANDLER_PANICS, "Calls of a handler that have panicked", Kind::Counter),
];

/// The series of any number of informers, each with the labels `name`, `group`, `version` and `resource`: a provider for
/// [`InformerOptions::metrics`](kubewire_informer::InformerOptions::metrics) or
/// [`set_metrics_provider`](kubewire_informer::set_metrics_provider). Cloning counts a reference.
#[derive(Clone, Debug)]
pub struct InformerSeries {
    families: Families,
}

impl InformerSeries {
    /// Series of no informer yet.
    pub fn new() -> Self {
        Self { families: Families::new(&METRICS) }
    }

    /// Has a registry show them.
    pub fn register(&self, registry: &mut Registry) {
        self.families.register(registry);
    }
}

impl Default for InformerSeries {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricsProvider for InformerSeries {
    fn informer_metrics(&self, labels: &InformerLabels) -> Box<dyn InformerMetrics> {
        let InformerLabels { name, group, version, resource, .. } = labels.clone();
        let labels = vec![("name", name), ("group", group), ("version", version), ("resource", resource)];
        let series = Series::new(self.families.clone(), labels);
        // These are there from the start, so that their first increase is seen.
        [names::SHORT_WATCHES, names::UNDECODABLE].iter().for_each(|name| series.count(name, None, 0));
        Box::new(OneInformer(series))
    }
}

struct OneInformer(Series);

fn of_handler(handler: &str) -> More<'_> {
    Some((names::LABEL_HANDLER, handler))
}

impl InformerMetrics for OneInformer {
    fn lists(&self, count: u64) {
        self.0.count(names::LISTS, None, count);
    }
    fn list_duration(&self, took: Duration) {
        self.0.observe(names::LIST_DURATION, took.as_secs_f64());
    }
    fn items_per_list(&self, items: u64) {
        self.0.observe(names::ITEMS_PER_LIST, items as f64);
    }
    fn watches(&self, count: u64) {
        self.0.count(names::WATCHES, None, count);
    }
    fn short_watches(&self, count: u64) {
        self.0.count(names::SHORT_WATCHES, None, count);
    }
    fn watch_duration(&self, lasted: Duration) {
        self.0.observe(names::WATCH_DURATION, lasted.as_secs_f64());
    }
    fn items_per_watch(&self, items: u64) {
        self.0.observe(names::ITEMS_PER_WATCH, items as f64);
    }
    fn last_resource_version(&self, version: u64) {
        self.0.set(names::LAST_RESOURCE_VERSION, None, version as f64);
    }
    fn restarts(&self, cause: RestartCause) {
        self.0.count(names::RESTARTS, Some((names::LABEL_CAUSE, &cause.to_string())), 1);
    }
    fn undecodable(&self, count: u64) {
        self.0.count(names::UNDECODABLE, None, count);
    }
    fn failures_in_a_row(&self, failures: u64) {
        self.0.set(names::FAILURES_IN_A_ROW, None, failures as f64);
    }
    fn queued_items(&self, items: u64) {
        self.0.set(names::QUEUED_ITEMS, None, items as f64);
    }
    fn processing_latency(&self, took: Duration) {
        self.0.observe(names::PROCESSING_LATENCY, took.as_secs_f64());
    }
    fn store_resource_version(&self, version: u64) {
        self.0.set(names::STORE_RESOURCE_VERSION, None, version as f64);
    }
    fn objects(&self, objects: u64) {
        self.0.set(names::OBJECTS, None, objects as f64);
    }
    fn staleness(&self, staleness: Duration) {
        self.0.set(names::STALENESS, None, staleness.as_secs_f64());
    }
    fn pending_notifications(&self, handler: &str, waiting: u64) {
        self.0.set(names::PENDING_NOTIFICATIONS, of_handler(handler), waiting as f64);
    }
    fn handler_busy(&self, handler: &str, busy: Duration) {
        self.0.set(names::HANDLER_BUSY, of_handler(handler), busy.as_secs_f64());
    }
    fn handler_notifications(&self, handler: &str, count: u64) {
        self.0.count(names::HANDLER_NOTIFICATIONS, of_handler(handler), count);
    }
    fn handler_coalesced(&self, handler: &str, count: u64) {
        self.0.count(names::HANDLER_COALESCED, of_handler(handler), count);
    }
    fn handler_panics(&self, handler: &str, count: u64) {
        self.0.count(names::HANDLER_PANICS, of_handler(handler), count);
    }
    fn handler_removed(&self, handler: &str) {
        self.0.remove(names::LABEL_HANDLER, handler);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn an_informer_has_all_its_series_with_their_labels_until_it_has_stopped() {
        let (series, mut registry) = (InformerSeries::new(), Registry::default());
        series.register(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let labels = InformerLabels::new("mine", "apps/v1 deployments");
        let informer = series.informer_metrics(&labels);
        informer.lists(1);
        informer.list_duration(Duration::from_secs(1));
        informer.items_per_list(3);
        informer.watches(1);
        informer.watch_duration(Duration::from_secs(1));
        informer.items_per_watch(1);
        informer.last_resource_version(7);
        informer.restarts(RestartCause::Closed);
        informer.failures_in_a_row(0);
        informer.queued_items(0);
        informer.processing_latency(Duration::from_millis(1));
        informer.store_resource_version(7);
        informer.objects(3);
        informer.staleness(Duration::from_secs(2));
        informer.pending_notifications("web", 1);
        informer.handler_busy("web", Duration::ZERO);
        informer.handler_notifications("web", 1);
        informer.handler_coalesced("web", 1);
        informer.handler_panics("web", 1);
        let shown = text();
        for name in names::ALL {
            let line = shown.lines().find(|line| line.starts_with(name) && line.contains("resource=\"deployments\""));
            let line = line.unwrap_or_else(|| panic!("{name} in {shown}"));
            assert!(line.contains(r#"name="mine",group="apps",version="v1""#), "{line}");
        }
        informer.handler_removed("web");
        assert!(!text().contains("handler=\"web\""));
        drop(informer);
        let shown = text();
        assert!(!shown.contains("deployments"), "no series outlives its informer: {shown}");
        assert!(shown.ends_with("# EOF\n"));
    }
}
