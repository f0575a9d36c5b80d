//! What happened to one object, and all that waits of one key.

use kubewire_indexer::{Deleted, Object, ObjectKey};
use smallvec::{SmallVec, smallvec};

use crate::{Received, Replacement};

/// One change on its way from the reflector to the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delta<O> {
    /// An `ADDED` event.
    Added(Received<O>),
    /// A `MODIFIED` event.
    Updated(Received<O>),
    /// A `DELETED` event, or a deletion that a list has revealed (a tombstone).
    Deleted(Deleted<O>),
    /// An object of a list.
    Replaced(Received<O>),
    /// An object that is told again, by a resync; or of a list, where
    /// [`emit_replaced`](crate::DeltaFifoOptions::emit_replaced) is off.
    Sync(Received<O>),
    /// A whole list, in [`Delivery::InOrder`](crate::Delivery::InOrder).
    ReplacedAll(Box<Replacement<O>>),
    /// A whole resync, in [`Delivery::InOrder`](crate::Delivery::InOrder).
    SyncAll,
    /// A bookmark with its version, in [`Delivery::InOrder`](crate::Delivery::InOrder).
    Bookmark(String),
}

impl<O> Delta<O> {
    /// client-go's name of the kind, such as `Added`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Added(_) => "Added",
            Self::Updated(_) => "Updated",
            Self::Deleted(_) => "Deleted",
            Self::Replaced(_) => "Replaced",
            Self::Sync(_) => "Sync",
            Self::ReplacedAll(_) => "ReplacedAll",
            Self::SyncAll => "SyncAll",
            Self::Bookmark(_) => "Bookmark",
        }
    }

    /// The object, of a tombstone the last known one. `None` for what concerns more than one object.
    pub fn object(&self) -> Option<&O> {
        match self {
            Self::Added(item) | Self::Updated(item) | Self::Replaced(item) | Self::Sync(item) => Some(&item.object),
            Self::Deleted(deleted) => deleted.last_known(),
            Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_) => None,
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted(_))
    }
}

/// One entry of a delta FIFO: the deltas of one key that waited, oldest first, at least one.
#[derive(Clone, Debug)]
pub struct Deltas<O> {
    /// `None` for what concerns more than one object, which then is the only delta.
    key: Option<ObjectKey>,
    /// Of the key, as the FIFO computed it; 0 where there is none.
    hash: u64,
    list: DeltaList<O>,
}

/// What is taken together: mostly one, which needs no allocation.
pub(crate) type Entries<O> = SmallVec<[Deltas<O>; 1]>;

/// Mostly one: that needs no allocation.
pub(crate) type DeltaList<O> = SmallVec<[Delta<O>; 1]>;

impl<O> Deltas<O> {
    pub(crate) fn new(key: ObjectKey, hash: u64, delta: Delta<O>) -> Self {
        Self { key: Some(key), hash, list: smallvec![delta] }
    }

    /// What concerns more than one object.
    pub(crate) fn whole(delta: Delta<O>) -> Self {
        Self { key: None, hash: 0, list: smallvec![delta] }
    }

    pub(crate) fn into_parts(self) -> (Option<ObjectKey>, DeltaList<O>) {
        (self.key, self.list)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The key of the object that all of them concern; `None` for a whole list, a whole resync or a bookmark.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.key.as_ref()
    }

    /// The first that came.
    pub fn oldest(&self) -> Option<&Delta<O>> {
        self.list.first()
    }

    /// The last that came.
    pub fn newest(&self) -> Option<&Delta<O>> {
        self.list.last()
    }

    /// All of them, oldest first.
    pub fn as_slice(&self) -> &[Delta<O>] {
        &self.list
    }

    pub(crate) fn list_mut(&mut self) -> &mut DeltaList<O> {
        &mut self.list
    }
}

impl<O: Object> Deltas<O> {
    /// Whether the object exists after all of them, and its last state: `None` after a deletion.
    pub(crate) fn outcome(&self) -> Option<&O> {
        match self.newest() {
            Some(Delta::Deleted(_)) | None => None,
            Some(delta) => delta.object(),
        }
    }
}

impl<O> IntoIterator for Deltas<O> {
    type Item = Delta<O>;
    type IntoIter = IntoDeltas<O>;

    fn into_iter(self) -> Self::IntoIter {
        IntoDeltas(self.list.into_iter())
    }
}

/// The deltas of one entry moved out, oldest first.
#[derive(Debug)]
pub struct IntoDeltas<O>(smallvec::IntoIter<[Delta<O>; 1]>);

impl<O> Iterator for IntoDeltas<O> {
    type Item = Delta<O>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<O> ExactSizeIterator for IntoDeltas<O> {}

impl<'a, O> IntoIterator for &'a Deltas<O> {
    type Item = &'a Delta<O>;
    type IntoIter = std::slice::Iter<'a, Delta<O>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Deltas;

    #[test]
    fn an_entry_with_one_delta_is_120_bytes() {
        assert_eq!(size_of::<Deltas<Arc<()>>>(), 120);
    }
}
