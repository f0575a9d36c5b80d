//! Where a webhook server of the tests is reached.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::control_plane::write_private;
use crate::port::Port;
use crate::{Authority, EnvError, Manifests};

/// A port, a certificate and its authority for a webhook server that runs in the tests; the API server calls it there when
/// the manifests are [redirected](Self::redirect).
///
/// The directory with the certificate goes when this is dropped, and the port is free again.
pub struct LocalWebhooks {
    port: Port,
    directory: TempDir,
    authority: Authority,
}

impl LocalWebhooks {
    pub(crate) fn new() -> Result<Self, EnvError> {
        let port = Port::reserve().map_err(EnvError::io("find a free port"))?;
        let directory = TempDir::with_prefix("kubewire-webhooks-").map_err(EnvError::io("make a directory"))?;
        let this = Self { port, directory, authority: Authority::new("kubewire-envtest webhooks")? };
        this.write_certificate()?;
        Ok(this)
    }

    /// What the server listens on.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number()).into()
    }

    /// The base of the addresses at which it is called.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// `tls.crt` and `tls.key` are in it.
    pub fn certificate_dir(&self) -> &Path {
        self.directory.path()
    }

    /// The certificate of the authority, as a CA bundle holds it.
    pub fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    /// The manifests with their webhooks here.
    pub fn redirect(&self, manifests: Manifests) -> Manifests {
        manifests.with_webhooks_at(&self.url(), &self.ca_pem())
    }

    /// A new certificate, of a new authority, takes the place of the old one; file by file and each at once, as a program that
    /// renews certificates does it. Manifests must then be redirected and installed anew.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn rotate(&mut self) -> Result<(), EnvError> {
        self.authority = Authority::new("kubewire-envtest webhooks")?;
        self.write_certificate()
    }

    fn write_certificate(&self) -> Result<(), EnvError> {
        let certificate = self.authority.server(&["127.0.0.1", "localhost"])?;
        let replace = |name: &str, text: &str| -> io::Result<()> {
            let new: PathBuf = self.directory.path().join(format!("{name}.new"));
            write_private(&new, text)?;
            fs::rename(&new, self.directory.path().join(name))
        };
        replace("tls.crt", &certificate.certificate_pem)
            .and_then(|()| replace("tls.key", &certificate.key_pem))
            .map_err(EnvError::io("write a certificate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_written_replaced_and_removed() {
        let mut webhooks = LocalWebhooks::new().unwrap();
        let directory = webhooks.certificate_dir().to_owned();
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        let (certificate, ca) = (read("tls.crt"), webhooks.ca_pem());
        assert!(read("tls.key").contains("PRIVATE KEY"));
        webhooks.rotate().unwrap();
        assert!(read("tls.crt") != certificate && webhooks.ca_pem() != ca);
        drop(webhooks);
        assert!(!directory.exists());
    }
}
