//! Passes on what went wrong: to the status, to the log, and to the error handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubewire_listwatch::{ErrorClass, ItemError};
use kubewire_ratelimit::{Clock, FailureLog, Recovery};
use parking_lot::Mutex;

use super::error_handler::{WatchErrorHandler, log_error};
use super::machine::{Note, Weight};
use super::reflector_error::{ReflectorError, ReflectorErrorKind};
use super::reflector_status::{ReflectorMonitor, RestartCause};
use crate::AdmitError;
use crate::metrics::Metrics;

pub(crate) struct Reporter {
    pub(crate) resource: Arc<str>,
    pub(crate) monitor: ReflectorMonitor,
    pub(crate) clock: Clock,
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// `None`: what it would be told of is logged.
    pub(crate) handler: Option<WatchErrorHandler>,
    /// The lists and watches that failed. Nothing but the count happens under it.
    pub(crate) failures: Mutex<FailureLog<ErrorClass>>,
    /// The objects that were skipped. The same.
    pub(crate) skips: Mutex<FailureLog<ErrorClass>>,
}

impl Reporter {
    pub(crate) fn note(&self, note: Note) {
        match note {
            Note::Restart(cause) => self.restarted(cause),
            Note::Failed { kind, weight } => {
                let error = ReflectorError::new(Arc::clone(&self.resource), kind);
                self.monitor.failed(error.clone(), weight != Weight::Bypassed, self.clock.now());
                if weight == Weight::Told { self.tell(&error, &self.failures) } else { self.log(&error) }
            }
        }
    }

    fn restarted(&self, cause: RestartCause) {
        self.monitor.restarted(cause);
        if let Some(metrics) = &self.metrics {
            metrics.tell(|metrics| {
                metrics.restarts(cause);
                if cause == RestartCause::VeryShort {
                    metrics.short_watches(1);
                }
            });
        }
    }

    /// An object could not be decoded.
    pub(crate) fn undecodable(&self, error: ItemError) {
        if let Some(metrics) = &self.metrics {
            metrics.tell(|metrics| metrics.undecodable(1));
        }
        self.skipped(ReflectorErrorKind::Item(error));
    }

    /// The store did not take an object.
    pub(crate) fn not_taken(&self, error: AdmitError) {
        self.skipped(ReflectorErrorKind::NotTaken(error));
    }

    /// Something was skipped.
    pub(crate) fn skipped(&self, kind: ReflectorErrorKind) {
        self.monitor.skipped(&kind);
        self.tell(&ReflectorError::new(Arc::clone(&self.resource), kind), &self.skips);
    }

    /// A watch is open, or a streaming list complete: whatever failed works again.
    pub(crate) fn works(&self) {
        let mut failures = self.failures.lock();
        let recovery = if failures.is_failing() { failures.recovered(self.clock.now()) } else { None };
        drop(failures);
        if let Some(Recovery { failures, left_out, lasted, .. }) = recovery {
            let seconds = lasted.as_secs();
            tracing::info!(resource = &*self.resource, failures, left_out, seconds, "list and watch works again");
        }
    }

    /// A list is complete. Says how many of its objects were skipped in silence.
    pub(crate) fn list_complete(&self) {
        let mut skips = self.skips.lock();
        let recovery = if skips.left_out() > 0 { skips.recovered(self.clock.now()) } else { None };
        drop(skips);
        if let Some(Recovery { failures: skipped, left_out, .. }) = recovery {
            tracing::warn!(
                resource = &*self.resource,
                skipped,
                left_out,
                "objects were skipped; correct them, or the type that they are decoded into"
            );
        }
    }

    fn tell(&self, error: &ReflectorError, log: &Mutex<FailureLog<ErrorClass>>) {
        let Some(handler) = &self.handler else { return log_error(error, log, &self.clock) };
        if catch_unwind(AssertUnwindSafe(|| handler(error))).is_err() {
            let panics = self.monitor.handler_panicked();
            // A handler that panics each time writes 17 lines in 100,000 times.
            if panics.is_power_of_two() {
                tracing::error!(%error, panics, "the watch error handler panicked when it was told of this error");
            }
        }
    }

    fn log(&self, error: &ReflectorError) {
        if matches!(error.class(), ErrorClass::Expired | ErrorClass::Truncated) {
            tracing::debug!(%error, "a list or a watch is over");
            return;
        }
        let verdict = self.failures.lock().failed(error.class(), self.clock.now());
        if let Some(left_out) = verdict {
            tracing::warn!(%error, left_out, "a list or a watch ended by an error");
        }
    }
}
