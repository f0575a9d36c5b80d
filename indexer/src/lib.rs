//! Under construction.
#![forbid(unsafe_code)]

mod deleted;
mod index_definition;
mod index_error;
mod index_func;
mod index_table;
mod indexer;
mod object;
mod object_key;
mod prepared;
mod resource;
mod slots;
mod state;
mod store;

pub use deleted::Deleted;
pub use hashbrown::Equivalent;
pub use index_error::{IndexConflict, IndexError, IndexFailure, UnknownIndex};
pub use index_func::{BoxError, IndexFunc, IndexValues, Indexers};
pub use indexer::{Change, Indexer, NAMESPACE_INDEX};
pub use object::{Id, Meta, Object};
pub use object_key::{KeyError, ObjectKey, split_key};
pub use resource::Represents;
pub use store::{Store, Write};
