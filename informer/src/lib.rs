//! Under construction.
mod delivery;
mod delta;
mod delta_fifo;
mod known_objects;
mod latch;
mod panics;
pub mod reflector;
mod reflector_store;

pub use delivery::Delivery;
pub use delta::{Delta, Deltas};
pub use delta_fifo::{Closed, DeltaFifo, DeltaFifoOptions, Popped, Transform};
pub use known_objects::KnownObjects;
pub use reflector_store::{AdmitError, Admitted, ReflectorStore, Replacement, TransformError};
