//! What an election is about: one object that all candidates read and write.

use std::fmt;

use futures::future::BoxFuture;

use crate::{Record, Versioned};

/// One object that holds a [`Record`], written by compare-and-swap on its version; as client-go's
/// `resourcelock.Interface`.
///
/// [`LeaseLock`](crate::LeaseLock) is the real one, [`FakeLock`](crate::fake::FakeLock) one for tests. The futures are
/// dropped when they take too long, wherever they are; a write may have happened then.
pub trait Lock: Send + Sync + 'static {
    /// What the object says; `None` where there is none.
    fn get(&self) -> BoxFuture<'_, Result<Option<Versioned>, LockError>>;

    /// Makes the object. [`LockError::Conflict`] where it is there.
    fn create(&self, record: Record) -> BoxFuture<'_, Result<Versioned, LockError>>;

    /// Replaces the record of this version. [`LockError::Conflict`] where the object has another one by now.
    fn update(&self, replaced: Versioned) -> BoxFuture<'_, Result<Versioned, LockError>>;

    /// What it is, for logs, events and metrics.
    fn reference(&self) -> LockReference;
}

/// Names the object of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockReference {
    /// Such as `coordination.k8s.io/v1`.
    pub api_version: String,
    /// Such as `Lease`.
    pub kind: String,
    /// Empty for cluster scope.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl fmt::Display for LockReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// Why a lock could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The object has another version, or was there already: read it again.
    #[error("the lock was changed by somebody else: read it again")]
    Conflict,
    /// The object is gone.
    #[error("the lock's object is gone: it will be made anew")]
    NotFound,
    /// An update of a version that was not read or written through this lock before.
    #[error("the lock was not read before the update: get or create it first")]
    NotRead,
    /// It took too long.
    #[error("no answer from the lock in time: see that the API server is reachable")]
    TimedOut,
    /// The lock's own code panicked.
    #[error("the lock panicked: {0}")]
    Panicked(String),
    /// The request was refused or lost.
    #[error("the lock could not be read or written, see the cause; a candidate needs to get, create and update it")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
}
