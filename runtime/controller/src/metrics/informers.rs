//! The series of informers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kubewire_informer::metrics::names;
use kubewire_informer::reflector::RestartCause;
use kubewire_informer::{InformerLabels, InformerMetrics};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

const COUNTERS: [(&str, &str); 8] = [
    (names::LISTS, "Lists that were begun"),
    (names::WATCHES, "Watches that were asked for"),
    (names::SHORT_WATCHES, "Watches that were over within a second without an event"),
    (names::RESTARTS, "Lists and watches that were over, by cause"),
    (names::UNDECODABLE, "Objects that could not be decoded and were skipped"),
    (names::HANDLER_NOTIFICATIONS, "Calls of a handler that have returned"),
    (names::HANDLER_COALESCED, "Notifications merged into others that waited"),
    (names::HANDLER_PANICS, "Calls of a handler that have panicked"),
];

const GAUGES: [(&str, &str); 8] = [
    (names::LAST_RESOURCE_VERSION, "The version that the reflector has come to, its last 15 digits"),
    (names::FAILURES_IN_A_ROW, "Tries to list or watch that failed since one worked"),
    (names::QUEUED_ITEMS, "Entries between the reflector and the store"),
    (names::STORE_RESOURCE_VERSION, "The version up to which the store is complete, its last 15 digits"),
    (names::OBJECTS, "Objects in the store"),
    (names::STALENESS, "How long ago the server was last heard of"),
    (names::PENDING_NOTIFICATIONS, "Notifications, or keys, that wait for a handler"),
    (names::HANDLER_BUSY, "How long a handler has been at one notification"),
];

/// Makes a histogram, with its buckets.
type Make = fn() -> Histogram;

const HISTOGRAMS: [(&str, &str, Make); 5] = [
    (names::LIST_DURATION, "From the first request of a list until it was complete", seconds),
    (names::ITEMS_PER_LIST, "Items of a list", items),
    (names::WATCH_DURATION, "How long a watch was open", seconds),
    (names::ITEMS_PER_WATCH, "Events of a watch", items),
    (names::PROCESSING_LATENCY, "How long a batch took into the store", || {
        Histogram::new(names::PROCESSING_LATENCY_BUCKETS_SECONDS)
    }),
];

fn seconds() -> Histogram {
    Histogram::new([0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 600.0])
}

fn items() -> Histogram {
    Histogram::new([0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0])
}

type Labels = Vec<(&'static str, String)>;

/// The families of all informers. Clones share them.
#[derive(Clone)]
pub(super) struct InformerSeries {
    families: Arc<Families>,
}

struct Families {
    counters: BTreeMap<&'static str, Family<Labels, Counter>>,
    gauges: BTreeMap<&'static str, Family<Labels, Gauge<f64, AtomicU64>>>,
    histograms: BTreeMap<&'static str, Family<Labels, Histogram, Make>>,
}

impl InformerSeries {
    pub(super) fn new() -> Self {
        let counters = COUNTERS.into_iter().map(|(name, _)| (name, Family::default())).collect();
        let gauges = GAUGES.into_iter().map(|(name, _)| (name, Family::default())).collect();
        let histograms = HISTOGRAMS.into_iter().map(|(name, _, make)| (name, Family::new_with_constructor(make)));
        Self { families: Arc::new(Families { counters, gauges, histograms: histograms.collect() }) }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let Families { counters, gauges, histograms } = &*self.families;
        for (name, help) in COUNTERS {
            // The library adds the ending of a counter's name itself.
            registry.register(name.trim_end_matches("_total"), help, counters[name].clone());
        }
        for (name, help) in GAUGES {
            registry.register(name, help, gauges[name].clone());
        }
        for (name, help, _) in HISTOGRAMS {
            registry.register(name, help, histograms[name].clone());
        }
    }

    pub(super) fn of(&self, labels: &InformerLabels) -> Box<dyn InformerMetrics> {
        let InformerLabels { name, group, version, resource, .. } = labels.clone();
        let labels = vec![("name", name), ("group", group), ("version", version), ("resource", resource)];
        let series = Series { families: Arc::clone(&self.families), labels, used: Mutex::default() };
        // These are there from the start, so that their first increase is seen.
        [names::SHORT_WATCHES, names::UNDECODABLE].iter().for_each(|name| series.count(name, None, 0));
        Box::new(series)
    }
}

/// The series of one informer. Dropping it removes them.
struct Series {
    families: Arc<Families>,
    labels: Labels,
    /// Which there are. Nothing but the families' own is called under its lock.
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

fn of_handler(handler: &str) -> More<'_> {
    Some((names::LABEL_HANDLER, handler))
}

impl InformerMetrics for Series {
    fn lists(&self, count: u64) {
        self.count(names::LISTS, None, count);
    }
    fn list_duration(&self, took: Duration) {
        self.observe(names::LIST_DURATION, took.as_secs_f64());
    }
    fn items_per_list(&self, items: u64) {
        self.observe(names::ITEMS_PER_LIST, items as f64);
    }
    fn watches(&self, count: u64) {
        self.count(names::WATCHES, None, count);
    }
    fn short_watches(&self, count: u64) {
        self.count(names::SHORT_WATCHES, None, count);
    }
    fn watch_duration(&self, lasted: Duration) {
        self.observe(names::WATCH_DURATION, lasted.as_secs_f64());
    }
    fn items_per_watch(&self, items: u64) {
        self.observe(names::ITEMS_PER_WATCH, items as f64);
    }
    fn last_resource_version(&self, version: u64) {
        self.set(names::LAST_RESOURCE_VERSION, None, version as f64);
    }
    fn restarts(&self, cause: RestartCause) {
        self.count(names::RESTARTS, Some((names::LABEL_CAUSE, &cause.to_string())), 1);
    }
    fn undecodable(&self, count: u64) {
        self.count(names::UNDECODABLE, None, count);
    }
    fn failures_in_a_row(&self, failures: u64) {
        self.set(names::FAILURES_IN_A_ROW, None, failures as f64);
    }
    fn queued_items(&self, items: u64) {
        self.set(names::QUEUED_ITEMS, None, items as f64);
    }
    fn processing_latency(&self, took: Duration) {
        self.observe(names::PROCESSING_LATENCY, took.as_secs_f64());
    }
    fn store_resource_version(&self, version: u64) {
        self.set(names::STORE_RESOURCE_VERSION, None, version as f64);
    }
    fn objects(&self, objects: u64) {
        self.set(names::OBJECTS, None, objects as f64);
    }
    fn staleness(&self, staleness: Duration) {
        self.set(names::STALENESS, None, staleness.as_secs_f64());
    }
    fn pending_notifications(&self, handler: &str, waiting: u64) {
        self.set(names::PENDING_NOTIFICATIONS, of_handler(handler), waiting as f64);
    }
    fn handler_busy(&self, handler: &str, busy: Duration) {
        self.set(names::HANDLER_BUSY, of_handler(handler), busy.as_secs_f64());
    }
    fn handler_notifications(&self, handler: &str, count: u64) {
        self.count(names::HANDLER_NOTIFICATIONS, of_handler(handler), count);
    }
    fn handler_coalesced(&self, handler: &str, count: u64) {
        self.count(names::HANDLER_COALESCED, of_handler(handler), count);
    }
    fn handler_panics(&self, handler: &str, count: u64) {
        self.count(names::HANDLER_PANICS, of_handler(handler), count);
    }
    fn handler_removed(&self, handler: &str) {
        self.remove(|labels| labels.iter().any(|(label, value)| *label == names::LABEL_HANDLER && value == handler));
    }
}
