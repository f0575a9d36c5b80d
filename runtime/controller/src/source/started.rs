//! A source that was started.

use std::any::Any;
use std::fmt;

use kubewire_informer::CacheSync;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// A source that was started. Dropping it ends the source.
#[must_use = "dropping it ends the source"]
pub struct Started {
    /// What has to be synced before workers begin.
    syncs: Vec<Box<dyn CacheSync>>,
    /// Dropped to end the source.
    kept: Vec<Box<dyn Any + Send>>,
}

impl Started {
    /// Workers need not wait for it.
    pub fn now() -> Self {
        Self { syncs: Vec::new(), kept: Vec::new() }
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

    /// This task is aborted when the source ends, if it has not ended itself.
    pub fn and_task<T: Send + 'static>(self, task: JoinHandle<T>) -> Self {
        self.and_keep(AbortOnDropHandle::new(task))
    }

    pub(crate) fn syncs(&self) -> impl Iterator<Item = &dyn CacheSync> {
        self.syncs.iter().map(|sync| -> &dyn CacheSync { &**sync })
    }

    /// What is kept, once all is synced: what was waited for is let go, so that it can be freed.
    pub(crate) fn into_kept(self) -> Vec<Box<dyn Any + Send>> {
        self.kept
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syncs: Vec<_> = self.syncs.iter().map(|sync| sync.name()).collect();
        f.debug_struct("Started").field("syncs", &syncs).finish_non_exhaustive()
    }
}
