//! TLS on a port.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kubewire_certificate::{CertificateError, ReloadingCertificate};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::WebhookService;

/// Serves webhooks over TLS, with HTTP/2 where the API server wants it, until it is told to stop.
///
/// The certificate is read again when its files change; see [`ReloadingCertificate`].
#[derive(Debug)]
pub struct WebhookServer {
    service: WebhookService,
    address: SocketAddr,
    certificate: ReloadingCertificate,
    config: Arc<ServerConfig>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    address: OnceLock<SocketAddr>,
    serves: AtomicBool,
    is_bound: CancellationToken,
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
/// For a whole head; idle connections of HTTP/1.1 end by it, too.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// More wait in the backlog of the socket.
const CONNECTIONS_MAX: usize = 256;
/// On one connection; API servers hold few.
const STREAMS_MAX: u32 = 250;
/// A connection of HTTP/2 that does not answer a ping is let go.
const PING_PERIOD: Duration = Duration::from_secs(30);
/// What is being answered has this long after the stop.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// After an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
        let mut config = (*certificate.server_config()).clone();
        config.alpn_protocols = alpn();
        let address = (Ipv6Addr::UNSPECIFIED, PORT).into();
        Ok(Self { service, address, certificate, config: Arc::new(config), state: Arc::default() })
    }

    /// On this address. Port 0 takes any, see [`local_address`](Self::local_address). An IPv6 address that stands for all takes
    /// IPv4 as well, and is replaced by IPv4's where the machine has no IPv6.
    #[must_use = "it changes nothing by itself"]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Serves only who has a certificate of one of these authorities (PEM), as an API server has one that is configured so.
    ///
    /// # Errors
    /// There is none among them.
    pub fn client_authorities(mut self, pem: &str) -> Result<Self, ServerError> {
        let wrong = |error: &dyn std::fmt::Display| ServerError::ClientAuthorities(error.to_string());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
        let provider = self.certificate.provider();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier.map_err(|error| wrong(&error))?)
            .with_cert_resolver(self.certificate.resolver());
        config.alpn_protocols = alpn();
        self.config = Arc::new(config);
        Ok(self)
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
        self.state.address.get().copied()
    }

    /// Waits until it listens. Cancel-safe.
    pub async fn started(&self) {
        self.state.is_bound.cancelled().await;
    }

    /// A check for the readiness endpoint: well while it takes connections.
    pub fn check(&self) -> impl Fn() -> Result<(), NotServing> + Send + Sync + 'static + use<> {
        let state = Arc::clone(&self.state);
        move || if state.serves.load(Ordering::Acquire) { Ok(()) } else { Err(NotServing) }
    }

    /// Listens and answers until `stop` is cancelled. Then what is being answered is answered, for a minute at most, or until
    /// `cancel` is. It is called once.
    ///
    /// Where the future is dropped, all connections are closed.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn run(&self, stop: CancellationToken, cancel: CancellationToken) -> io::Result<()> {
        let listener = self.listen().await?;
        let address = listener.local_addr()?;
        let _ = self.state.address.set(address);
        let _serves = Serves::begin(&self.state);
        tracing::info!(%address, "webhooks are served");
        let mut connections = JoinSet::new();
        tokio::select! {
            () = self.accept(listener, &mut connections, &stop) => {}
            // It never ends by itself.
            () = self.certificate.clone().reload() => {}
        }
        self.state.serves.store(false, Ordering::Release);
        let closed = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = closed => {}
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(CLOSE_TIMEOUT) => tracing::warn!("webhooks that are being answered are given up"),
        }
        Ok(())
    }

    async fn listen(&self) -> io::Result<TcpListener> {
        let bound = match TcpListener::bind(self.address).await {
            Err(_) if self.address.ip() == Ipv6Addr::UNSPECIFIED => {
                TcpListener::bind(("0.0.0.0", self.address.port())).await
            }
            bound => bound,
        };
        let address = self.address;
        bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address} for webhooks: {error}")))
    }

    /// Takes connections until the stop.
    async fn accept(&self, listener: TcpListener, connections: &mut JoinSet<()>, stop: &CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let accepted = async {
                // It is never closed.
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let tls = TlsAcceptor::from(Arc::clone(&self.config));
                        let connection = serve(stream, tls, self.service.clone(), stop.clone());
                        connections.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection for webhooks was not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

/// Says that it serves, until it is dropped.
struct Serves<'a>(&'a State);

impl<'a> Serves<'a> {
    fn begin(state: &'a State) -> Self {
        state.serves.store(true, Ordering::Release);
        state.is_bound.cancel();
        Self(state)
    }
}

impl Drop for Serves<'_> {
    fn drop(&mut self) {
        self.0.serves.store(false, Ordering::Release);
    }
}

/// The webhook server does not take connections, not yet or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook server does not take connections")]
pub struct NotServing;

fn alpn() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// Answers the requests of one connection; after the stop, those that are open.
async fn serve(stream: TcpStream, tls: TlsAcceptor, service: WebhookService, stop: CancellationToken) {
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "no TLS handshake"),
        Err(_) => return tracing::debug!("no TLS handshake in time"),
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING_PERIOD).max_concurrent_streams(STREAMS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of webhooks ended");
    }
}

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
