//! What the metrics are told of lists and watches, and when.

use std::sync::Arc;
use std::time::Instant;

use super::machine::Step;
use crate::metrics::{InformerMetrics, Metrics, version_number};

/// Follows the steps of a reflector. Without metrics it does nothing.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    metrics: Option<Arc<Metrics>>,
    /// When the list under way was begun.
    list_since: Option<Instant>,
    /// When the watch was opened, and its events so far.
    watch: Option<(Instant, u64)>,
}

impl Meter {
    pub(crate) fn new(metrics: Option<Arc<Metrics>>) -> Self {
        Self { metrics, list_since: None, watch: None }
    }

    /// A step begins.
    pub(crate) fn step(&mut self, step: &Step, now: Instant) {
        match step {
            Step::List { .. } => {
                self.watch_over(now);
                self.list(now);
            }
            Step::Watch(options) => {
                self.watch_over(now);
                if options.send_initial_events {
                    self.list(now);
                } else {
                    self.list_since = None;
                }
                self.tell(|metrics| metrics.watches(1));
            }
            Step::Sleep => {
                self.watch_over(now);
                self.list_since = None;
            }
            Step::Read | Step::Replace { .. } => {}
        }
    }

    /// One list, however many requests it takes.
    fn list(&mut self, now: Instant) {
        if self.list_since.is_none() {
            self.list_since = Some(now);
            self.tell(|metrics| metrics.lists(1));
        }
    }

    fn tell(&self, tell: impl FnOnce(&dyn InformerMetrics)) {
        if let Some(metrics) = &self.metrics {
            metrics.tell(tell);
        }
    }

    pub(crate) fn watch_opened(&mut self, now: Instant) {
        self.watch = Some((now, 0));
    }

    pub(crate) fn event(&mut self) {
        if let Some((_, events)) = &mut self.watch {
            *events += 1;
        }
    }

    pub(crate) fn watch_over(&mut self, now: Instant) {
        if let Some((since, events)) = self.watch.take() {
            self.tell(|metrics| {
                metrics.watch_duration(now.saturating_duration_since(since));
                metrics.items_per_watch(events);
            });
        }
    }

    /// A list is complete, with so many items.
    pub(crate) fn listed(&mut self, items: usize, now: Instant) {
        if let Some(since) = self.list_since.take() {
            self.tell(|metrics| {
                metrics.list_duration(now.saturating_duration_since(since));
                metrics.items_per_list(items as u64);
            });
        }
    }

    /// The reflector has come to this version.
    pub(crate) fn version(&self, version: &str) {
        if self.metrics.is_some()
            && let Some(version) = version_number(version)
        {
            self.tell(|metrics| metrics.last_resource_version(version));
        }
    }
}
