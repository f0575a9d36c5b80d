//! What a list brings to somebody who holds an earlier state of it.

use std::sync::Arc;

use kubewire_indexer::Id;

use crate::ItemError;

/// Finds the handle of a state of an object among what is held already: by key, uid and version, all of them. Called
/// from any thread, once for each item, before the item is decoded.
pub type Held<O> = Arc<dyn Fn(Id<'_>) -> Option<O> + Send + Sync>;

/// An item of a relist.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Relisted<O> {
    /// It was decoded.
    New(O),
    /// Its very state is held already: the handle that [`Held`] gave. Nothing was decoded.
    Unchanged(O),
}

impl<O> Relisted<O> {
    /// The object, wherever it comes from.
    pub fn into_object(self) -> O {
        match self {
            Self::New(object) | Self::Unchanged(object) => object,
        }
    }
}

/// Where the items of a relist go; as [`ItemSink`](crate::ItemSink).
pub type RelistSink<'a, O> = &'a mut (dyn FnMut(Result<Relisted<O>, ItemError>) + Send);
