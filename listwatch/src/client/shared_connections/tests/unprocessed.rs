//! Requests that the server has not begun with, and says so: by frames that are written by hand, for a server that is
//! made of a library has begun with what it lets see.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const CONNECTION_PREFACE_LEN: usize = 24;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// What a server says to a request, in place of an answer.
#[derive(Clone, Copy, Debug)]
enum No {
    /// The connection ends, and this stream is not among those that were begun with.
    GoAway(u32),
    /// The stream ends.
    Reset(u32),
}

/// A server that says no on its first connections, and whose later ones serve.
#[derive(Clone)]
struct Reluctant {
    server: Server,
    no: No,
    first: usize,
    /// Requests that were said no to.
    refused: Arc<AtomicUsize>,
}

impl Reluctant {
    fn new(no: No, first: usize) -> Self {
        Self { server: Server::new(100), no, first, refused: Arc::default() }
    }
}

impl Service<Uri> for Reluctant {
    type Response = Pipe;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Pipe>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if self.server.dials() >= self.first {
            return self.server.call(uri);
        }
        self.server.0.dials.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(64 << 10);
        tokio::spawn(says_no(far, self.no, Arc::clone(&self.refused)).map(drop));
        async { Ok(Pipe { io: TokioIo::new(near), is_http2: true }) }.boxed()
    }
}

fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
}

async fn says_no(mut io: DuplexStream, no: No, refused: Arc<AtomicUsize>) -> io::Result<()> {
    io.read_exact(&mut [0; CONNECTION_PREFACE_LEN]).await?;
    io.write_all(&frame(SETTINGS, 0, &[])).await?;
    loop {
        let [length @ .., kind, _flags, a, b, c, d] = {
            let mut head = [0; 9];
            io.read_exact(&mut head).await?;
            head
        };
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        io.read_exact(&mut vec![0; length]).await?;
        if kind == HEADERS {
            refused.fetch_add(1, Ordering::SeqCst);
            let stream = u32::from_be_bytes([a, b, c, d]);
            io.write_all(&match no {
                No::GoAway(reason) => frame(GOAWAY, 0, &[0_u32.to_be_bytes(), reason.to_be_bytes()].concat()),
                No::Reset(reason) => frame(RST_STREAM, stream, &reason.to_be_bytes()),
            })
            .await?;
        }
    }
}

/// Sends a request; how it ended, and how many connections were made and how many requests refused for it.
async fn outcome(reluctant: &Reluctant, request: Request<Body>) -> (bool, usize, usize) {
    let uri = Uri::from_static("https://server");
    let (connector, protocol) = (reluctant.clone(), Protocol::Negotiated);
    let client = HttpService::http2(connector.clone(), connector, uri, protocol, Http2::default());
    let answer = client.clone().oneshot(request).await;
    (answer.is_ok(), reluctant.server.dials(), reluctant.refused.load(Ordering::SeqCst))
}

fn request_with(method: Method, body: Body) -> Request<Body> {
    Request::builder().method(method).uri("https://server/get").header("x-kept", "yes").body(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_not_begun_with_is_sent_anew() {
    for no in [No::GoAway(NO_ERROR), No::GoAway(ENHANCE_YOUR_CALM), No::Reset(REFUSED_STREAM)] {
        for (method, body) in
            [(Method::GET, ""), (Method::DELETE, ""), (Method::POST, "an object"), (Method::PATCH, "a patch")]
        {
            let reluctant = Reluctant::new(no, 1);
            let request = request_with(method.clone(), Body::from(Bytes::from(body)));
            assert_eq!(outcome(&reluctant, request).await, (true, 2, 1), "{no:?} {method}");
            assert_eq!(*reluctant.server.0.received.lock(), [(method, "yes".to_owned(), body.to_owned())], "{no:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_may_have_begun_with_is_not() {
    for no in [No::Reset(INTERNAL_ERROR), No::Reset(CANCEL), No::Reset(ENHANCE_YOUR_CALM)] {
        for method in [Method::GET, Method::POST] {
            let reluctant = Reluctant::new(no, 1);
            let request = request_with(method.clone(), Body::empty());
            assert_eq!(outcome(&reluctant, request).await, (false, 1, 1), "{no:?} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_says_no_is_left_in_peace() {
    for no in [No::GoAway(NO_ERROR), No::Reset(REFUSED_STREAM)] {
        let reluctant = Reluctant::new(no, usize::MAX);
        let tries = usize::try_from(ATTEMPTS).unwrap();
        assert_eq!(outcome(&reluctant, request("/get")).await, (false, tries, tries), "{no:?}");
    }
}
