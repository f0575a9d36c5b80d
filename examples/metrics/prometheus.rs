//! The metrics of queues and informers as series of `prometheus-client`, with their names and labels. Copy this file: it
//! is all that a program needs to export them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kubewire_informer::metrics::names as informer;
use kubewire_informer::reflector::RestartCause;
use kubewire_informer::{InformerLabels, InformerMetrics};
use kubewire_workqueue::QueueMetrics;
use kubewire_workqueue::metrics::names as queue;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub(crate) const COUNTERS: [(&str, &str); 9] = [
    (queue::ADDS, "Accepted adds"),
    (queue::RETRIES, "Delayed adds"),
    (informer::LISTS, "Lists that were begun"),
    (informer::WATCHES, "Watches that were asked for"),
    (informer::SHORT_WATCHES, "Watches that were over within a second without an event"),
    (informer::UNDECODABLE, "Objects that could not be decoded and were skipped"),
    (informer::HANDLER_NOTIFICATIONS, "Calls of a handler that have returned"),
    (informer::HANDLER_COALESCED, "Notifications merged into others that waited"),
    (informer::HANDLER_PANICS, "Calls of a handler that have panicked"),
];

/// Beside those above; it gets its series with the first cause.
pub(crate) const RESTARTS: (&str, &str) = (informer::RESTARTS, "Lists and watches that were over, by cause");

pub(crate) const GAUGES: [(&str, &str); 10] = [
    (queue::DEPTH, "Accepted adds that were not got yet"),
    (queue::UNFINISHED_WORK, "How long the keys in processing have been so, together"),
    (queue::LONGEST_RUNNING_PROCESSOR, "How long the key in processing for longest has been so"),
    (informer::LAST_RESOURCE_VERSION, "The version that the reflector has come to, its last 15 digits"),
    (informer::FAILURES_IN_A_ROW, "Tries to list or watch that failed since one worked"),
    (informer::QUEUED_ITEMS, "Entries between the reflector and the store"),
    (informer::STORE_RESOURCE_VERSION, "The version up to which the store is complete, its last 15 digits"),
    (informer::OBJECTS, "Objects in the store"),
    (informer::STALENESS, "How long ago the server was last heard of"),
    (informer::PENDING_NOTIFICATIONS, "Notifications, or keys, that wait for a handler"),
];

/// Beside those above, as it is about a handler.
pub(crate) const HANDLER_BUSY: (&str, &str) =
    (informer::HANDLER_BUSY, "How long a handler has been at one notification");

/// Makes a histogram, with its buckets.
type Make = fn() -> Histogram;

pub(crate) const HISTOGRAMS: [(&str, &str, Make); 7] = [
    (queue::QUEUE_DURATION, "From the first add of a key until it was got", work),
    (queue::WORK_DURATION, "From a get until its done", work),
    (informer::LIST_DURATION, "From the first request of a list until it was complete", seconds),
    (informer::ITEMS_PER_LIST, "Items of a list", items),
    (informer::WATCH_DURATION, "How long a watch was open", seconds),
    (informer::ITEMS_PER_WATCH, "Events of a watch", items),
    (informer::PROCESSING_LATENCY, "How long a batch took into the store", latency),
];

fn work() -> Histogram {
    Histogram::new(queue::DURATION_BUCKETS_SECONDS)
}

fn latency() -> Histogram {
    Histogram::new(informer::PROCESSING_LATENCY_BUCKETS_SECONDS)
}

fn seconds() -> Histogram {
    Histogram::new([0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 600.0])
}

fn items() -> Histogram {
    Histogram::new([0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0])
}

type Labels = Vec<(&'static str, String)>;

/// Makes the series, and prints them.
#[derive(Clone)]
pub(crate) struct Exporter {
    registry: Arc<Registry>,
    families: Arc<Families>,
}

#[derive(Default)]
struct Families {
    counters: BTreeMap<&'static str, Family<Labels, Counter>>,
    gauges: BTreeMap<&'static str, Family<Labels, Gauge<f64, AtomicU64>>>,
    histograms: BTreeMap<&'static str, Family<Labels, Histogram, Make>>,
}

impl Exporter {
    pub(crate) fn new() -> Self {
        let (mut registry, mut families) = (Registry::default(), Families::default());
        for (name, help) in COUNTERS.into_iter().chain([RESTARTS]) {
            let family = Family::default();
            // The library adds the ending of a counter's name itself.
            registry.register(name.trim_end_matches("_total"), help, family.clone());
            families.counters.insert(name, family);
        }
        for (name, help) in GAUGES.into_iter().chain([HANDLER_BUSY]) {
            let family = Family::default();
            registry.register(name, help, family.clone());
            families.gauges.insert(name, family);
        }
        for (name, help, make) in HISTOGRAMS {
            let family = Family::new_with_constructor(make);
            registry.register(name, help, family.clone());
            families.histograms.insert(name, family);
        }
        Self { registry: Arc::new(registry), families: Arc::new(families) }
    }

    /// All series, as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn series(&self, labels: Labels) -> Series {
        Series { families: Arc::clone(&self.families), labels, used: Mutex::default() }
    }
}

impl kubewire_workqueue::MetricsProvider for Exporter {
    fn queue_metrics(&self, queue: &str) -> Box<dyn QueueMetrics> {
        Box::new(self.series(vec![("name", queue.to_owned())]))
    }
}

impl kubewire_informer::MetricsProvider for Exporter {
    fn informer_metrics(&self, labels: &InformerLabels) -> Box<dyn InformerMetrics> {
        let InformerLabels { name, group, version, resource, .. } = labels.clone();
        let series = self.series(vec![("name", name), ("group", group), ("version", version), ("resource", resource)]);
        // These are there from the start, so that their first increase is seen.
        [informer::SHORT_WATCHES, informer::UNDECODABLE].iter().for_each(|name| series.count(name, None, 0));
        Box::new(series)
    }
}

/// The series of one queue or informer. Dropping it removes them.
struct Series {
    families: Arc<Families>,
    labels: Labels,
    used: Mutex<BTreeSet<(&'static str, Labels)>>,
}

type More<'a> = Option<(&'static str, &'a str)>;

impl Series {
    fn labels(&self, name: &'static str, more: More<'_>) -> Labels {
        let mut labels = self.labels.clone();
        labels.extend(more.map(|(label, value)| (label, value.to_owned())));
        self.used.lock().insert((name, labels.clone()));
        labels
    }

    fn count(&self, name: &'static str, more: More<'_>, count: u64) {
        self.families.counters[name].get_or_create(&self.labels(name, more)).inc_by(count);
    }

    fn set(&self, name: &'static str, more: More<'_>, value: f64) {
        self.families.gauges[name].get_or_create(&self.labels(name, more)).set(value);
    }

    fn observe(&self, name: &'static str, value: f64) {
        self.families.histograms[name].get_or_create(&self.labels(name, None)).observe(value);
    }

    fn remove(&self, which: impl Fn(&Labels) -> bool) {
        self.used.lock().retain(|(name, labels)| {
            if !which(labels) {
                return true;
            }
            let Families { counters, gauges, histograms } = &*self.families;
            counters.get(name).map(|family| family.remove(labels));
            gauges.get(name).map(|family| family.remove(labels));
            histograms.get(name).map(|family| family.remove(labels));
            false
        });
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        self.remove(|_| true);
    }
}

impl QueueMetrics for Series {
    fn depth(&self, change: i64) {
        let labels = self.labels(queue::DEPTH, None);
        self.families.gauges[queue::DEPTH].get_or_create(&labels).inc_by(change as f64);
    }
    fn adds(&self, count: u64) {
        self.count(queue::ADDS, None, count);
    }
    fn queue_duration(&self, waited: Duration) {
        self.observe(queue::QUEUE_DURATION, waited.as_secs_f64());
    }
    fn work_duration(&self, worked: Duration) {
        self.observe(queue::WORK_DURATION, worked.as_secs_f64());
    }
    fn unfinished_work(&self, total: Duration) {
        self.set(queue::UNFINISHED_WORK, None, total.as_secs_f64());
    }
    fn longest_running_processor(&self, longest: Duration) {
        self.set(queue::LONGEST_RUNNING_PROCESSOR, None, longest.as_secs_f64());
    }
    fn retries(&self, count: u64) {
        self.count(queue::RETRIES, None, count);
    }
}

impl InformerMetrics for Series {
    fn lists(&self, count: u64) {
        self.count(informer::LISTS, None, count);
    }
    fn list_duration(&self, took: Duration) {
        self.observe(informer::LIST_DURATION, took.as_secs_f64());
    }
    fn items_per_list(&self, items: u64) {
        self.observe(informer::ITEMS_PER_LIST, items as f64);
    }
    fn watches(&self, count: u64) {
        self.count(informer::WATCHES, None, count);
    }
    fn short_watches(&self, count: u64) {
        self.count(informer::SHORT_WATCHES, None, count);
    }
    fn watch_duration(&self, lasted: Duration) {
        self.observe(informer::WATCH_DURATION, lasted.as_secs_f64());
    }
    fn items_per_watch(&self, items: u64) {
        self.observe(informer::ITEMS_PER_WATCH, items as f64);
    }
    fn last_resource_version(&self, version: u64) {
        self.set(informer::LAST_RESOURCE_VERSION, None, version as f64);
    }
    fn restarts(&self, cause: RestartCause) {
        self.count(informer::RESTARTS, Some((informer::LABEL_CAUSE, &cause.to_string())), 1);
    }
    fn undecodable(&self, count: u64) {
        self.count(informer::UNDECODABLE, None, count);
    }
    fn failures_in_a_row(&self, failures: u64) {
        self.set(informer::FAILURES_IN_A_ROW, None, failures as f64);
    }
    fn queued_items(&self, items: u64) {
        self.set(informer::QUEUED_ITEMS, None, items as f64);
    }
    fn processing_latency(&self, took: Duration) {
        self.observe(informer::PROCESSING_LATENCY, took.as_secs_f64());
    }
    fn store_resource_version(&self, version: u64) {
        self.set(informer::STORE_RESOURCE_VERSION, None, version as f64);
    }
    fn objects(&self, objects: u64) {
        self.set(informer::OBJECTS, None, objects as f64);
    }
    fn staleness(&self, staleness: Duration) {
        self.set(informer::STALENESS, None, staleness.as_secs_f64());
    }
    fn pending_notifications(&self, handler: &str, waiting: u64) {
        self.set(informer::PENDING_NOTIFICATIONS, Some((informer::LABEL_HANDLER, handler)), waiting as f64);
    }
    fn handler_busy(&self, handler: &str, busy: Duration) {
        self.set(informer::HANDLER_BUSY, Some((informer::LABEL_HANDLER, handler)), busy.as_secs_f64());
    }
    fn handler_notifications(&self, handler: &str, count: u64) {
        self.count(informer::HANDLER_NOTIFICATIONS, Some((informer::LABEL_HANDLER, handler)), count);
    }
    fn handler_coalesced(&self, handler: &str, count: u64) {
        self.count(informer::HANDLER_COALESCED, Some((informer::LABEL_HANDLER, handler)), count);
    }
    fn handler_panics(&self, handler: &str, count: u64) {
        self.count(informer::HANDLER_PANICS, Some((informer::LABEL_HANDLER, handler)), count);
    }
    fn handler_removed(&self, handler: &str) {
        self.remove(|labels| labels.iter().any(|(label, value)| *label == informer::LABEL_HANDLER && value == handler));
    }
}
