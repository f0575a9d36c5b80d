//! The queue between the reflector and the store.

mod join;
mod outcomes;
mod queue;
mod state;
mod versions;

pub use queue::{Closed, DeltaFifo, DeltaFifoOptions, Popped, Transform};
