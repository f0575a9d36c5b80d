//! The series of one queue or one informer.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::families::{Families, Handle, Labels};

/// A label beside those that all series of a thing have, and its value.
pub(crate) type More<'a> = Option<(&'static str, &'a str)>;

/// Makes a series when it is first told something. Dropping it removes all that it has made.
pub(crate) struct Series {
    families: Families,
    labels: Labels,
    /// Those made, by name, then by the value of the further label. Nothing but the families' own is called under its lock.
    made: Mutex<BTreeMap<&'static str, BTreeMap<String, Made>>>,
}

struct Made {
    labels: Labels,
    handle: Handle,
}

impl Series {
    pub(crate) fn new(families: Families, labels: Labels) -> Self {
        Self { families, labels, made: Mutex::default() }
    }

    pub(crate) fn count(&self, name: &'static str, more: More<'_>, count: u64) {
        if let Handle::Counter(counter) = self.handle(name, more) {
            counter.inc_by(count);
        }
    }

    pub(crate) fn set(&self, name: &'static str, more: More<'_>, value: f64) {
        if let Handle::Gauge(gauge) = self.handle(name, more) {
            gauge.set(value);
        }
    }

    #[cfg(feature = "workqueue")]
    pub(crate) fn change(&self, name: &'static str, change: i64) {
        if let Handle::Gauge(gauge) = self.handle(name, None) {
            gauge.inc_by(change as f64);
        }
    }

    pub(crate) fn observe(&self, name: &'static str, value: f64) {
        if let Handle::Histogram(histogram) = self.handle(name, None) {
            histogram.observe(value);
        }
    }

    /// Removes those with this label.
    #[cfg(feature = "informer")]
    pub(crate) fn remove(&self, label: &str, value: &str) {
        for (name, made) in &mut *self.made.lock() {
            made.retain(|_, made| {
                let stays = !made.labels.iter().any(|(known, of)| *known == label && of == value);
                if !stays {
                    self.families.remove(name, &made.labels);
                }
                stays
            });
        }
    }

    fn handle(&self, name: &'static str, more: More<'_>) -> Handle {
        let mut all = self.made.lock();
        let made = all.entry(name).or_default();
        let value = more.map_or("", |(_, value)| value);
        if let Some(made) = made.get(value) {
            return made.handle.clone();
        }
        let mut labels = self.labels.clone();
        labels.extend(more.map(|(label, value)| (label, value.to_owned())));
        let handle = self.families.series(name, &labels);
        made.insert(value.to_owned(), Made { labels, handle: handle.clone() });
        handle
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        for (name, made) in self.made.get_mut() {
            made.values().for_each(|made| self.families.remove(name, &made.labels));
        }
    }
}
