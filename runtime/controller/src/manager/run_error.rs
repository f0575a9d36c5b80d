//! Why a manager ended though nobody asked for it, or not as it should.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::BoxError;

/// What went wrong, all of it: a runnable's error does not hide that others did not end in time.
///
/// Its text joins those of the failures; its source is that of the first one.
#[derive(Debug)]
pub struct RunError {
    failures: Vec<Failure>,
}

/// One thing that went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It has been started before. It runs once: make a new one.
    #[error("the manager was already started; it runs once, so make a new one")]
    AlreadyStarted,
    /// A runnable ended with an error.
    #[error("{name}: {source}")]
    Runnable {
        /// Its name.
        name: String,
        /// What it said.
        source: BoxError,
    },
    /// A runnable says that it will not become ready.
    #[error("{name} is not ready: {source}")]
    NotReady {
        /// Its name.
        name: String,
        /// What it said.
        source: BoxError,
    },
    /// A runnable panicked.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// Its name.
        name: String,
        /// What the panic said.
        message: String,
    },
    /// Leader election cannot work, or ended before this replica led.
    #[error("leader election failed: {source}")]
    LeaderElection {
        /// What the elector said.
        source: BoxError,
    },
    /// This replica led and does not any more. What ran for the leader was cancelled, without a grace period. End the
    /// process, or begin with a new manager.
    #[error("leader election lost: {source}")]
    LeaderElectionLost {
        /// What the elector said.
        source: BoxError,
    },
    /// These did not end within the grace period, and were cancelled.
    #[error("not all runnables ended within the grace period of {period:?}: {}", unfinished.join(", "))]
    GracePeriodExceeded {
        /// The grace period.
        period: Duration,
        /// The names of those that were still running.
        unfinished: Vec<String>,
    },
    /// These were cancelled and then aborted, and run on, as they never await: they block their threads. A lease was not given
    /// up, so that nobody else acts beside them before it is over. End the process: a runtime that is dropped would wait for
    /// them.
    #[error("these block their threads and run on: {}; end the process, and let what blocks run by spawn_blocking", left.join(", "))]
    StillRunning {
        /// Their names.
        left: Vec<String>,
    },
}

impl RunError {
    pub(crate) fn new(failures: Vec<Failure>) -> Self {
        debug_assert!(!failures.is_empty(), "an error has a cause");
        Self { failures }
    }

    /// All that went wrong, in the order in which it did. Never empty.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether this replica led and does not any more.
    pub fn is_leader_election_lost(&self) -> bool {
        self.failures.iter().any(|failure| matches!(failure, Failure::LeaderElectionLost { .. }))
    }

    /// Whether something did not end within the grace period.
    pub fn is_grace_period_exceeded(&self) -> bool {
        self.failures.iter().any(|failure| matches!(failure, Failure::GracePeriodExceeded { .. }))
    }

    /// The first error of this type among the failures and what they come from.
    ///
    /// ```
    /// # use kubewire_controller::RunError;
    /// # fn f(error: RunError) {
    /// if error.find::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse) {
    ///     eprintln!("another one is running");
    /// }
    /// # }
    /// ```
    pub fn find<E: Error + 'static>(&self) -> Option<&E> {
        self.failures.iter().find_map(|failure| find_in_chain(failure))
    }
}

/// The first error of this type, from this one down to where it comes from.
pub(super) fn find_in_chain<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, failure) in self.failures.iter().enumerate() {
            write!(f, "{}{failure}", if place == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failures.first().and_then(Error::source)
    }
}

/// Nothing is taken in any more: the stop has begun, or is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no new runnable is taken: the manager is stopping or has stopped; make a new one")]
pub struct AddError;

/// It ended before that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manager ended before that")]
pub struct Ended;

/// What a runnable may end with when it was told to stop: it is no failure then, and not logged as one.
///
/// A runnable need not: `Ok` says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;
