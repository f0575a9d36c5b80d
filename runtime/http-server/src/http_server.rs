//! One port.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use http::Request;
use hyper::body::Incoming;
#[cfg(feature = "tls")]
use kubewire_certificate::ReloadingCertificate;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
#[cfg(feature = "tls")]
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use crate::Answer;
use crate::bounds::{ACCEPT_PAUSE, CLOSE_TIMEOUT, CONNECTIONS_MAX};
use crate::connection;
use crate::unstalled::Unstalled;

/// HTTP on one port, until it is told to stop. Clones share its state: one runs it, others ask where it listens.
#[derive(Clone)]
pub struct HttpServer {
    name: &'static str,
    address: SocketAddr,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    state: Arc<State>,
}

#[cfg(feature = "tls")]
#[derive(Clone)]
struct Tls {
    certificate: ReloadingCertificate,
    config: Arc<ServerConfig>,
}

#[derive(Debug, Default)]
struct State {
    address: OnceLock<SocketAddr>,
    is_bound: CancellationToken,
    serves: AtomicBool,
}

impl HttpServer {
    /// A server for this address; it does not listen before it is run. Port 0 takes any free one. An IPv6 address that stands
    /// for all takes IPv4 as well, and is replaced by IPv4's where the machine has no IPv6. The name is for logs and errors.
    pub fn new(name: &'static str, address: SocketAddr) -> Self {
        Self {
            name,
            address,
            #[cfg(feature = "tls")]
            tls: None,
            state: Arc::default(),
        }
    }

    /// On another address.
    #[must_use = "it gives the changed server back"]
    pub fn address(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    /// TLS alone, with this certificate, whose files are looked at while the server runs.
    #[cfg(feature = "tls")]
    #[must_use = "it gives the changed server back"]
    pub fn tls(self, certificate: ReloadingCertificate) -> Self {
        let config = (*certificate.server_config()).clone();
        self.tls_with(certificate, config)
    }

    /// As [`tls`](Self::tls), with a configuration of one's own that shows the certificate
    /// ([`resolver`](ReloadingCertificate::resolver)), such as one that asks clients for theirs. Its protocols are replaced.
    #[cfg(feature = "tls")]
    #[must_use = "it gives the changed server back"]
    pub fn tls_with(self, certificate: ReloadingCertificate, mut config: ServerConfig) -> Self {
        config.alpn_protocols = connection::PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        Self { tls: Some(Tls { certificate, config: Arc::new(config) }), ..self }
    }

    /// Where it listens, once it does.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.state.address.get().copied()
    }

    /// Waits until it listens. Cancel-safe.
    pub async fn started(&self) {
        self.state.is_bound.cancelled().await;
    }

    /// Whether it takes connections.
    pub fn is_serving(&self) -> bool {
        self.state.serves.load(Ordering::Acquire)
    }

    /// Listens and answers until `stop` is cancelled. Then what is being answered is answered, for a minute at most, or until
    /// `cancel` is. It is called once.
    ///
    /// Where the future is dropped, all connections are closed.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn run<F, A>(&self, answer: F, stop: CancellationToken, cancel: CancellationToken) -> io::Result<()>
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        let listener = self.listen().await?;
        let address = listener.local_addr()?;
        let _ = self.state.address.set(address);
        let serves = Serves::begin(&self.state);
        tracing::info!(server = self.name, %address, "listening");
        let mut connections = JoinSet::new();
        tokio::select! {
            () = self.accept(listener, &mut connections, answer, &stop) => {}
            // It never ends by itself.
            () = self.reload() => {}
        }
        drop(serves);
        let closed = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = closed => {}
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(CLOSE_TIMEOUT) => {
                tracing::warn!(server = self.name, "requests that are being answered are given up");
            }
        }
        Ok(())
    }

    async fn listen(&self) -> io::Result<TcpListener> {
        let bound = match TcpListener::bind(self.address).await {
            Err(_) if self.address.ip() == Ipv6Addr::UNSPECIFIED => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.address.port())).await
            }
            bound => bound,
        };
        bound.map_err(|error| {
            let message = format!("cannot listen on {} for {}: {error}", self.address, self.name);
            io::Error::new(error.kind(), message)
        })
    }

    /// Takes connections until the stop.
    async fn accept<F, A>(
        &self,
        listener: TcpListener,
        connections: &mut JoinSet<()>,
        answer: F,
        stop: &CancellationToken,
    ) where
        F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
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
                        let connection = self.connection(stream, answer.clone(), stop.clone());
                        connections.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(server = self.name, %error, "a connection was not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    fn connection<F, A>(
        &self,
        stream: TcpStream,
        answer: F,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<F, A>
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        #[cfg(feature = "tls")]
        let tls = self.tls.as_ref().map(|tls| Arc::clone(&tls.config));
        let stream = Unstalled::new(stream);
        async move {
            #[cfg(feature = "tls")]
            if let Some(config) = tls {
                return connection::serve_tls(stream, config, answer, stop).await;
            }
            connection::serve(stream, answer, stop).await;
        }
    }

    /// Looks at the certificate's files, for ever.
    async fn reload(&self) {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            tls.certificate.clone().reload().await;
        }
        std::future::pending().await
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HttpServer");
        debug.field("name", &self.name).field("address", &self.address).field("state", &self.state);
        #[cfg(feature = "tls")]
        debug.field("certificate", &self.tls.as_ref().map(|tls| &tls.certificate));
        debug.finish()
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
