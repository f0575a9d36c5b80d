//! A source that was started.

use std::any::Any;
use std::fmt;

use futures::future::BoxFuture;
use kubewire_informer::CacheSync;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::SourceContext;
use crate::panic_text::panic_text;
use crate::request::RequestKey;

/// A source that was started. Dropping it ends the source.
#[must_use = "dropping it ends the source"]
pub struct Started {
    /// What has to be synced before workers begin.
    syncs: Vec<Box<dyn CacheSync>>,
    /// Dropped to end the source.
    kept: Vec<Box<dyn Any + Send>>,
    /// Each ends with a task of the source, and aborts it when it is dropped.
    tasks: Vec<BoxFuture<'static, Result<(), JoinError>>>,
}

impl Started {
    /// Workers need not wait for it.
    pub fn now() -> Self {
        Self { syncs: Vec::new(), kept: Vec::new(), tasks: Vec::new() }
    }

    /// Workers wait until this is synced.
    pub fn and_sync(mut self, sync: impl CacheSync + 'static) -> Self {
        self.syncs.push(Box::new(sync));
        self
    }

    /// This is dropped when the source ends.
    pub fn and_keep(mut self, kept: impl Send + 'static) -> Self {
        self.kept.push(Box::new(kept));
        self
    }

    /// This task is aborted when the source ends, if it has not ended itself. If it panics that is logged as an error, with
    /// the names of source and controller, and if it ends before the controller does, at the level of information.
    pub fn and_task<T: Send + 'static>(mut self, task: JoinHandle<T>) -> Self {
        let task = AbortOnDropHandle::new(task);
        self.tasks.push(Box::pin(async move { task.await.map(drop) }));
        self
    }

    /// From now on it is told how its tasks end.
    pub(crate) fn watched<R: RequestKey>(mut self, source: &str, cx: &SourceContext<R>) -> Self {
        for task in std::mem::take(&mut self.tasks) {
            let (source, controller, stop) = (source.to_owned(), cx.controller.clone(), cx.stop.clone());
            let watching = tokio::spawn(async move { tell_end(&source, &controller, task.await, &stop) });
            self.kept.push(Box::new(AbortOnDropHandle::new(watching)));
        }
        self
    }

    pub(crate) fn syncs(&self) -> impl Iterator<Item = &dyn CacheSync> {
        self.syncs.iter().map(|sync| -> &dyn CacheSync { &**sync })
    }

    /// What is kept, once all is synced: what was waited for is let go, so that it can be freed.
    pub(crate) fn into_kept(self) -> Vec<Box<dyn Any + Send>> {
        self.kept
    }
}

/// Tells that a source has nothing more to tell.
fn tell_end(source: &str, controller: &str, ended: Result<(), JoinError>, stop: &CancellationToken) {
    match ended.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => {
            let panic = panic_text(&*panic);
            tracing::error!(source, controller, panic, "a source panicked: it has ended, and the controller goes on");
        }
        Ok(()) if !stop.is_cancelled() => tracing::info!(source, controller, "a source has ended"),
        Ok(()) | Err(Err(_)) => {}
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syncs: Vec<_> = self.syncs.iter().map(|sync| sync.name()).collect();
        f.debug_struct("Started").field("syncs", &syncs).finish_non_exhaustive()
    }
}
