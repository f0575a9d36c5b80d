//! What a handler is told.

use kubewire_indexer::{Deleted, Object, ObjectKey};

/// One change of the store, as a handler or a [`Subscription`](crate::Subscription) gets it. The store has
/// taken it in before anybody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notification<O> {
    /// There is a new object.
    Added {
        /// The object.
        object: O,
        /// Whether it was there already when this handler began: part of the informer's first list, or of the
        /// store when the handler was added.
        is_in_initial_list: bool,
    },
    /// An object has changed, or is told again by a resync or a new list (then both have the same version).
    ///
    /// An object that was deleted and made anew while the informer did not look comes as one update with
    /// different uids.
    Updated {
        /// The state before.
        old: O,
        /// The state now.
        new: O,
    },
    /// An object is gone.
    Deleted(Deleted<O>),
}

impl<O: Object> Notification<O> {
    /// The key of the object. Cost: a copy, see [`ObjectKey`].
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } => object.key(),
            Self::Deleted(deleted) => deleted.key(),
        }
    }
}

impl<O> Notification<O> {
    /// Whether it is an addition of the initial list.
    pub(crate) fn is_initial(&self) -> bool {
        matches!(self, Self::Added { is_in_initial_list: true, .. })
    }
}

/// A notification on its way to the handlers.
#[derive(Clone, Debug)]
pub(crate) struct Told<O> {
    pub(crate) key: ObjectKey,
    pub(crate) notification: Notification<O>,
    /// Nothing has changed: it goes only to handlers for which a resync is due.
    pub(crate) resync: bool,
}
