//! Under construction.
mod deleted;
mod object;
mod object_key;

pub use deleted::Deleted;
pub use object::{Id, Meta, Object};
pub use object_key::{KeyError, ObjectKey};
