//! The queue from outside, by client-go's own scenarios and by the faults that others have had.
#![cfg(not(loom))]

mod cost;
mod delaying;
mod draining;
mod metrics;
mod misbehaving;
mod queue;
mod rate_limiting;
mod support;
mod waiting;
