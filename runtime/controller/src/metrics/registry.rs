//! The metrics of one manager. Nothing is global.

use std::fmt;
use std::sync::Arc;

use kubewire_leaderelection::{LeaderMetrics, names as lease};
use kubewire_prometheus::InformerSeries;
use parking_lot::Mutex;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::client::RequestLabels;
use crate::ControllerMetrics;

/// Series by client-go's and controller-runtime's names, and whatever a user adds, to be told as Prometheus' (OpenMetrics)
/// text by a [`MetricsServer`](crate::MetricsServer) or in any other way. Cloning gives another handle.
///
/// It belongs to a manager: two managers in a process, or in a test, have nothing in common.
///
/// ```
/// use kubewire_controller::MetricsRegistry;
/// use prometheus_client::metrics::counter::Counter;
///
/// let metrics = MetricsRegistry::new();
/// let backups: Counter = Counter::default();
/// metrics.register(|registry| registry.register("backups", "Backups made", backups.clone()));
/// backups.inc();
/// assert!(metrics.text()?.contains("backups_total 1\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// What is there from the start:
///
/// | whose | names |
/// |---|---|
/// | informers: this is a provider for [`InformerOptions::metrics`](kubewire_informer::InformerOptions::metrics) | those of [`kubewire_informer::metrics`] |
/// | [`controllers`](Self::controllers) and their queues | those of [`controller_metrics::names`](crate::controller_metrics::names) and of [`kubewire_workqueue::metrics`] |
/// | clients, by [`count_requests`](Self::count_requests) | `rest_client_requests_total` by `code`, `method` and `host` |
/// | electors: this is what [`ElectorBuilder::metrics`](kubewire_leaderelection::ElectorBuilder::metrics) takes | those of [`kubewire_leaderelection::names`] |
/// | certificates | `certwatcher_read_certificate_total`, `certwatcher_read_certificate_errors_total` |
///
/// Cost of a text: one look at each series, and the text; nothing is held meanwhile but the lock of one family.
#[derive(Clone)]
pub struct MetricsRegistry {
    shared: Arc<Shared>,
}

struct Shared {
    /// Each of those who registered something. Nothing is called under its lock.
    parts: Mutex<Vec<Arc<Registry>>>,
    /// Called before a text is made. Nothing is called under its lock.
    refreshers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
    informers: InformerSeries,
    controllers: ControllerMetrics,
    requests: Family<RequestLabels, Counter>,
    leaders: Family<LeaseLabels, Gauge>,
    slow_paths: Family<LeaseLabels, Counter>,
    certificates: Counter,
    certificate_errors: Counter,
}

impl MetricsRegistry {
    /// A registry with the series named above.
    pub fn new() -> Self {
        let shared = Shared {
            parts: Mutex::default(),
            refreshers: Mutex::default(),
            informers: InformerSeries::new(),
            controllers: ControllerMetrics::new(),
            requests: Family::default(),
            leaders: Family::default(),
            slow_paths: Family::default(),
            certificates: Counter::default(),
            certificate_errors: Counter::default(),
        };
        let this = Self { shared: Arc::new(shared) };
        let Shared { informers, controllers, requests, leaders, slow_paths, certificates, certificate_errors, .. } =
            &*this.shared;
        this.register(|registry| {
            informers.register(registry);
            controllers.register(registry);
            registry.register("rest_client_requests", "Answers of API servers", requests.clone());
            registry.register(lease::MASTER_STATUS, "Whether this replica leads", leaders.clone());
            let help = "Renewals that failed without having read the lease first";
            registry.register(lease::SLOWPATH.trim_end_matches("_total"), help, slow_paths.clone());
            registry.register("certwatcher_read_certificate", "Certificates that were read", certificates.clone());
            let help = "Certificates that could not be read or used";
            registry.register("certwatcher_read_certificate_errors", help, certificate_errors.clone());
        });
        this
    }

    /// Adds series of the user's own, at any time. A name that is there already is written twice, which Prometheus refuses.
    pub fn register(&self, fill: impl FnOnce(&mut Registry)) {
        let mut part = Registry::default();
        fill(&mut part);
        self.shared.parts.lock().push(Arc::new(part));
    }

    /// Calls this each time before a text is made: for gauges that must be brought up to date.
    pub fn on_refresh(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.shared.refreshers.lock().push(Arc::new(refresh));
    }

    /// All series, as OpenMetrics text.
    ///
    /// # Errors
    /// A collector of the user's own fails.
    pub fn text(&self) -> Result<String, fmt::Error> {
        self.shared.controllers.refresh();
        let refreshers = self.shared.refreshers.lock().clone();
        refreshers.iter().for_each(|refresh| refresh());
        let parts = self.shared.parts.lock().clone();
        let mut text = String::new();
        parts.iter().try_for_each(|part| encode_registry(&mut text, part))?;
        encode_eof(&mut text)?;
        Ok(text)
    }

    /// The series of controllers and of their queues.
    pub fn controllers(&self) -> &ControllerMetrics {
        &self.shared.controllers
    }

    pub(super) fn requests(&self) -> &Family<RequestLabels, Counter> {
        &self.shared.requests
    }
}

impl Default for MetricsRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl kubewire_informer::MetricsProvider for MetricsRegistry {
    fn informer_metrics(
        &self,
        labels: &kubewire_informer::InformerLabels,
    ) -> Box<dyn kubewire_informer::InformerMetrics> {
        self.shared.informers.informer_metrics(labels)
    }
}

/// The label of what is told of an election.
type LeaseLabels = [(&'static str, String); 1];

fn of_lease(name: &str) -> LeaseLabels {
    [(lease::LABEL_NAME, name.to_owned())]
}

impl LeaderMetrics for MetricsRegistry {
    fn master_status(&self, name: &str, leads: bool) {
        self.shared.leaders.get_or_create(&of_lease(name)).set(i64::from(leads));
    }

    fn slowpath(&self, name: &str) {
        self.shared.slow_paths.get_or_create(&of_lease(name)).inc();
    }
}

#[cfg(feature = "rustls-tls")]
impl crate::CertificateEvents for MetricsRegistry {
    fn read(&self, ok: bool) {
        self.shared.certificates.inc();
        if !ok {
            self.shared.certificate_errors.inc();
        }
    }
}

impl fmt::Debug for MetricsRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsRegistry").field("parts", &self.shared.parts.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_registries_have_nothing_in_common_and_what_is_refreshed_is_refreshed_before_it_is_told() {
        let (one, other) = (MetricsRegistry::new(), MetricsRegistry::new());
        let scrapes: Counter = Counter::default();
        one.register(|registry| registry.register("scrapes", "Texts made", scrapes.clone()));
        one.on_refresh(move || {
            scrapes.inc();
        });
        assert!(one.text().unwrap().contains("scrapes_total 1\n"));
        assert!(one.text().unwrap().contains("scrapes_total 2\n"));
        assert!(!other.text().unwrap().contains("scrapes"));
    }
}
