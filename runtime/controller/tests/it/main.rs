//! Controllers against requests by hand, sources of all kinds, and an API server in memory, on paused time; and what needs a
//! process of its own.

mod blocking;
mod builder;
mod hostile;
mod misbehaving;
mod own_code;
mod reconcile;
#[cfg(unix)]
mod signals;
mod sources;
mod start;
mod support;
mod warm_up;
