//! Which resource a representation stands for.

use std::sync::Arc;

use kubewire_indexer::{Object, Represents};

/// A representation that knows which resource it is read from, so that [`ListWatch::all`](crate::ListWatch::all)
/// needs no more than a client.
///
/// An `Arc<T>` knows it from `T`: kube's resources are their own, `#[derive(Meta)]` tells it of a struct of one's own.
pub trait Represented: Object {
    /// The resource; a `kube_core::Resource`.
    type Resource;
}

impl<T: Represents> Represented for Arc<T>
where
    Self: Object,
{
    type Resource = T::Resource;
}
