//! Why a controller does not run.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::runnable::BoxError;

/// Why a controller does not run. It is final: whoever starts the controller again gets the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// It was started before; most likely it was added to a manager twice.
    AlreadyStarted {
        /// The controller's name.
        controller: String,
    },
    /// It has ended.
    Ended {
        /// The controller's name.
        controller: String,
    },
    /// A source could not be started.
    Source {
        /// The controller's name.
        controller: String,
        /// The source's name.
        source_name: String,
        /// What it said; [`source`](Error::source) gives it.
        error: Arc<dyn Error + Send + Sync>,
    },
    /// A source's start has not returned in time.
    StartTimedOut {
        /// The controller's name.
        controller: String,
        /// The source's name.
        source_name: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// A source was not synced in time, or will never be.
    NotSynced {
        /// The controller's name.
        controller: String,
        /// The source's name.
        source_name: String,
        /// How long was waited at most.
        timeout: Duration,
        /// What was not synced, with the last failure of its list or watch.
        reason: String,
    },
}

impl StartError {
    pub(crate) fn of_source(controller: &str, source_name: &str, error: BoxError) -> Self {
        Self::Source { controller: controller.to_owned(), source_name: source_name.to_owned(), error: error.into() }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted { controller } => write!(
                f,
                "the controller {controller} was started already; it runs once: was it added to a manager twice?"
            ),
            Self::Ended { controller } => {
                write!(f, "the controller {controller} has ended; it runs once: build another")
            }
            Self::Source { controller, source_name, error } => {
                write!(f, "the source {source_name} of the controller {controller} could not be started: {error}")
            }
            Self::StartTimedOut { controller, source_name, timeout } => write!(
                f,
                "timed out after {timeout:?} waiting for the source {source_name} of the controller {controller} to \
                 start: its start must not block, but spawn what takes long and return"
            ),
            Self::NotSynced { controller, source_name, timeout, reason } => {
                write!(f, "failed to wait for {controller} caches to sync {source_name} within {timeout:?}: {reason}")
            }
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Source { error, .. } => Some(&**error),
            _ => None,
        }
    }
}
