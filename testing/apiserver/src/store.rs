//! PURE. All collections under one version counter, as etcd has it.

use std::sync::Arc;

use kubewire_indexer::ObjectKey;

use crate::Resource;
use crate::collection::{Collection, HistoryLimits};
use crate::stored::{Draft, Stored};

/// Names a collection of a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CollectionId(pub(crate) usize);

#[derive(Debug)]
pub(crate) struct Store {
    /// The version of the last change of any object.
    version: u64,
    /// Versions up to this one may be of a history that is lost.
    lost: u64,
    collections: Vec<Collection>,
    limits: HistoryLimits,
}

impl Store {
    pub(crate) fn new(resources: impl IntoIterator<Item = Arc<Resource>>, limits: HistoryLimits) -> Self {
        Self { version: 1, lost: 0, collections: resources.into_iter().map(Collection::new).collect(), limits }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn collection(&self, id: CollectionId) -> &Collection {
        &self.collections[id.0]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = CollectionId> + use<> {
        (0..self.collections.len()).map(CollectionId)
    }

    pub(crate) fn get(&self, id: CollectionId, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.collections[id.0].get(key)
    }

    /// Writes an object; its new state.
    pub(crate) fn put(&mut self, id: CollectionId, draft: Draft) -> Arc<Stored> {
        self.version += 1;
        self.collections[id.0].put(draft, self.version, self.limits)
    }

    /// Removes an object; its last state at the version of the deletion. `None` where there is none.
    pub(crate) fn remove(&mut self, id: CollectionId, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.collections[id.0].get(key)?;
        self.version += 1;
        self.collections[id.0].remove(key, self.version, self.limits)
    }

    /// Refuses requests for versions before the present one from now on.
    pub(crate) fn compact(&mut self) {
        self.collections.iter_mut().for_each(|collection| collection.compact(self.version));
    }

    /// Puts back all objects as they were at `version`, with the versions that they had, and forgets what happened. The
    /// store's own version becomes `next`. `false`, and nothing is done, where the history does not reach back so far.
    pub(crate) fn restore(&mut self, version: u64, next: u64) -> bool {
        if !self.collections.iter().all(|collection| collection.reaches(version)) {
            return false;
        }
        self.lost = self.lost.max(self.version);
        self.version = next;
        self.collections.iter_mut().for_each(|collection| collection.restore(version, next));
        true
    }

    /// The highest version that was given out and then taken back by a [`restore`](Self::restore).
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Counts the version up without a change, as other clients' writes to things that are not served would.
    pub(crate) fn skip_versions(&mut self, count: u64) {
        self.version += count;
    }
}

#[cfg(test)]
mod tests;
