//! Against servers in memory, so that time can be paused.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{StreamExt, stream};
use http::Method;
use http_body_util::StreamBody;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::rt::TokioIo;
use kube_client::Error::Service as Failed;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::ErrorClass;
use crate::client::http_service::HttpService;
use crate::client::transport::error_of_send;

mod unprocessed;

/// A connection in memory.
struct Pipe {
    io: TokioIo<DuplexStream>,
    is_http2: bool,
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        if self.is_http2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl Read for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// What a server does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Serve,
    /// Neither read nor write, nor close.
    Stall,
    /// End them in good order: GOAWAY, and what is open goes on.
    GoAway,
}

#[derive(Clone)]
struct Server(Arc<ServerInner>);

struct ServerInner {
    streams_max: u32,
    speaks_http2: bool,
    /// What connections meet; those that are open at the time.
    orders: watch::Sender<Order>,
    dials: AtomicUsize,
    open: AtomicUsize,
    refuses: bool,
    /// The watches that are open, in the order in which they came.
    watches: Mutex<VecDeque<mpsc::UnboundedSender<Bytes>>>,
    /// The methods, headers `x-kept` and bodies of the requests that are no watches.
    received: Mutex<Vec<(Method, String, String)>>,
}

impl Server {
    fn new(streams_max: u32) -> Self {
        Self::with(streams_max, true, false)
    }

    fn with(streams_max: u32, speaks_http2: bool, refuses: bool) -> Self {
        let (orders, dials, open) = (watch::Sender::new(Order::Serve), AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(ServerInner {
            streams_max,
            speaks_http2,
            orders,
            dials,
            open,
            refuses,
            watches: Mutex::default(),
            received: Mutex::default(),
        }))
    }

    fn dials(&self) -> usize {
        self.0.dials.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.0.open.load(Ordering::SeqCst)
    }

    /// An event on the n-th watch.
    fn event(&self, n: usize, text: &'static str) {
        self.0.watches.lock()[n].unbounded_send(Bytes::from_static(text.as_bytes())).unwrap();
    }

    async fn serve(self, io: DuplexStream) {
        self.0.open.fetch_add(1, Ordering::SeqCst);
        let mut orders = self.0.orders.subscribe();
        orders.mark_unchanged();
        let inner = Arc::clone(&self.0);
        let service = service_fn(move |request: Request<Incoming>| {
            let (sender, receiver) = mpsc::unbounded();
            let body = match request.uri().path() {
                "/pour" => stream::repeat(Bytes::from_static(&[b'x'; 8192])).boxed(),
                "/get" => stream::empty().boxed(),
                _ => {
                    inner.watches.lock().push_back(sender);
                    receiver.boxed()
                }
            };
            let frames = body.map(|bytes| Ok::<_, io::Error>(Frame::data(bytes)));
            let inner = Arc::clone(&inner);
            async move {
                if request.uri().path() == "/get" {
                    let kept = request.headers().get("x-kept").map(|value| value.to_str().unwrap().to_owned());
                    let (method, body) = (request.method().clone(), request.into_body().collect().await.unwrap());
                    let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
                    inner.received.lock().push((method, kept.unwrap_or_default(), body));
                }
                Ok::<_, io::Error>(Response::new(StreamBody::new(frames)))
            }
        });
        if self.0.speaks_http2 {
            let mut builder = server::Builder::new(TokioExecutor::new());
            let mut connection = std::pin::pin!(
                builder.max_concurrent_streams(self.0.streams_max).serve_connection(TokioIo::new(io), service)
            );
            loop {
                tokio::select! {
                    biased;
                    _ = orders.changed() => {
                        let order = *orders.borrow_and_update();
                        match order {
                            Order::Stall => std::future::pending().await,
                            Order::GoAway => connection.as_mut().graceful_shutdown(),
                            Order::Serve => {}
                        }
                    }
                    _ = &mut connection => break,
                }
            }
        } else {
            let builder = hyper::server::conn::http1::Builder::new();
            let _ = builder.serve_connection(TokioIo::new(io), service).await;
        }
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service<Uri> for Server {
    type Response = Pipe;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Pipe>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let server = self.clone();
        server.0.dials.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if server.0.refuses {
                return Err(ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            let is_http2 = server.0.speaks_http2;
            tokio::spawn(server.serve(far));
            Ok(Pipe { io: TokioIo::new(near), is_http2 })
        }
        .boxed()
    }
}

type Client = HttpService<Server>;

fn client(server: &Server, http2: Http2) -> Client {
    let uri = Uri::from_static("https://server");
    HttpService::http2(server.clone(), server.clone(), uri, Protocol::Negotiated, http2)
}

fn request(path: &str) -> Request<Body> {
    Request::get(format!("https://server{path}")).body(Body::empty()).unwrap()
}

async fn send(client: &Client, path: &str) -> Result<AnswerBody, BoxError> {
    Ok(client.clone().oneshot(request(path)).await?.into_body())
}

async fn watches(client: &Client, count: usize) -> Vec<AnswerBody> {
    let watches = futures::future::join_all((0..count).map(|_| send(client, "/watch"))).await;
    watches.into_iter().collect::<Result<_, _>>().unwrap()
}

async fn next(body: &mut AnswerBody) -> Option<Result<Bytes, BoxError>> {
    Some(body.frame().await?.map(|frame| frame.into_data().unwrap_or_default()))
}

/// Lets everything happen that can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_begin_at_once_make_one_connection() {
    let server = Server::new(100);
    let client = client(&server, Http2::default());
    let mut bodies = watches(&client, 50).await;
    assert_eq!((server.dials(), server.open()), (1, 1));
    server.event(49, "here");
    assert_eq!(next(&mut bodies[49]).await.unwrap().unwrap(), "here");
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_of_streams_get_a_connection_that_ends_when_it_is_not_needed() {
    // the server's limit, the client's, watches, connections
    for (server_max, client_max, count, connections) in [(100, 100, 100, 1), (100, 100, 250, 3), (100, 40, 50, 2)] {
        let server = Server::new(server_max);
        let client = client(&server, Http2::default().streams_max(client_max));
        let bodies = watches(&client, count).await;
        assert_eq!((server.dials(), server.open()), (connections, connections), "{count}");
        drop(bodies);
        settle().await;
        assert_eq!(server.open(), 1, "one stays for the next request");
        send(&client, "/get").await.unwrap();
        assert_eq!(server.dials(), connections);
        drop(client);
        settle().await;
        assert_eq!(server.open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_of_the_server_counts_as_soon_as_it_is_known() {
    let server = Server::new(3);
    let client = client(&server, Http2::default());
    let mut bodies = Vec::new();
    for _ in 0..7 {
        bodies.push(send(&client, "/watch").await.unwrap());
    }
    assert_eq!(server.open(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stalls_ends_in_bounded_time_and_its_watches_with_it() {
    let server = Server::new(100);
    let client = client(&server, Http2::default());
    let bodies = watches(&client, 20).await;
    // It is quiet for long, and alive.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!((server.dials(), server.open()), (1, 1));
    server.0.orders.send_replace(Order::Stall);
    settle().await;
    let begin = Instant::now();
    for mut body in bodies {
        next(&mut body).await.unwrap().unwrap_err();
    }
    assert!(begin.elapsed() <= Duration::from_secs(46), "{:?}", begin.elapsed());
    let _new = watches(&client, 20).await;
    assert_eq!(server.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_meets_a_stalled_connection_fails_in_bounded_time_too() {
    let server = Server::new(100);
    let client = client(&server, Http2::default());
    send(&client, "/get").await.unwrap();
    server.0.orders.send_replace(Order::Stall);
    let begin = Instant::now();
    let error = error_of_send(Failed(send(&client, "/get").await.err().unwrap()));
    assert_eq!(error.class(), ErrorClass::TimedOut, "{error}");
    assert!(begin.elapsed() <= Duration::from_secs(46), "{:?}", begin.elapsed());
    send(&client, "/get").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lists_that_nobody_reads_leave_room_for_a_watch_beside_them() {
    let server = Server::new(100);
    let client = client(&server, Http2::default().stream_window(64 << 10));
    let mut watch = send(&client, "/watch").await.unwrap();
    let mut lists = Vec::new();
    for _ in 0..99 {
        lists.push(send(&client, "/pour").await.unwrap());
        settle().await;
    }
    server.event(0, "here");
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "here");
    assert_eq!(server.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_ends_in_good_order_loses_no_request_and_no_event() {
    let server = Server::new(100);
    let client = client(&server, Http2::default());
    let mut old = watches(&client, 2).await;
    server.0.orders.send_replace(Order::GoAway);
    settle().await;
    for _ in 0..3 {
        send(&client, "/get").await.unwrap();
    }
    assert_eq!(server.dials(), 2);
    server.event(1, "late");
    assert_eq!(next(&mut old[1]).await.unwrap().unwrap(), "late");
    drop(old);
    settle().await;
    assert_eq!(server.open(), 1, "it ends with what was on it");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_made_is_tried_once_for_all_that_wait() {
    let server = Server::with(100, true, true);
    let client = client(&server, Http2::default());
    let errors = futures::future::join_all((0..10).map(|_| send(&client, "/get"))).await;
    assert_eq!(server.dials(), 1);
    for error in errors {
        let error = error_of_send(Failed(error.err().unwrap()));
        assert_eq!(error.class(), ErrorClass::ConnectionRefused, "{error}");
    }
    assert!(send(&client, "/get").await.is_err());
    assert_eq!(server.dials(), 2, "the next request tries anew");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_while_it_waits_harms_no_other() {
    let server = Server::new(100);
    let client = client(&server, Http2::default());
    let mut first = Box::pin(send(&client, "/get"));
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = Box::pin(send(&client, "/get"));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    second.await.unwrap();
    assert_eq!(server.dials(), 1);
    // With nobody left the attempt is given up, and the next one begins anew.
    let server = Server::new(100);
    let client = self::client(&server, Http2::default());
    drop(Box::pin(send(&client, "/get")).now_or_never());
    send(&client, "/get").await.unwrap();
    assert_eq!(server.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_http2_is_asked_over_the_very_connection_that_told() {
    let server = Server::with(100, false, false);
    let client = client(&server, Http2::default());
    let _bodies = watches(&client, 3).await;
    assert_eq!((server.dials(), server.open()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_request_for_an_upgrade_goes_by_http1() {
    let server = Server::new(100);
    let plain = Server::with(100, false, false);
    let uri = Uri::from_static("https://server");
    let client = HttpService::http2(plain.clone(), server.clone(), uri, Protocol::Negotiated, Http2::default());
    let mut request = request("/get");
    request.headers_mut().insert(http::header::UPGRADE, http::HeaderValue::from_static("websocket"));
    client.clone().oneshot(request).await.unwrap();
    assert_eq!((server.dials(), plain.dials()), (0, 1));
}
