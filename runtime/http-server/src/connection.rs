//! The requests of one connection; after the stop, those that are open.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "tls")]
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use crate::bounds::{HEADER_BYTES_MAX, HEADER_TIMEOUT, LEAVE_TIMEOUT};
use crate::{Answer, text};

/// What a TLS handshake offers, the best first.
#[cfg(feature = "tls")]
pub(crate) const PROTOCOLS: &[&[u8]] = &[
    #[cfg(feature = "http2")]
    b"h2",
    b"http/1.1",
];

/// How many requests of a connection are being answered. Clones count together.
#[derive(Clone, Default)]
struct Open(Arc<AtomicUsize>);

impl Open {
    /// One more, until that is dropped.
    fn begin(&self) -> OpenOne {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenOne(self.clone())
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

struct OpenOne(Open);

impl Drop for OpenOne {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers until the client has enough; after the stop, what is open.
async fn until_stopped<C>(connection: C, open: Open, stop: CancellationToken)
where
    C: GracefulConnection<Error = hyper::Error>,
{
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            if open.is_any() {
                connection.await
            } else {
                // Else a client that never ends its request holds up whoever waits for the end of the server.
                tokio::time::timeout(LEAVE_TIMEOUT, connection).await.unwrap_or(Ok(()))
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// HTTP/1.1: one request after the other.
pub(crate) async fn serve<F, A>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: F,
    stop: CancellationToken,
) where
    F: Fn(Request<Incoming>) -> A + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let open = Open::default();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service_fn(caught(answer, open.clone())));
    until_stopped(connection, open, stop).await;
}

/// As [`serve`], after a handshake, and HTTP/2 where the client has chosen that.
#[cfg(feature = "tls")]
pub(crate) async fn serve_tls<F, A>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    config: Arc<ServerConfig>,
    answer: F,
    stop: CancellationToken,
) where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let handshake = tokio_rustls::TlsAcceptor::from(config).accept(stream);
    let handshake = tokio::time::timeout(crate::bounds::HANDSHAKE_TIMEOUT, handshake);
    // Nothing was asked yet: the stop need not wait for it.
    let stream = match stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(error))) => return tracing::debug!(%error, "no TLS handshake"),
        Some(Err(_)) | None => return tracing::debug!("no TLS handshake in time"),
    };
    #[cfg(feature = "http2")]
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return http2::serve(stream, answer, stop).await;
    }
    serve(stream, answer, stop).await;
}

#[cfg(feature = "http2")]
mod http2 {
    //! HTTP/2.

    use http::Response;
    use hyper::server::conn::http2;
    use hyper_util::rt::TokioExecutor;
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::bounds::{PING_PERIOD, STREAMS_MAX};
    use crate::untaken::{InParts, Untaken};

    /// The length of what every connection of HTTP/2 begins with.
    const PREFACE_LEN: usize = 24;

    pub(super) async fn serve<F, A>(
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        answer: F,
        stop: CancellationToken,
    ) where
        F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        // hyper would wait for it without end, and does not ping before it.
        let mut preface = [0; PREFACE_LEN];
        let read = tokio::time::timeout(HEADER_TIMEOUT, stream.read_exact(&mut preface));
        match stop.run_until_cancelled(read).await {
            Some(Ok(Ok(_))) => {}
            _ => return tracing::debug!("a connection of HTTP/2 did not begin"),
        }
        let (rest, write) = tokio::io::split(stream);
        let stream = tokio::io::join(AsyncReadExt::chain(std::io::Cursor::new(preface), rest), write);
        let (open, untaken) = (Open::default(), Untaken::default());
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_PERIOD)
            .max_concurrent_streams(STREAMS_MAX)
            .serve_connection(TokioIo::new(stream), service_fn(counted(caught(answer, open.clone()), untaken.clone())));
        tokio::select! {
            () = until_stopped(connection, open, stop) => {}
            () = untaken.stalled() => tracing::debug!("a client of HTTP/2 does not take its answer"),
        }
    }

    /// Each body counts as untaken until it is sent.
    fn counted<F>(answer: F, untaken: Untaken) -> impl Fn(Request<Incoming>) -> CountedAnswer + Send + 'static
    where
        F: Fn(Request<Incoming>) -> CaughtAnswer + Send + 'static,
    {
        move |request| {
            let (answering, untaken) = (answer(request), untaken.clone());
            Box::pin(async move { Ok(answering.await?.map(|body| untaken.begin(body))) })
        }
    }

    type CountedAnswer = futures::future::BoxFuture<'static, Result<Response<InParts>, Infallible>>;
}

/// Answers 500 where answering panics, be it when it begins or later.
fn caught<F, A>(answer: F, open: Open) -> impl Fn(Request<Incoming>) -> CaughtAnswer + Send + 'static
where
    F: Fn(Request<Incoming>) -> A + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    move |request| {
        let one = open.begin();
        let begun = std::panic::catch_unwind(AssertUnwindSafe(|| answer(request)));
        Box::pin(async move {
            let _open = one;
            let answered = match begun {
                Ok(answering) => AssertUnwindSafe(answering).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            Ok(answered.unwrap_or_else(|_| {
                tracing::error!("a handler of an HTTP request panicked");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the handler panicked\n")
            }))
        })
    }
}

type CaughtAnswer = futures::future::BoxFuture<'static, Result<Answer, Infallible>>;
