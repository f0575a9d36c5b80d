//! HTTP/1.1 on one port, with or without TLS, in bounded time and memory.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{BoxError, RunContext};

/// What a request is answered with.
pub(crate) type Answer = Response<Full<Bytes>>;

/// Answers requests, whose bodies nobody reads.
pub(crate) type Service = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A text as an answer.
pub(crate) fn answer(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    answer
}

/// The address that a server got, once it has it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    address: Arc<std::sync::OnceLock<SocketAddr>>,
    is_set: CancellationToken,
}

impl Bound {
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        self.address.get().copied()
    }

    /// Cancel-safe.
    pub(crate) async fn wait(&self) {
        self.is_set.cancelled().await;
    }

    fn set(&self, address: SocketAddr) {
        let _ = self.address.set(address);
        self.is_set.cancel();
    }
}

pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) bound: Bound,
    #[cfg(feature = "rustls-tls")]
    pub(crate) tls: Option<crate::ReloadingCertificate>,
}

/// As controller-runtime's.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// For a whole request head; idle connections end by it, too.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// A client that does not shake hands is let go.
#[cfg(feature = "rustls-tls")]
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// More connections wait in the backlog of the socket.
const CONNECTIONS_MAX: usize = 256;
/// Connections that are being answered have this long after the stop.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// After an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Listens and answers until it is told to stop. Then open requests are answered, for a minute at most, or until the
    /// cancellation.
    pub(crate) async fn run(&self, service: Service, cx: RunContext) -> Result<(), BoxError> {
        let listener = TcpListener::bind(self.address).await.map_err(|error| self.bind_error(error))?;
        self.bound.set(listener.local_addr()?);
        tracing::info!(server = self.name, address = ?self.bound.get(), "listening");
        #[cfg(feature = "rustls-tls")]
        let _reload = self.tls.as_ref().map(|tls| Reload(tokio::spawn(tls.clone().reload())));
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                // It is never closed.
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                biased;
                () = cx.stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let connection = self.connection(stream, Arc::clone(&service), cx.stop.clone());
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
        drop(listener);
        let closed = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = closed => {}
            () = cx.cancel.cancelled() => {}
            () = tokio::time::sleep(CLOSE_TIMEOUT) => {}
        }
        Ok(())
    }

    fn bind_error(&self, error: io::Error) -> BoxError {
        let address = self.address;
        io::Error::new(error.kind(), format!("cannot listen on {address} for {}: {error}", self.name)).into()
    }

    fn connection(
        &self,
        stream: TcpStream,
        service: Service,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        #[cfg(feature = "rustls-tls")]
        let tls = self.tls.as_ref().map(|tls| tokio_rustls::TlsAcceptor::from(tls.server_config()));
        async move {
            #[cfg(feature = "rustls-tls")]
            if let Some(tls) = tls {
                match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                    Ok(Ok(stream)) => answer_all(stream, service, stop).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
                    Err(_) => tracing::debug!("no TLS handshake in time"),
                }
                return;
            }
            answer_all(stream, service, stop).await;
        }
    }
}

/// Ends a task when it goes.
#[cfg(feature = "rustls-tls")]
struct Reload(tokio::task::JoinHandle<()>);

#[cfg(feature = "rustls-tls")]
impl Drop for Reload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Answers the requests of one connection, one after the other; after the stop, the one that is open.
async fn answer_all(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Service,
    stop: CancellationToken,
) {
    let service = service_fn(move |request| {
        let answered = std::panic::AssertUnwindSafe(service(request)).catch_unwind();
        async move {
            Ok::<_, std::convert::Infallible>(answered.await.unwrap_or_else(|_| {
                tracing::error!("a handler of an HTTP request panicked");
                answer(StatusCode::INTERNAL_SERVER_ERROR, "the handler panicked\n")
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
