//! All series of some metrics, by their names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub(crate) type Labels = Vec<(&'static str, String)>;
pub(crate) type FloatGauge = Gauge<f64, AtomicU64>;

/// Makes a histogram, with its buckets.
pub(crate) type Make = fn() -> Histogram;

/// What kind of metric it is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram(Make),
}

/// A name, the help and the kind.
pub(crate) type Metric = (&'static str, &'static str, Kind);

/// The families of some metrics. Cloning counts a reference.
#[derive(Clone)]
pub(crate) struct Families {
    metrics: &'static [Metric],
    by_name: Arc<BTreeMap<&'static str, OneFamily>>,
}

enum OneFamily {
    Counter(Family<Labels, Counter>),
    Gauge(Family<Labels, FloatGauge>),
    Histogram(Family<Labels, Histogram, Make>),
}

/// One series.
#[derive(Clone)]
pub(crate) enum Handle {
    Counter(Counter),
    Gauge(FloatGauge),
    Histogram(Histogram),
}

impl Families {
    pub(crate) fn new(metrics: &'static [Metric]) -> Self {
        let family = |kind| match kind {
            Kind::Counter => OneFamily::Counter(Family::default()),
            Kind::Gauge => OneFamily::Gauge(Family::default()),
            Kind::Histogram(make) => OneFamily::Histogram(Family::new_with_constructor(make)),
        };
        Self { metrics, by_name: Arc::new(metrics.iter().map(|(name, _, kind)| (*name, family(*kind))).collect()) }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, _) in self.metrics {
            match &self.by_name[name] {
                // The library adds the ending of a counter's name itself.
                OneFamily::Counter(family) => {
                    registry.register(name.trim_end_matches("_total"), *help, family.clone());
                }
                OneFamily::Gauge(family) => registry.register(*name, *help, family.clone()),
                OneFamily::Histogram(family) => registry.register(*name, *help, family.clone()),
            }
        }
    }

    /// The series with these labels, made if there is none yet.
    pub(crate) fn series(&self, name: &str, labels: &Labels) -> Handle {
        match &self.by_name[name] {
            OneFamily::Counter(family) => Handle::Counter(family.get_or_create_owned(labels)),
            OneFamily::Gauge(family) => Handle::Gauge(family.get_or_create_owned(labels)),
            OneFamily::Histogram(family) => Handle::Histogram(family.get_or_create_owned(labels)),
        }
    }

    pub(crate) fn remove(&self, name: &str, labels: &Labels) {
        match &self.by_name[name] {
            OneFamily::Counter(family) => family.remove(labels),
            OneFamily::Gauge(family) => family.remove(labels),
            OneFamily::Histogram(family) => family.remove(labels),
        };
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
