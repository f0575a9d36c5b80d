//! Writes of an indexer.

use std::fmt;

use crate::indexer::version_of;
use crate::version::Version;
use crate::{Deleted, KeyError, Object, ObjectKey, Write};

/// One write of an [`Indexer::apply`](crate::Indexer::apply), by a key that the caller has at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<O> {
    /// Adds the object, or replaces the one of the same key.
    Put {
        /// Where to put it.
        key: ObjectKey,
        /// The object; its version is remembered.
        object: O,
    },
    /// Removes the object of this key, if there is one.
    Delete {
        /// What to remove.
        key: ObjectKey,
        /// The state in which it was deleted, if that is known: its version is remembered.
        last: Option<O>,
    },
}

impl<O: Object> Change<O> {
    /// Puts the object under its own key.
    pub fn put(object: O) -> Result<Self, KeyError> {
        Ok(Self::Put { key: object.try_key()?, object })
    }

    /// Removes a deleted object. A tombstone's key counts, whatever its object says, and its version does not.
    pub fn delete(deleted: Deleted<O>) -> Result<Self, KeyError> {
        Ok(match deleted {
            Deleted::Known(object) => Self::Delete { key: object.try_key()?, last: Some(object) },
            Deleted::FinalStateUnknown { key, .. } => Self::Delete { key: *key, last: None },
        })
    }

    /// The version to remember, if this change has one.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::Put { object, .. } => version_of(object),
            Self::Delete { last, .. } => last.as_ref().and_then(version_of),
        }
    }

    pub(crate) fn into_write(self) -> Write<ObjectKey, O> {
        match self {
            Self::Put { key, object } => Write::Put(key, object),
            Self::Delete { key, .. } => Write::Delete(key),
        }
    }
}

/// Some changes of an [`Indexer::transaction`](crate::Indexer::transaction) failed; all others were made.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransactionError<O, E = KeyError> {
    /// The positions of the changes that were made, and what each of them replaced or removed.
    pub made: Vec<(usize, Option<O>)>,
    /// The positions of those that failed, and why; never empty.
    pub failed: Vec<(usize, E)>,
}

impl<O, E: fmt::Display> fmt::Display for TransactionError<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, all) = (self.failed.len(), self.failed.len() + self.made.len());
        write!(f, "{failed} of {all} changes failed, the others were made")?;
        match self.failed.first() {
            Some((position, error)) => write!(f, "; the first that failed, at position {position}: {error}"),
            None => Ok(()),
        }
    }
}

impl<O: fmt::Debug, E: std::error::Error + 'static> std::error::Error for TransactionError<O, E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.failed.first().map(|(_, error)| error as _)
    }
}
