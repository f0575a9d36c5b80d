//! Metrics by controller-runtime's names, and the endpoint that tells them.

mod access;
mod client;
mod registry;
mod server;

pub use access::TokenAccess;
pub use registry::MetricsRegistry;
pub use server::{AddHandlerError, MetricsServer};
