//! A small HTTP client, and certificates, for the tests of this crate.

#[cfg(feature = "rustls-tls")]
pub(crate) mod certificate_files;
pub(crate) mod get;
