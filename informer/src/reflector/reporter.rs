//! Passes on what went wrong: to the status, to the log, and to the error handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubewire_listwatch::{ErrorClass, ItemError};
use kubewire_ratelimit::Clock;
use parking_lot::Mutex;

use super::error_handler::WatchErrorHandler;
use super::log_limit::LogLimit;
use super::machine::{Note, Weight};
use super::reflector_error::{ReflectorError, ReflectorErrorKind};
use super::reflector_status::ReflectorMonitor;
use crate::AdmitError;

pub(crate) struct Reporter {
    pub(crate) resource: Arc<str>,
    pub(crate) monitor: ReflectorMonitor,
    pub(crate) clock: Clock,
    pub(crate) handler: WatchErrorHandler,
    /// For what the handler is not told of. Nothing but the count happens under it.
    pub(crate) log_limit: Mutex<LogLimit>,
}

impl Reporter {
    pub(crate) fn note(&self, note: Note) {
        match note {
            Note::Restart(cause) => self.monitor.restarted(cause),
            Note::Failed { kind, weight } => {
                let error = ReflectorError::new(Arc::clone(&self.resource), kind);
                self.monitor.failed(error.clone(), weight != Weight::Bypassed, self.clock.now());
                if weight == Weight::Told { self.tell(&error) } else { self.log(&error) }
            }
        }
    }

    /// An object could not be decoded.
    pub(crate) fn undecodable(&self, error: ItemError) {
        self.skipped(ReflectorErrorKind::Item(error));
    }

    /// The store did not take an object.
    pub(crate) fn not_taken(&self, error: AdmitError) {
        self.skipped(ReflectorErrorKind::NotTaken(error));
    }

    /// Something was skipped.
    pub(crate) fn skipped(&self, kind: ReflectorErrorKind) {
        self.monitor.skipped(&kind);
        self.tell(&ReflectorError::new(Arc::clone(&self.resource), kind));
    }

    fn tell(&self, error: &ReflectorError) {
        if catch_unwind(AssertUnwindSafe(|| (self.handler)(error))).is_err() {
            self.monitor.handler_panicked();
            tracing::error!(%error, "the watch error handler panicked when it was told of this error");
        }
    }

    fn log(&self, error: &ReflectorError) {
        if matches!(error.class(), ErrorClass::Expired | ErrorClass::Truncated) {
            tracing::debug!(%error, "a list or a watch is over");
            return;
        }
        let verdict = self.log_limit.lock().admit(error.class(), self.clock.now());
        if let Some(left_out) = verdict {
            tracing::warn!(%error, left_out, "a list or a watch ended by an error");
        }
    }
}
