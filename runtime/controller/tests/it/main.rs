//! Controllers against requests by hand, sources of all kinds, and an API server in memory, on paused time.

mod builder;
mod reconcile;
mod sources;
mod start;
mod support;
mod warm_up;
