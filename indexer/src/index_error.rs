//! What can go wrong with an index.

use std::sync::Arc;

use crate::BoxError;

/// An index of this name exists already, or the name was given twice. None of the given indices was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index name {name:?} is taken: choose another name, or ask for the index that has it")]
pub struct IndexConflict {
    /// The name that is taken.
    pub name: Arc<str>,
}

/// There is no index of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no index {name:?}: add it with `add_indexers` before asking for it")]
pub struct UnknownIndex {
    /// The name that was asked for.
    pub name: Arc<str>,
}

/// Why [`Store::index`](crate::Store::index) has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is no index of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownIndex),
    /// The index function fails for the given object, or panics.
    #[error("the index function of {name:?} fails for the given object")]
    Function {
        /// The name of the index.
        name: Arc<str>,
        /// What it said.
        source: BoxError,
    },
}

/// How often an index function has failed, and how it did last.
///
/// While it fails for an object, the object is in the store and has no values in this index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexFailure<K> {
    /// The name of the index.
    pub index: Arc<str>,
    /// The failures since the index was added, panics included.
    pub count: u64,
    /// The key of the object that failed last.
    pub key: K,
    /// What the function said then; `panicked: ...` if it panicked.
    pub message: String,
}
