//! Under construction.
mod reflector_store;

pub use reflector_store::{AdmitError, Admitted, ReflectorStore, Replacement, TransformError};
