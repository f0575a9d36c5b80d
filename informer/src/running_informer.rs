//! An informer at work.

use tokio_util::sync::CancellationToken;

use crate::sync::JoinHandle;

/// An informer that was started; it owns the informer's tasks. Dropping it stops the informer.
#[derive(Debug)]
#[must_use = "dropping it stops the informer"]
pub struct RunningInformer {
    /// `None` where the informer had been started before.
    running: Option<(CancellationToken, JoinHandle<()>)>,
}

impl RunningInformer {
    pub(crate) fn new(stop: CancellationToken, task: JoinHandle<()>) -> Self {
        Self { running: Some((stop, task)) }
    }

    /// Of an informer that somebody else has started.
    pub(crate) fn inert() -> Self {
        Self { running: None }
    }

    /// Asks the informer to stop, and returns at once.
    pub fn stop(&self) {
        if let Some((stop, _)) = &self.running {
            stop.cancel();
        }
    }

    /// Waits until the informer has stopped and all its tasks have ended, those of its handlers too. A handler
    /// that does not return from its call is waited for; put a timeout around this where that may be.
    ///
    /// It does not stop the informer; cancel its stop signal, or call [`stop`](Self::stop) before. Dropping the
    /// future stops it.
    ///
    /// # Panics
    ///
    /// With the panic of an object's own code (`Clone`, `Drop`), if that has ended the informer. What other code
    /// of the user panics is caught.
    pub async fn join(mut self) {
        let Some((_, task)) = &mut self.running else { return };
        if let Err(error) = task.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for RunningInformer {
    fn drop(&mut self) {
        self.stop();
    }
}
