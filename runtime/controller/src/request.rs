//! What is to be reconciled.

use std::fmt;
use std::hash::Hash;

use kubewire_indexer::ObjectKey;

/// What a controller is asked to reconcile unless it says otherwise: the key of an object. As controller-runtime's
/// `reconcile.Request`.
///
/// It names an object, not a change: whoever reconciles it looks what there is now.
pub type Request = ObjectKey;

/// What can be a request: any value that can be compared, hashed and cloned. A controller of several clusters has
/// `(Cluster, ObjectKey)`, say.
///
/// Where its own `Clone`, `Eq`, `Hash`, `Debug` or `Drop` panics in a worker that is counted as a panic of a reconcile and
/// logged, and the request comes back where it can be cloned; others are not affected.
pub trait RequestKey: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {}

impl<T: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static> RequestKey for T {}
