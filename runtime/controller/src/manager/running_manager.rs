//! A manager that runs in a task of its own.

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::run_error::RunError;
use crate::Manager;

/// A [`Manager`] that [runs](Manager::spawn) in a task. Dropping it begins the stop, which goes on without anybody who waits
/// for it.
#[derive(Debug)]
#[must_use = "dropping it stops the manager"]
pub struct RunningManager {
    stop: DropGuard,
    task: JoinHandle<Result<(), RunError>>,
}

impl RunningManager {
    pub(super) fn of(manager: &Manager, stop: &CancellationToken) -> Self {
        let (manager, stop) = (manager.clone(), stop.child_token());
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        Self { stop: stop.drop_guard(), task }
    }

    /// Stops it, and waits until it has ended.
    ///
    /// # Errors
    /// As of [`Manager::run`].
    pub async fn stop(self) -> Result<(), RunError> {
        drop(self.stop);
        ended(self.task).await
    }

    /// Waits until it ends, as its stop token or a failure makes it.
    ///
    /// # Errors
    /// As of [`Manager::run`].
    pub async fn join(self) -> Result<(), RunError> {
        let ended = ended(self.task).await;
        drop(self.stop);
        ended
    }

    /// Whether it has ended; [`join`](Self::join) says how.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

async fn ended(task: JoinHandle<Result<(), RunError>>) -> Result<(), RunError> {
    match task.await {
        Ok(ended) => ended,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Nobody aborts it but a runtime that is shut down, and then nobody is told.
            Err(_) => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests;
