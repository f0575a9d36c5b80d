//! Certificates in files, and who shows them, for tests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::get::get_over;

/// A folder of its own with a certificate and a key, gone in the end.
pub(crate) struct Files {
    folder: PathBuf,
    /// The certificate that was written last.
    der: Mutex<Vec<u8>>,
}

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubewire-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, der: Mutex::default() }
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.join("tls.crt")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.join("tls.key")
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.der.lock().clone()
    }

    /// Writes new ones into the files.
    pub(crate) fn write(&self, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(self.certificate(), made.cert.pem()).unwrap();
        std::fs::write(self.key(), made.signing_key.serialize_pem()).unwrap();
        *self.der.lock() = made.cert.der().to_vec();
    }

    pub(crate) fn break_certificate(&self) {
        std::fs::write(self.certificate(), "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n").unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Takes any certificate: the test looks at it.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The status of a GET over TLS, and the certificate that was shown.
pub(crate) async fn served_by(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    (get_over(stream, path, "").await.0, shown)
}
