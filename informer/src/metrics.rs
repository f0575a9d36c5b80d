//! What an informer and its reflector tell about themselves while they work. No metrics library is in here: a provider
//! makes the series (`kubewire-prometheus` has one, or write your own), and `docs/metrics.md` says what each means and when
//! to be alarmed.
//!
//! An informer has metrics if it has an [`InformerName`] and a provider: its
//! [own](crate::InformerOptions::metrics) or that of [`set_metrics_provider`]. They are made when it starts and dropped
//! when it has stopped, so that no series outlives its informer: have their `Drop` remove them. (client-go took the
//! metrics of reflectors out because their series leaked.)
//!
//! Cost: without them one branch for an event. With them, for an event, one call and the parsing of its version; for a
//! batch of up to 256 changes that goes into the store, two reads of the clock and one call; and every half second one
//! look at the status, with three calls for the informer and five for each handler.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::InformerName;
use crate::informer_name::Reservation;
use crate::reflector::RestartCause;

/// Makes the metrics of each informer that has a name; as client-go's `InformerMetricsProvider`.
pub trait MetricsProvider: Send + Sync {
    /// The metrics of an informer with these labels. Called once, when it starts. They are dropped when it has stopped:
    /// the place to remove their series.
    fn informer_metrics(&self, informer: &InformerLabels) -> Box<dyn InformerMetrics>;
}

/// The labels of all metrics of one informer, by client-go's names. No two informers that run have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct InformerLabels {
    /// The [`InformerName`].
    pub name: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The version within it.
    pub version: String,
    /// The resource, such as `pods`. Where the lister-watcher does not name one, what it says instead.
    pub resource: String,
}

impl InformerLabels {
    /// From a name and what a lister-watcher says that it [lists](kubewire_listwatch::ListerWatcher::resource): `pods`
    /// or `apps/v1 deployments`.
    pub fn new(name: impl Into<String>, resource: &str) -> Self {
        let (api_version, plural) = resource.split_once(' ').unwrap_or(("", resource));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_plural = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'/');
        // The core group has one version.
        let version = if api_version.is_empty() && is_plural(plural) { "v1" } else { version };
        Self { name: name.into(), group: group.to_owned(), version: version.to_owned(), resource: plural.to_owned() }
    }
}

/// The metrics of one informer. Each method does nothing by default, so an implementation has only what it wants.
///
/// Called without a lock of the informer, by its tasks; it should be quick. A panic is caught and reported.
///
/// | method | name ([`names`]) | kind | more labels |
/// |---|---|---|---|
/// | [`lists`](Self::lists) | `reflector_lists_total` | counter | |
/// | [`list_duration`](Self::list_duration) | `reflector_list_duration_seconds` | histogram | |
/// | [`items_per_list`](Self::items_per_list) | `reflector_items_per_list` | histogram | |
/// | [`watches`](Self::watches) | `reflector_watches_total` | counter | |
/// | [`short_watches`](Self::short_watches) | `reflector_short_watches_total` | counter | |
/// | [`watch_duration`](Self::watch_duration) | `reflector_watch_duration_seconds` | histogram | |
/// | [`items_per_watch`](Self::items_per_watch) | `reflector_items_per_watch` | histogram | |
/// | [`last_resource_version`](Self::last_resource_version) | `reflector_last_resource_version` | gauge | |
/// | [`restarts`](Self::restarts) | `reflector_restarts_total` * | counter | `cause` |
/// | [`undecodable`](Self::undecodable) | `reflector_undecodable_total` * | counter | |
/// | [`failures_in_a_row`](Self::failures_in_a_row) | `reflector_failures_in_a_row` * | gauge | |
/// | [`queued_items`](Self::queued_items) | `informer_queued_items` | gauge | |
/// | [`processing_latency`](Self::processing_latency) | `informer_processing_latency_seconds` | histogram | |
/// | [`store_resource_version`](Self::store_resource_version) | `informer_store_resource_version` | gauge | |
/// | [`objects`](Self::objects) | `informer_objects` * | gauge | |
/// | [`staleness`](Self::staleness) | `informer_staleness_seconds` * | gauge | |
/// | [`pending_notifications`](Self::pending_notifications) | `informer_pending_notifications` | gauge | `handler` |
/// | [`handler_busy`](Self::handler_busy) | `informer_handler_busy_seconds` * | gauge | `handler` |
/// | [`handler_notifications`](Self::handler_notifications) | `informer_handler_notifications_total` * | counter | `handler` |
/// | [`handler_coalesced`](Self::handler_coalesced) | `informer_handler_coalesced_total` * | counter | `handler` |
/// | [`handler_panics`](Self::handler_panics) | `informer_handler_panics_total` * | counter | `handler` |
///
/// Those with a star client-go does not have. The gauges but [`last_resource_version`](Self::last_resource_version), and
/// what is told of handlers, come each half second and with [`Informer::refresh_metrics`](crate::Informer::refresh_metrics).
#[expect(unused_variables, reason = "the defaults ignore what they are told")]
pub trait InformerMetrics: Send + Sync {
    /// So many lists were begun: whole ones, whatever pages and second tries they take. A streaming list is one too.
    fn lists(&self, count: u64) {}

    /// A list is complete, so long after its first request.
    fn list_duration(&self, took: Duration) {}

    /// A list is complete and has so many items.
    fn items_per_list(&self, items: u64) {}

    /// So many watches were asked for, streaming lists among them.
    fn watches(&self, count: u64) {}

    /// So many watches were over within a second without an event.
    fn short_watches(&self, count: u64) {}

    /// A watch is over, so long after it was opened.
    fn watch_duration(&self, lasted: Duration) {}

    /// A watch is over and has brought so many events, bookmarks and those of a streaming list among them.
    fn items_per_watch(&self, items: u64) {}

    /// The version that the reflector has come to: its last 15 digits, which a double holds exactly. A version that is no
    /// number is not told.
    fn last_resource_version(&self, version: u64) {}

    /// A list or a watch was over for this cause; [`RestartCause`] prints the label.
    fn restarts(&self, cause: RestartCause) {}

    /// So many objects or events could not be decoded and were skipped.
    fn undecodable(&self, count: u64) {}

    /// So many tries to list or watch have failed since one worked.
    fn failures_in_a_row(&self, failures: u64) {}

    /// So many entries wait between the reflector and the store: keys, or events where they are delivered in order.
    fn queued_items(&self, items: u64) {}

    /// A batch of up to 256 entries took so long into the store and to the buffers of the handlers. (client-go's has one
    /// entry.)
    fn processing_latency(&self, took: Duration) {}

    /// The version up to which the store has taken in what the server sent, as
    /// [`last_resource_version`](Self::last_resource_version).
    fn store_resource_version(&self, version: u64) {}

    /// The store has so many objects.
    fn objects(&self, objects: u64) {}

    /// The server was last heard of so long ago. Not told before the first list.
    fn staleness(&self, staleness: Duration) {}

    /// So many notifications wait for this handler, or for so many keys where they are coalesced.
    fn pending_notifications(&self, handler: &str, waiting: u64) {}

    /// This handler has been at its present notification for so long; zero where it has nothing to do.
    fn handler_busy(&self, handler: &str, busy: Duration) {}

    /// So many more calls of this handler have returned.
    fn handler_notifications(&self, handler: &str, count: u64) {}

    /// So many more of its notifications were merged into others that waited.
    fn handler_coalesced(&self, handler: &str, count: u64) {}

    /// So many more of its calls have panicked.
    fn handler_panics(&self, handler: &str, count: u64) {}

    /// The handler was removed: its series should be, too. Nothing more is told of it, unless another handler takes the
    /// name.
    fn handler_removed(&self, handler: &str) {}
}

/// The names of the metrics, client-go's where it has them.
pub mod names {
    /// See [`lists`](super::InformerMetrics::lists).
    pub const LISTS: &str = "reflector_lists_total";
    /// See [`list_duration`](super::InformerMetrics::list_duration).
    pub const LIST_DURATION: &str = "reflector_list_duration_seconds";
    /// See [`items_per_list`](super::InformerMetrics::items_per_list).
    pub const ITEMS_PER_LIST: &str = "reflector_items_per_list";
    /// See [`watches`](super::InformerMetrics::watches).
    pub const WATCHES: &str = "reflector_watches_total";
    /// See [`short_watches`](super::InformerMetrics::short_watches).
    pub const SHORT_WATCHES: &str = "reflector_short_watches_total";
    /// See [`watch_duration`](super::InformerMetrics::watch_duration).
    pub const WATCH_DURATION: &str = "reflector_watch_duration_seconds";
    /// See [`items_per_watch`](super::InformerMetrics::items_per_watch).
    pub const ITEMS_PER_WATCH: &str = "reflector_items_per_watch";
    /// See [`last_resource_version`](super::InformerMetrics::last_resource_version).
    pub const LAST_RESOURCE_VERSION: &str = "reflector_last_resource_version";
    /// See [`restarts`](super::InformerMetrics::restarts).
    pub const RESTARTS: &str = "reflector_restarts_total";
    /// See [`undecodable`](super::InformerMetrics::undecodable).
    pub const UNDECODABLE: &str = "reflector_undecodable_total";
    /// See [`failures_in_a_row`](super::InformerMetrics::failures_in_a_row).
    pub const FAILURES_IN_A_ROW: &str = "reflector_failures_in_a_row";
    /// See [`queued_items`](super::InformerMetrics::queued_items).
    pub const QUEUED_ITEMS: &str = "informer_queued_items";
    /// See [`processing_latency`](super::InformerMetrics::processing_latency).
    pub const PROCESSING_LATENCY: &str = "informer_processing_latency_seconds";
    /// See [`store_resource_version`](super::InformerMetrics::store_resource_version).
    pub const STORE_RESOURCE_VERSION: &str = "informer_store_resource_version";
    /// See [`objects`](super::InformerMetrics::objects).
    pub const OBJECTS: &str = "informer_objects";
    /// See [`staleness`](super::InformerMetrics::staleness).
    pub const STALENESS: &str = "informer_staleness_seconds";
    /// See [`pending_notifications`](super::InformerMetrics::pending_notifications).
    pub const PENDING_NOTIFICATIONS: &str = "informer_pending_notifications";
    /// See [`handler_busy`](super::InformerMetrics::handler_busy).
    pub const HANDLER_BUSY: &str = "informer_handler_busy_seconds";
    /// See [`handler_notifications`](super::InformerMetrics::handler_notifications).
    pub const HANDLER_NOTIFICATIONS: &str = "informer_handler_notifications_total";
    /// See [`handler_coalesced`](super::InformerMetrics::handler_coalesced).
    pub const HANDLER_COALESCED: &str = "informer_handler_coalesced_total";
    /// See [`handler_panics`](super::InformerMetrics::handler_panics).
    pub const HANDLER_PANICS: &str = "informer_handler_panics_total";
    /// All of them.
    pub const ALL: [&str; 21] = [
        LISTS,
        LIST_DURATION,
        ITEMS_PER_LIST,
        WATCHES,
        SHORT_WATCHES,
        WATCH_DURATION,
        ITEMS_PER_WATCH,
        LAST_RESOURCE_VERSION,
        RESTARTS,
        UNDECODABLE,
        FAILURES_IN_A_ROW,
        QUEUED_ITEMS,
        PROCESSING_LATENCY,
        STORE_RESOURCE_VERSION,
        OBJECTS,
        STALENESS,
        PENDING_NOTIFICATIONS,
        HANDLER_BUSY,
        HANDLER_NOTIFICATIONS,
        HANDLER_COALESCED,
        HANDLER_PANICS,
    ];
    /// The label of [`RESTARTS`].
    pub const LABEL_CAUSE: &str = "cause";
    /// The label of what is told of a handler.
    pub const LABEL_HANDLER: &str = "handler";
    /// The upper bounds of client-go's buckets for [`PROCESSING_LATENCY`], in seconds.
    pub const PROCESSING_LATENCY_BUCKETS_SECONDS: [f64; 12] =
        [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
}

static PROVIDER: OnceLock<Arc<dyn MetricsProvider>> = OnceLock::new();

/// Sets the provider of all informers that start later, have a name, and no provider of their own. Only the first call
/// counts; tells whether this was it.
pub fn set_metrics_provider(provider: Arc<dyn MetricsProvider>) -> bool {
    PROVIDER.set(provider).is_ok()
}

/// How often the gauges are told; as client-go's queues tell theirs.
pub(crate) const REFRESH_PERIOD: Duration = Duration::from_millis(500);

/// The metrics of one informer, guarded against their panics.
pub(crate) struct Metrics {
    metrics: Arc<dyn InformerMetrics>,
    panics: AtomicU64,
    /// Let go when nobody tells them anything any more.
    _reservation: Option<Reservation>,
}

impl Metrics {
    /// Without a name of its own: of a reflector by itself.
    pub(crate) fn new(metrics: Arc<dyn InformerMetrics>) -> Self {
        Self { metrics, panics: AtomicU64::new(0), _reservation: None }
    }

    /// The metrics of an informer, if it has a name and there is a provider.
    pub(crate) fn of_informer(
        name: Option<&InformerName>,
        provider: Option<Arc<dyn MetricsProvider>>,
        resource: &str,
    ) -> Option<Arc<Self>> {
        let (name, provider) = (name?, provider.or_else(|| PROVIDER.get().cloned())?);
        let Some(reservation) = name.reserve(resource) else {
            tracing::warn!(
                resource,
                name = name.as_str(),
                "this informer has no metrics: another one of this name and resource has them; give it a name of its own"
            );
            return None;
        };
        let make = AssertUnwindSafe(|| provider.informer_metrics(reservation.labels()));
        let Ok(metrics) = catch_unwind(make) else {
            tracing::error!(
                resource,
                name = name.as_str(),
                "the metrics provider panicked; the informer has no metrics"
            );
            return None;
        };
        Some(Arc::new(Self { metrics: Arc::from(metrics), panics: AtomicU64::new(0), _reservation: Some(reservation) }))
    }

    /// Tells them something; a panic of theirs is reported.
    pub(crate) fn tell(&self, tell: impl FnOnce(&dyn InformerMetrics)) {
        if catch_unwind(AssertUnwindSafe(|| tell(&*self.metrics))).is_err() {
            let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
            if panics.is_power_of_two() {
                tracing::error!(panics, "the metrics of an informer panicked; the informer goes on");
            }
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// The last 15 digits of a version, which a double holds exactly; as client-go. `None` where it is no number.
pub(crate) fn version_number(version: &str) -> Option<u64> {
    let digits = version.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    version[version.len().saturating_sub(15)..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_from_what_the_lister_watcher_says() {
        let rows = [
            ("pods", ("", "v1", "pods")),
            ("pods/status", ("", "v1", "pods/status")),
            ("apps/v1 deployments", ("apps", "v1", "deployments")),
            ("my_crate::Thing", ("", "", "my_crate::Thing")),
        ];
        for (text, (group, version, resource)) in rows {
            let labels = InformerLabels::new("name", text);
            assert_eq!((&*labels.group, &*labels.version, &*labels.resource), (group, version, resource), "{text}");
        }
    }

    #[test]
    fn a_version_is_told_by_its_last_fifteen_digits() {
        let long = "9123456789012345678";
        let rows = [("", None), ("x7", None), ("-7", None), ("7", Some(7)), (long, Some(456_789_012_345_678))];
        for (version, want) in rows {
            assert_eq!(version_number(version), want, "{version}");
        }
    }
}
