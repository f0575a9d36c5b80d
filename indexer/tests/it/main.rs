//! The public API of kubewire-indexer, by behaviour.
//!
//! What concerns objects runs over a plain struct here; `testing/conformance` runs the same files over every
//! representation of an object.

use std::sync::Arc;

/// What the objects of these tests come as.
pub(crate) type PodRef = Arc<record::Pod>;

mod concurrency;
mod index_failures;
mod indexer;
mod keys;
mod kube;
mod lister;
mod mutation_cache;
mod own_struct;
mod panicking;
mod record;
mod selector;
mod store;
mod store_model;
mod undelta_store;
