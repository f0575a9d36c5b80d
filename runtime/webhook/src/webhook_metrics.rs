//! What is counted, by controller-runtime's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The series of webhooks. Cloning gives another handle.
///
/// | name | kind, labels |
/// |---|---|
/// | `controller_runtime_webhook_requests_total` | counter; `webhook` (the path), `code` (of HTTP: 200 also for what is not admitted) |
/// | `controller_runtime_webhook_latency_seconds` | histogram; `webhook` |
/// | `controller_runtime_webhook_requests_in_flight` | gauge; `webhook` |
/// | `controller_runtime_webhook_panics_total` | counter |
#[derive(Clone, Debug)]
pub struct WebhookMetrics {
    requests: Family<Answered, Counter>,
    latency: Family<Path, Histogram, Seconds>,
    in_flight: Family<Path, Gauge>,
    panics: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Path {
    webhook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    webhook: String,
    code: u16,
}

/// Makes histograms with Prometheus' own buckets.
#[derive(Clone, Debug)]
struct Seconds;

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
    }
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(Seconds),
            in_flight: Family::default(),
            panics: Counter::default(),
        }
    }
}

impl WebhookMetrics {
    /// Puts the series into a registry, such as the manager's.
    pub fn register(&self, registry: &mut Registry) {
        let name = |name: &str| format!("controller_runtime_webhook_{name}");
        registry.register(name("requests"), "Requests of API servers that were answered", self.requests.clone());
        registry.register(name("latency_seconds"), "How long requests took", self.latency.clone());
        registry.register(name("requests_in_flight"), "Requests that are being answered", self.in_flight.clone());
        registry.register(name("panics"), "Handlers that panicked", self.panics.clone());
    }

    /// The series of a path are there from the start.
    pub(crate) fn begin(&self, path: &str) {
        let label = || Path { webhook: path.to_owned() };
        for code in [200, 500] {
            let _ = self.requests.get_or_create(&Answered { webhook: path.to_owned(), code });
        }
        let _ = self.latency.get_or_create(&label());
        let _ = self.in_flight.get_or_create(&label());
    }

    /// A request has come. It counts as in flight until the result is dropped.
    pub(crate) fn enter(&self, path: &str) -> InFlight {
        let gauge = self.in_flight.get_or_create_owned(&Path { webhook: path.to_owned() });
        gauge.inc();
        InFlight(gauge)
    }

    pub(crate) fn answered(&self, path: &str, code: u16, took: Duration) {
        let webhook = path.to_owned();
        self.requests.get_or_create(&Answered { webhook: webhook.clone(), code }).inc();
        self.latency.get_or_create(&Path { webhook }).observe(took.as_secs_f64());
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    /// How many handlers have panicked.
    pub fn panics(&self) -> u64 {
        self.panics.get()
    }
}

pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
