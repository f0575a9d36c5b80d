//! Why an attempt did not succeed.

use std::time::Duration;

use crate::BoxError;
use crate::terminal_error::is_terminal;

/// Why an attempt to reconcile a request did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The reconciler answered this error.
    #[error("{0}")]
    Failed(#[source] BoxError),
    /// The reconciler panicked; this is what the panic said.
    #[error("panic: {0} [recovered]")]
    Panicked(String),
    /// The attempt was given up after this time.
    #[error("the reconcile was given up after {0:?}: raise the time-out, or do less at a time")]
    TimedOut(Duration),
    /// The attempt was given up because the controller had to end.
    #[error("the reconcile was cancelled: the controller had to end before it was done")]
    Cancelled,
}

impl ReconcileError {
    /// Whether it is tried again.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Failed(error) if is_terminal(&**error) => ErrorKind::Terminal,
            _ => ErrorKind::Retry,
        }
    }
}

/// Whether a request is tried again after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// After a delay that grows each time.
    Retry,
    /// Not until something changes.
    Terminal,
}
