//! TLS on a port.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use kubewire_certificate::{CertificateError, ReloadingCertificate};
use kubewire_http_server::HttpServer;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_util::sync::CancellationToken;

use crate::WebhookService;

/// Serves webhooks over TLS, with HTTP/2 where the API server wants it, until it is told to stop.
///
/// The certificate is read again when its files change; see [`ReloadingCertificate`].
#[derive(Debug)]
pub struct WebhookServer {
    service: WebhookService,
    certificate: ReloadingCertificate,
    server: HttpServer,
}

/// Why a server cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The authorities of clients cannot be used.
    #[error("the authorities of clients cannot be used: {0}")]
    ClientAuthorities(String),
    /// TLS refuses.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// As controller-runtime's.
const PORT: u16 = 9443;

impl WebhookServer {
    /// Where controller-runtime looks for `tls.crt` and `tls.key`: `<tmp>/k8s-webhook-server/serving-certs`.
    pub fn default_certificate_dir() -> PathBuf {
        std::env::temp_dir().join("k8s-webhook-server/serving-certs")
    }

    /// With the certificate `tls.crt` and the key `tls.key` of this directory, on port 9443 of all addresses.
    ///
    /// # Errors
    /// They are not there, or cannot be used.
    pub fn new(service: WebhookService, certificate_dir: impl Into<PathBuf>) -> Result<Self, ServerError> {
        let directory = certificate_dir.into();
        let certificate = ReloadingCertificate::from_files(directory.join("tls.crt"), directory.join("tls.key"))?;
        Self::with_certificate(service, certificate)
    }

    /// With this certificate, on port 9443 of all addresses.
    ///
    /// # Errors
    /// TLS refuses.
    pub fn with_certificate(service: WebhookService, certificate: ReloadingCertificate) -> Result<Self, ServerError> {
        let server = HttpServer::new("webhooks", (Ipv6Addr::UNSPECIFIED, PORT).into()).tls(certificate.clone());
        Ok(Self { service, certificate, server })
    }

    /// On this address. Port 0 takes any, see [`local_address`](Self::local_address). An IPv6 address that stands for all takes
    /// IPv4 as well, and is replaced by IPv4's where the machine has no IPv6.
    #[must_use = "it changes nothing by itself"]
    pub fn address(self, address: SocketAddr) -> Self {
        Self { server: self.server.address(address), ..self }
    }

    /// Serves only who has a certificate of one of these authorities (PEM), as an API server has one that is configured so.
    ///
    /// # Errors
    /// There is none among them.
    pub fn client_authorities(self, pem: &str) -> Result<Self, ServerError> {
        let wrong = |error: &dyn std::fmt::Display| ServerError::ClientAuthorities(error.to_string());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
        let provider = self.certificate.provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier.map_err(|error| wrong(&error))?)
            .with_cert_resolver(self.certificate.resolver());
        let server = self.server.tls_with(self.certificate.clone(), config);
        Ok(Self { server, ..self })
    }

    /// What answers.
    pub fn service(&self) -> &WebhookService {
        &self.service
    }

    /// The certificate, e.g. to count how often it was read.
    pub fn certificate(&self) -> &ReloadingCertificate {
        &self.certificate
    }

    /// Where it listens, once it does.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.server.local_address()
    }

    /// Waits until it listens. Cancel-safe.
    pub async fn started(&self) {
        self.server.started().await;
    }

    /// A check for the readiness endpoint: well while it takes connections.
    pub fn check(&self) -> impl Fn() -> Result<(), NotServing> + Send + Sync + 'static + use<> {
        let server = self.server.clone();
        move || if server.is_serving() { Ok(()) } else { Err(NotServing) }
    }

    /// Listens and answers until `stop` is cancelled. Then what is being answered is answered, for a minute at most, or until
    /// `cancel` is. It is called once.
    ///
    /// Where the future is dropped, all connections are closed.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn run(&self, stop: CancellationToken, cancel: CancellationToken) -> io::Result<()> {
        let service = self.service.clone();
        let answer = move |request| {
            let service = service.clone();
            async move { service.answer(request).await }
        };
        self.server.run(answer, stop, cancel).await
    }
}

/// The webhook server does not take connections, not yet or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook server does not take connections")]
pub struct NotServing;

#[cfg(feature = "controller")]
impl kubewire_controller::Runnable for WebhookServer {
    fn name(&self) -> &str {
        "webhooks"
    }

    fn run(
        &self,
        cx: kubewire_controller::RunContext,
    ) -> futures::future::BoxFuture<'_, Result<(), kubewire_controller::BoxError>> {
        Box::pin(async move { Ok(WebhookServer::run(self, cx.stop, cx.cancel).await?) })
    }

    /// Once it listens. Where it cannot, `run` ends with the error, which stops the manager.
    fn ready(
        &self,
        _: &kubewire_controller::RunContext,
    ) -> futures::future::BoxFuture<'_, Result<(), kubewire_controller::BoxError>> {
        Box::pin(async move {
            self.started().await;
            Ok(())
        })
    }

    fn group(&self) -> kubewire_controller::Group {
        kubewire_controller::Group::Webhooks
    }
}
