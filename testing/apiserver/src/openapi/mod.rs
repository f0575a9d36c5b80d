//! What kubectl asks of OpenAPI.
mod types;
pub(crate) use types::{Field, Type};
