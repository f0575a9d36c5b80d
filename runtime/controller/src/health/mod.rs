//! Whether the process lives and is ready, by name and over HTTP.

mod checks;
mod report;
mod server;

pub use checks::{AddCheckError, HealthChecks};
pub use server::HealthServer;
