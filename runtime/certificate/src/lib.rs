//! A TLS server's certificate that is read anew when its files change, as controller-runtime's `certwatcher`.
//!
//! [`ReloadingCertificate`] gives a [`rustls::ServerConfig`] to any server; [`CertificateEvents`] hears of what was read, for
//! metrics. Webhooks and metrics endpoints of kubewire serve with it.
//!
//! ```
//! use kubewire_certificate::ReloadingCertificate;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
//! # let folder = tempfile::tempdir().unwrap();
//! # std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
//! # std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
//! let certificate = ReloadingCertificate::from_files(folder.path().join("tls.crt"), folder.path().join("tls.key"))?;
//! let config = certificate.server_config();              // for tokio-rustls, hyper, axum-server, …
//! let reloading = tokio::spawn(certificate.reload());    // looks every ten seconds
//! # drop(config);
//! # reloading.abort();
//! # Ok::<(), kubewire_certificate::CertificateError>(()) }).unwrap();
//! ```
//!
//! # Costs and caveats
//! Two small files are read every ten seconds. A file that is written in place may be read half-way: the old certificate stays
//! until the next look. Connections that stand keep the certificate that they began with.
#![forbid(unsafe_code)]

mod reloading_certificate;

pub use reloading_certificate::{CertificateError, CertificateEvents, ReloadingCertificate};
