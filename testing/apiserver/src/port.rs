//! The server on a port of the loopback interface: HTTP/1.1, or HTTP/2 where a client begins with that; one task a
//! connection, and with HTTP/2 one more a request.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::body::ResponseBody;
use crate::inner::Inner;
use crate::open_count::OpenCount;
use crate::{handler, service};

/// A port, open or closed.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    /// The listener until the server takes it.
    first: Arc<Mutex<Option<TcpListener>>>,
    /// Whether the port shall be open.
    wanted: watch::Sender<bool>,
    /// Whether it is.
    is_open: watch::Sender<bool>,
    connections: Arc<AtomicU64>,
    open: OpenCount,
}

impl Port {
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self {
            address: listener.local_addr()?,
            first: Arc::new(Mutex::new(Some(listener))),
            wanted: watch::Sender::new(true),
            is_open: watch::Sender::new(true),
            connections: Arc::default(),
            open: OpenCount::default(),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are open.
    pub(crate) fn connections_open(&self) -> usize {
        self.open.get()
    }

    pub(crate) async fn close(&self) {
        self.set(false).await;
    }

    pub(crate) async fn open(&self) {
        self.set(true).await;
    }

    async fn set(&self, open: bool) {
        self.wanted.send_replace(open);
        // The sender is in `self`, so this does not fail.
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open == open).await;
    }

    /// Accepts connections until the server stops.
    pub(crate) async fn serve(self, inner: Arc<Inner>) {
        let mut wanted = self.wanted.subscribe();
        while !inner.stopped.is_cancelled() {
            if *wanted.borrow_and_update() {
                match self.listener().await {
                    Ok(listener) => {
                        self.is_open.send_replace(true);
                        self.accept(listener, &inner, &mut wanted).await;
                    }
                    Err(error) => {
                        tracing::error!(%error, address = %self.address, "cannot listen, will try again");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                        continue;
                    }
                }
            }
            self.is_open.send_replace(false);
            tokio::select! {
                () = inner.stopped.cancelled() => {}
                () = until(&mut wanted, true) => {}
            }
        }
        self.is_open.send_replace(false);
    }

    async fn listener(&self) -> io::Result<TcpListener> {
        let first = self.first.lock().take();
        match first {
            Some(listener) => Ok(listener),
            None => TcpListener::bind(self.address).await,
        }
    }

    /// Accepts connections until the port shall be closed; then the listener and all connections are gone.
    async fn accept(&self, listener: TcpListener, inner: &Arc<Inner>, wanted: &mut watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = inner.stopped.cancelled() => break,
                () = until(wanted, false) => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let number = self.connections.fetch_add(1, Ordering::Relaxed);
                        let open = self.open.open();
                        let served = serve_connection(stream, inner.clone(), number);
                        connections.spawn(async move {
                            served.await;
                            drop(open);
                        });
                    }
                    // Out of file descriptors, most likely: others must be closed first.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept");
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    }
                },
            }
        }
        drop(listener);
        connections.shutdown().await;
    }
}

async fn until(flag: &mut watch::Receiver<bool>, value: bool) {
    // Where the sender is gone, nobody will ever open the port.
    if flag.wait_for(|flag| *flag == value).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn serve_connection(stream: TcpStream, inner: Arc<Inner>, number: u64) {
    let _ = stream.set_nodelay(true);
    let reset = CancellationToken::new();
    // A second handle to the socket, to say at its end that it shall be reset instead of closed.
    let Ok((stream, socket)) = duplicate(stream) else { return };
    let ended = reset.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (inner, reset) = (inner.clone(), reset.clone());
        async move { answer(&inner, request, number, reset).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    {
        let mut connection = pin!(connection);
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, number, "connection");
                }
                return;
            }
        }
        let _ = socket2::SockRef::from(&socket).set_linger(Some(std::time::Duration::ZERO));
    }
    // `connection` is gone, so this is the last handle: closing it sends the reset.
    drop(socket);
}

/// How many requests a connection of HTTP/2 takes at once, as with the real server.
const STREAMS_MAX: u32 = 100;

fn duplicate(stream: TcpStream) -> io::Result<(TcpStream, std::net::TcpStream)> {
    let stream = stream.into_std()?;
    let second = stream.try_clone()?;
    Ok((TcpStream::from_std(stream)?, second))
}

async fn answer(
    inner: &Arc<Inner>,
    request: Request<Incoming>,
    number: u64,
    reset: CancellationToken,
) -> Result<Response<ResetBody>, Infallible> {
    let (parts, body) = request.into_parts();
    match handler::answer(inner, parts, Some(number), move || service::read(body)).await {
        Ok(response) => Ok(response.map(|body| ResetBody { body, reset })),
        Err(error) => {
            tracing::debug!(%error, number, "reset");
            reset.cancel();
            // The connection is dropped together with this.
            std::future::pending().await
        }
    }
}

/// A body whose failure resets the connection.
struct ResetBody {
    body: ResponseBody,
    reset: CancellationToken,
}

impl Body for ResetBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.reset.is_cancelled() {
            // The body may be asked again before the connection is dropped: it must not seem complete.
            return Poll::Pending;
        }
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Err(error)) => {
                tracing::debug!(%error, "reset");
                self.reset.cancel();
                Poll::Pending
            }
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
