//! Connections of HTTP/2 that requests share: as few as the limits of streams allow.
//!
//! hyper-util's client keeps one connection of HTTP/2 to a server, and makes requests beyond the server's limit of streams
//! (100 with an API server) wait until a watch ends. Here there are as many connections as are needed, one is made at a
//! time, and all requests that wait for it share its outcome.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use http::{Request, Response, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::{Service, ServiceExt};

use crate::client::http_service::AnswerBody;
use crate::client::http2::Http2;
use crate::client::lanes::{Handle, Lanes};
use crate::{BoxError, Protocol};

/// The connections to one server. Cloning gives another handle; when all are gone, a connection ends with what is on it.
pub(crate) struct SharedConnections<C: Connector> {
    inner: Arc<Inner<C>>,
}

/// What makes connections.
pub(crate) trait Connector:
    Service<Uri, Response = Self::Io, Error: Into<BoxError>, Future: Send + 'static> + Clone + Send + Sync + 'static
{
    /// A connection.
    type Io: Read + Write + Connection + Unpin + Send + 'static;
}

impl<C, I> Connector for C
where
    C: Service<Uri, Response = I, Error: Into<BoxError>, Future: Send + 'static> + Clone + Send + Sync + 'static,
    I: Read + Write + Connection + Unpin + Send + 'static,
{
    type Io = I;
}

struct Inner<C: Connector> {
    connector: C,
    server: Uri,
    protocol: Protocol,
    http2: Http2,
    /// No more than lists are changed under it.
    state: Mutex<State<C::Io>>,
}

/// Guarded by `Inner::state`.
struct State<I> {
    lanes: Lanes<Line>,
    /// A connection that is being made, while anybody waits for it.
    dial: Option<WeakShared<Dial>>,
    /// The server speaks HTTP/1.1, and this connection with it was not used yet.
    http1: bool,
    unused: Option<I>,
}

type Dial = BoxFuture<'static, Result<(), DialError>>;

/// What becomes of a request.
pub(crate) enum Sent {
    /// It was answered.
    Answered(Response<AnswerBody>),
    /// It was not sent: the server speaks HTTP/1.1 only.
    Http1(Request<Body>),
}

/// A connection, to send on.
#[derive(Clone)]
struct Line {
    sender: http2::SendRequest<Body>,
    /// How many streams the server allows, as it said last.
    streams: Arc<AtomicUsize>,
    streams_max: usize,
}

impl Handle for Line {
    fn max(&self) -> usize {
        // A server that allows none would make a connection of each request, and then none of them could be used.
        self.streams.load(Ordering::Relaxed).min(self.streams_max).max(1)
    }
}

impl<C: Connector> SharedConnections<C> {
    pub(crate) fn new(connector: C, server: Uri, protocol: Protocol, http2: Http2) -> Self {
        let state = State { lanes: Lanes::new(), dial: None, http1: false, unused: None };
        Self { inner: Arc::new(Inner { connector, server, protocol, http2, state: Mutex::new(state) }) }
    }

    /// Sends a request on a connection with room for it. One that turns out to be at its end before the server did
    /// anything for the request is left for another.
    ///
    /// Cancel-safe: dropping it ends the request (the others stay, and whoever waits for the same new connection goes
    /// on making it).
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Result<Sent, BoxError> {
        let mut attempts = 1;
        loop {
            let Some((place, mut line)) = self.enter().await? else { return Ok(Sent::Http1(request)) };
            let copy = try_clone(&request);
            let mut error = match line.sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok(Sent::Answered(response.map(|body| Counted { body, _place: place }.boxed_unsync())));
                }
                Err(error) => error,
            };
            match error.take_message().or_else(|| copy.filter(|_| is_unprocessed(error.error()))) {
                Some(unprocessed) if attempts < ATTEMPTS => request = unprocessed,
                _ => return Err(error.into_error().into()),
            }
            self.inner.remove(place.id);
            attempts += 1;
        }
    }

    /// A connection that was made to learn that the server speaks HTTP/1.1.
    pub(crate) fn take_unused(&self) -> Option<C::Io> {
        self.inner.state.lock().unused.take()
    }

    /// A place on a connection, made if need be; `None` where the server speaks HTTP/1.1.
    async fn enter(&self) -> Result<Option<(Place<C>, Line)>, BoxError> {
        loop {
            let dial = {
                let mut state = self.inner.state.lock();
                if state.http1 {
                    return Ok(None);
                }
                if let Some((id, line)) = state.lanes.enter() {
                    return Ok(Some((Place { id, inner: Arc::clone(&self.inner) }, line)));
                }
                match state.dial.as_ref().and_then(WeakShared::upgrade) {
                    Some(dial) => dial,
                    None => {
                        let dial = Arc::clone(&self.inner).dial().boxed().shared();
                        state.dial = dial.downgrade();
                        dial
                    }
                }
            };
            // Whoever comes too late for a place on it makes the next.
            dial.await?;
        }
    }
}

impl<C: Connector> Inner<C> {
    /// Makes a connection, and puts it where requests find it.
    async fn dial(self: Arc<Self>) -> Result<(), DialError> {
        let made = self.connect().await;
        let mut state = self.state.lock();
        state.dial = None;
        match made? {
            Made::Http2(line, driver) => {
                let id = state.lanes.add(line);
                drop(state);
                tokio::spawn(driver.run(Arc::downgrade(&self), id));
            }
            Made::Http1(io) => {
                state.http1 = true;
                state.unused = Some(io);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Made<C::Io>, DialError> {
        let io = self.connector.clone().oneshot(self.server.clone()).await.map_err(DialError::new)?;
        if self.protocol != Protocol::Http2 && !io.connected().is_negotiated_h2() {
            return Ok(Made::Http1(io));
        }
        let Http2 { ping_after, ping_timeout, streams_max, .. } = self.http2;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(ping_after)
            .keep_alive_timeout(ping_timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(self.http2.stream_window_sent())
            .initial_connection_window_size(self.http2.connection_window());
        let (sender, connection) = builder.handshake(io).await.map_err(DialError::new)?;
        let streams = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let line = Line { sender, streams: Arc::clone(&streams), streams_max };
        Ok(Made::Http2(line, Box::new(Driver { connection, streams })))
    }

    /// Lets nothing else enter a connection.
    fn remove(&self, id: u64) {
        let line = self.state.lock().lanes.remove(id);
        drop(line);
    }

    fn leave(&self, id: u64) {
        let line = self.state.lock().lanes.leave(id);
        drop(line);
    }
}

/// The outcome of a dial.
enum Made<I: Read + Write + Unpin + Send + 'static> {
    Http1(I),
    Http2(Line, Box<Driver<I>>),
}

/// What keeps a connection going, as a task.
struct Driver<I: Read + Write + Unpin + Send + 'static> {
    connection: http2::Connection<I, Body, TokioExecutor>,
    streams: Arc<AtomicUsize>,
}

impl<I: Read + Write + Unpin + Send + 'static> Driver<I> {
    /// Until nothing can be sent on it any more. (What is on it may go on.)
    async fn run<C: Connector>(mut self, inner: Weak<Inner<C>>, id: u64) {
        let ended = std::future::poll_fn(|cx| {
            let poll = Pin::new(&mut self.connection).poll(cx);
            self.streams.store(self.connection.current_max_send_streams(), Ordering::Relaxed);
            poll
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "a connection has failed");
        }
        if let Some(inner) = inner.upgrade() {
            inner.remove(id);
        }
    }
}

/// A request's place on a connection, until its answer was read or is left.
struct Place<C: Connector> {
    id: u64,
    inner: Arc<Inner<C>>,
}

impl<C: Connector> Drop for Place<C> {
    fn drop(&mut self) {
        self.inner.leave(self.id);
    }
}

impl<C: Connector> Clone for SharedConnections<C> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// The same request once more, to be sent in its place; `None` where its body is a stream.
fn try_clone(request: &Request<Body>) -> Option<Request<Body>> {
    let mut clone = Request::new(request.body().try_clone()?);
    clone.method_mut().clone_from(request.method());
    clone.uri_mut().clone_from(request.uri());
    clone.headers_mut().clone_from(request.headers());
    clone.extensions_mut().clone_from(request.extensions());
    Some(clone)
}

/// Whether the server says that it did nothing for the request, whatever its method: its stream is beyond the last one
/// of a GOAWAY, or was refused (RFC 9113, 6.8 and 8.7; Go's client sends it anew as well).
fn is_unprocessed(error: &hyper::Error) -> bool {
    let error = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    error.is_some_and(|error| {
        error.is_remote()
            && (error.is_go_away() || error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// So often a request is tried on a connection that turns out to be at its end. (An API server may end any of them, to
/// spread its clients over its replicas.)
const ATTEMPTS: u32 = 4;

/// The body of an answer, which keeps its place until then.
struct Counted<C: Connector> {
    body: Incoming,
    _place: Place<C>,
}

impl<C: Connector> http_body::Body for Counted<C> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a connection could not be made: the same for all that waited for it.
#[derive(Clone, Debug)]
struct DialError(Arc<BoxError>);

impl DialError {
    fn new(error: impl Into<BoxError>) -> Self {
        Self(Arc::new(error.into()))
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection could be made")
    }
}

impl Error for DialError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self.0)
    }
}

#[cfg(test)]
mod tests;
