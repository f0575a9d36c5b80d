//! The small HTTP server beneath the health and the metrics endpoint.

#[cfg(all(test, feature = "rustls-tls"))]
pub(crate) mod certificate_files;
#[cfg(test)]
pub(crate) mod get;
mod server;

pub(crate) use server::{Answer, Bound, Server, answer};
