//! A server's certificate that is read anew when its files change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// A certificate and its key from two PEM files, for a TLS server that goes on with new ones when the files change; as
/// controller-runtime's `certwatcher`. Clones share it.
///
/// The files are looked at every ten seconds, and read where they have changed: written, renamed, or behind another symbolic
/// link, as a mounted secret is. Where the new ones cannot be used, the old ones stay, and that is logged and
/// [counted](CertificateEvents). Only new connections see a change.
#[derive(Clone)]
pub struct ReloadingCertificate {
    shared: Arc<Shared>,
}

struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    config: Arc<rustls::ServerConfig>,
    resolver: Arc<Resolver>,
    /// What was read last, to see a change; also where it could not be used.
    /// Nothing is called under its lock.
    last_read: Mutex<(Vec<u8>, Vec<u8>)>,
    /// Nothing is called under its lock.
    events: Mutex<Option<Arc<dyn CertificateEvents>>>,
}

/// Is told when certificates are read.
pub trait CertificateEvents: Send + Sync {
    /// The files were read; `ok` says whether they could be used.
    fn read(&self, ok: bool);
}

#[derive(Debug)]
struct Resolver {
    /// Nothing is called under its lock.
    current: Mutex<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.lock()))
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no PEM, or has nothing of use in it.
    #[error("no certificate or key in {}: {message}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The two do not belong together, or are of a kind that is not known.
    #[error("certificate and key cannot be used: {0}")]
    Tls(#[from] rustls::Error),
    /// No feature `ring` or `aws-lc-rs`, and no default provider was installed.
    #[error("no crypto provider: turn on the feature `ring` or `aws-lc-rs`, or install a default provider of rustls")]
    NoProvider,
}

/// As often as controller-runtime looks.
const LOOK_PERIOD: Duration = Duration::from_secs(10);

impl ReloadingCertificate {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read or used.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self, CertificateError> {
        let (certificate, key) = (certificate.into(), key.into());
        let provider = provider()?;
        let read = (read(&certificate)?, read(&key)?);
        let first = parse(&certificate, &key, &read, &provider)?;
        let resolver = Arc::new(Resolver { current: Mutex::new(Arc::new(first)) });
        let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&resolver) as Arc<dyn ResolvesServerCert>);
        let (config, events) = (Arc::new(config), Mutex::new(None));
        let last_read = Mutex::new(read);
        Ok(Self { shared: Arc::new(Shared { certificate, key, provider, config, resolver, last_read, events }) })
    }

    /// What handshakes are made with. It sees each change.
    pub fn server_config(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.shared.config)
    }

    /// What a further configuration is made with, such as one that asks clients for certificates.
    pub fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.shared.resolver) as Arc<dyn ResolvesServerCert>
    }

    /// What signs and verifies.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.shared.provider)
    }

    /// The certificate that is shown now, without those above it.
    pub fn current(&self) -> Vec<u8> {
        // One without a certificate was not taken.
        self.shared.resolver.current.lock().cert.first().map(|certificate| certificate.to_vec()).unwrap_or_default()
    }

    /// Tells this when certificates are read. One teller; the last counts.
    pub fn tell(&self, events: Arc<dyn CertificateEvents>) {
        let before = self.shared.events.lock().replace(events);
        drop(before);
    }

    /// Looks at the files for ever. Whoever runs a server with it by hand runs this beside. Cancel-safe.
    pub async fn reload(self) {
        loop {
            tokio::time::sleep(LOOK_PERIOD).await;
            self.look();
        }
    }

    /// Looks at the files once. True where there is a new certificate.
    ///
    /// Cost: two small files are read, on this thread.
    pub fn look(&self) -> bool {
        let shared = &*self.shared;
        let result = read(&shared.certificate).and_then(|certificate| Ok((certificate, read(&shared.key)?)));
        let result = match result {
            Ok(files) => {
                if std::mem::replace(&mut *shared.last_read.lock(), files.clone()) == files {
                    return false;
                }
                parse(&shared.certificate, &shared.key, &files, &shared.provider)
            }
            Err(error) => Err(error),
        };
        let events = shared.events.lock().clone();
        if let Some(events) = events {
            events.read(result.is_ok());
        }
        match result {
            Ok(new) => {
                let before = std::mem::replace(&mut *shared.resolver.current.lock(), Arc::new(new));
                drop(before);
                tracing::info!(certificate = %shared.certificate.display(), "a new certificate");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate cannot be used; the old one stays");
                false
            }
        }
    }
}

impl fmt::Debug for ReloadingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReloadingCertificate").field(&self.shared.certificate).finish()
    }
}

fn provider() -> Result<Arc<CryptoProvider>, CertificateError> {
    if let Some(provider) = CryptoProvider::get_default() {
        return Ok(Arc::clone(provider));
    }
    #[cfg(feature = "aws-lc-rs")]
    let provider = Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    let provider = Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider = None;
    provider.ok_or(CertificateError::NoProvider)
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

fn parse(
    certificate: &Path,
    key: &Path,
    (chain, private): &(Vec<u8>, Vec<u8>),
    provider: &CryptoProvider,
) -> Result<CertifiedKey, CertificateError> {
    let pem = |path: &Path, message: String| CertificateError::Pem { path: path.to_owned(), message };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| pem(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(pem(certificate, "there is none".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(private).map_err(|error| pem(key, error.to_string()))?;
    Ok(CertifiedKey::from_der(chain, private, provider)?)
}

#[cfg(test)]
mod tests;
