//! Under construction.
#![forbid(unsafe_code)]

mod change;
mod compare_versions;
mod deleted;
mod expiration_cache;
mod heap;
mod index_definition;
mod index_error;
mod index_func;
mod index_table;
mod indexer;
#[cfg(feature = "kube")]
mod kube;
mod labels;
mod lister;
mod mutation_cache;
mod object;
mod object_id;
mod object_key;
mod prepared;
mod resource;
mod selector;
#[cfg(feature = "serde")]
mod serde;
mod slots;
mod state;
mod store;
mod transforming;
mod undelta_store;

pub use change::{Change, TransactionError};
pub use compare_versions::compare_versions;
pub use deleted::Deleted;
pub use expiration_cache::{ExpirationCache, Stamped};
pub use hashbrown::Equivalent;
pub use heap::{Heap, HeapClosed};
pub use index_error::{IndexConflict, IndexError, IndexFailure, UnknownIndex};
pub use index_func::{BoxError, IndexFunc, IndexValues, Indexers};
pub use indexer::{Indexer, NAMESPACE_INDEX};
#[cfg(feature = "derive")]
pub use kubewire_indexer_derive::Meta;
pub use labels::{LabelMap, Labels};
pub use lister::{Lister, NamespaceLister, NotFound};
pub use mutation_cache::{MutationCache, MutationCacheOptions};
pub use object::{Id, Meta, Object};
pub use object_id::{LabeledId, Metadata, ObjectId};
pub use object_key::{KeyError, ObjectKey, split_key};
pub use resource::Represents;
pub use selector::{
    FieldRequirement, FieldSelector, LabelSelector, Operator, Requirement, SelectorError, validate_label_name,
    validate_label_value,
};
pub use store::{Store, Write};
pub use transforming::{Transforming, WriteError};
pub use undelta_store::UndeltaStore;
