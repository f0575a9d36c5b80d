//! What a manager serves, and how it ends.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::leader_election::LeaderElection;
use super::runnable_groups::{CANCEL_PERIOD, GRACE_PERIOD};
use crate::{ControllerDefaults, GroupKind, MetricsRegistry, TokenAccess};

/// What a [`Manager`](crate::Manager) is made with.
///
/// No port is opened unless an address is given. (controller-runtime serves metrics on `:8080` unless told otherwise.)
#[must_use = "options do nothing before they are given to a manager"]
pub struct ManagerOptions {
    pub(super) health_address: Option<SocketAddr>,
    pub(super) default_checks: bool,
    pub(super) watch_tolerance: Duration,
    pub(super) metrics: MetricsRegistry,
    pub(super) metrics_address: Option<SocketAddr>,
    pub(super) metrics_access: Option<TokenAccess>,
    #[cfg(feature = "rustls-tls")]
    pub(super) metrics_tls: Option<crate::ReloadingCertificate>,
    pub(super) elector: Option<Arc<dyn LeaderElection>>,
    pub(super) controllers: ControllerDefaults,
    pub(super) concurrency: HashMap<GroupKind, usize>,
    pub(super) grace_period: Option<Duration>,
    pub(super) cancel_period: Duration,
}

/// A watch is begun anew each five to ten minutes, and bookmarks come each minute.
const WATCH_TOLERANCE: Duration = Duration::from_secs(120);

impl ManagerOptions {
    /// No servers, no election, a grace period of 30 s.
    pub fn new() -> Self {
        Self {
            health_address: None,
            default_checks: true,
            watch_tolerance: WATCH_TOLERANCE,
            metrics: MetricsRegistry::new(),
            metrics_address: None,
            metrics_access: None,
            #[cfg(feature = "rustls-tls")]
            metrics_tls: None,
            elector: None,
            controllers: ControllerDefaults::new(),
            concurrency: HashMap::new(),
            grace_period: Some(GRACE_PERIOD),
            cancel_period: CANCEL_PERIOD,
        }
    }

    /// Serves `/healthz` and `/readyz` here, by a [`HealthServer`](crate::HealthServer).
    pub fn health_address(self, address: SocketAddr) -> Self {
        Self { health_address: Some(address), ..self }
    }

    /// Whether there are checks from the start: `ping` for `/healthz`; `manager`, `caches` and `watches` for `/readyz`, which
    /// is ready once the start is over and until the stop begins, when all first lists are there, and as long as no watch has
    /// been failing for longer than the [tolerance](Self::watch_tolerance). Default: yes.
    pub fn default_checks(self, wanted: bool) -> Self {
        Self { default_checks: wanted, ..self }
    }

    /// For how long a watch may fail before the check `watches` does. Default: two minutes.
    pub fn watch_tolerance(self, tolerance: Duration) -> Self {
        Self { watch_tolerance: tolerance, ..self }
    }

    /// Another registry than one of its own; to be filled before there is a manager, say by the metrics of its caches.
    pub fn metrics(self, registry: MetricsRegistry) -> Self {
        Self { metrics: registry, ..self }
    }

    /// Serves `/metrics` here, by a [`MetricsServer`](crate::MetricsServer).
    pub fn metrics_address(self, address: SocketAddr) -> Self {
        Self { metrics_address: Some(address), ..self }
    }

    /// Who may read the metrics. Default: all.
    pub fn metrics_access(self, access: TokenAccess) -> Self {
        Self { metrics_access: Some(access), ..self }
    }

    /// Serves the metrics with TLS.
    #[cfg(feature = "rustls-tls")]
    pub fn metrics_tls(self, certificate: crate::ReloadingCertificate) -> Self {
        Self { metrics_tls: Some(certificate), ..self }
    }

    /// Decides which of several replicas leads. Default: this one does.
    pub fn elector(self, elector: impl LeaderElection) -> Self {
        Self { elector: Some(Arc::new(elector)), ..self }
    }

    /// What its controllers have in common, where they do not say otherwise.
    pub fn controllers(self, defaults: ControllerDefaults) -> Self {
        Self { controllers: defaults, ..self }
    }

    /// How many requests controllers for this kind reconcile at a time, where they do not say so themselves. It counts more
    /// than what [`controllers`](Self::controllers) says for all.
    pub fn concurrency_of(mut self, kind: GroupKind, count: usize) -> Self {
        self.concurrency.insert(kind, count);
        self
    }

    /// See [`RunnableGroups::grace_period`](crate::RunnableGroups::grace_period). Default: 30 s.
    pub fn grace_period(self, period: impl Into<Option<Duration>>) -> Self {
        Self { grace_period: period.into(), ..self }
    }

    /// See [`RunnableGroups::cancel_period`](crate::RunnableGroups::cancel_period). Default: one second.
    pub fn cancel_period(self, period: Duration) -> Self {
        Self { cancel_period: period, ..self }
    }
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManagerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerOptions")
            .field("health_address", &self.health_address)
            .field("metrics_address", &self.metrics_address)
            .field("elects", &self.elector.is_some())
            .field("grace_period", &self.grace_period)
            .finish_non_exhaustive()
    }
}
