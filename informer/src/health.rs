//! What an informer's parts know of its life and its troubles.

use std::sync::{Arc, OnceLock};

use crate::latch::Latch;
use crate::metrics::Metrics;
use crate::reflector::{ReflectorMonitor, RunError};
use crate::sync::Mutex;
use crate::{Hindrance, InformerPhase};

/// Shared by an informer and its handlers.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// What is listed and watched.
    pub(crate) resource: String,
    /// Set by the start.
    pub(crate) monitor: OnceLock<ReflectorMonitor>,
    /// The first list is in the store.
    pub(crate) store_synced: Latch,
    /// The store does not change any more.
    pub(crate) stopped: Latch,
    /// It has stopped, and all its tasks have ended.
    pub(crate) ended: Latch,
    /// Why it ended though nobody asked for it.
    pub(crate) panic: OnceLock<RunError>,
    /// From the start to the stop, where there are any. Nothing is called or dropped under it.
    metrics: Mutex<Option<Arc<Metrics>>>,
}

impl Health {
    pub(crate) fn new(resource: String) -> Self {
        Self { resource, ..Self::default() }
    }

    pub(crate) fn metrics(&self) -> Option<Arc<Metrics>> {
        self.metrics.lock().clone()
    }

    /// Gives back what there was before, to be dropped.
    pub(crate) fn set_metrics(&self, metrics: Option<Arc<Metrics>>) -> Option<Arc<Metrics>> {
        std::mem::replace(&mut *self.metrics.lock(), metrics)
    }

    pub(crate) fn phase(&self) -> InformerPhase {
        match self.monitor.get() {
            _ if self.stopped.is_set() => InformerPhase::Stopped,
            Some(_) => InformerPhase::Running,
            None => InformerPhase::New,
        }
    }

    /// What the panic said, if it ended by one.
    pub(crate) fn panic_text(&self) -> Option<String> {
        self.panic.get().map(ToString::to_string)
    }

    /// What keeps the first list out of the store.
    pub(crate) fn hindrance(&self) -> Hindrance {
        let status = self.monitor.get().map(ReflectorMonitor::status).unwrap_or_default();
        match (self.phase(), status.last_error) {
            (InformerPhase::Stopped, _) => Hindrance::Stopped(self.panic_text()),
            (InformerPhase::New, _) => Hindrance::NotStarted,
            (_, Some(last)) if status.failures_in_a_row > 0 => {
                Hindrance::Failing { error: last.error, tries: status.failures_in_a_row }
            }
            _ => Hindrance::Busy,
        }
    }
}
