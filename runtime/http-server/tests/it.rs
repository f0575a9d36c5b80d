//! Over sockets of the loopback interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewire_certificate::ReloadingCertificate;
use kubewire_http_server::{Answer, HttpServer, text};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// A server that runs.
struct Running {
    server: HttpServer,
    address: SocketAddr,
    stop: CancellationToken,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn running<A>(server: HttpServer, answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static) -> Running
where
    A: Future<Output = Answer> + Send + 'static,
{
    let (stop, cancel) = (CancellationToken::new(), CancellationToken::new());
    assert!(!server.is_serving());
    let task = tokio::spawn({
        let (server, stop, cancel) = (server.clone(), stop.clone(), cancel.clone());
        async move { server.run(answer, stop, cancel).await }
    });
    server.started().await;
    let address = server.local_address().unwrap();
    Running { server, address, stop, cancel, task }
}

async fn hello(_: Request<Incoming>) -> Answer {
    text(StatusCode::OK, "hello\n")
}

/// The first line of the answer to a GET over a connection of its own; empty where there is none.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    first_line(stream).await
}

async fn first_line(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

/// Whether the server closes, within virtual time without end.
async fn is_closed(stream: &mut (impl AsyncReadExt + Unpin)) -> bool {
    tokio::time::pause();
    let closed = !matches!(stream.read(&mut [0; 64]).await, Ok(1..));
    tokio::time::resume();
    closed
}

/// An answer that waits: whether requests have come, and what lets them go.
#[derive(Clone, Default)]
struct Gate {
    waiting: Arc<AtomicUsize>,
    open: CancellationToken,
}

impl Gate {
    async fn answer(self) -> Answer {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.open.cancelled().await;
        text(StatusCode::OK, "late\n")
    }

    async fn holds(&self, count: usize) {
        while self.waiting.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }
}

async fn gated(gate: &Gate) -> Running {
    let gate = gate.clone();
    running(HttpServer::new("gate", local()), move |_| gate.clone().answer()).await
}

#[tokio::test]
async fn a_stop_closes_the_port_at_once_and_answers_what_is_open() {
    let gate = Gate::default();
    let it = gated(&gate).await;
    assert!(it.server.is_serving());
    let open = tokio::spawn(get(it.address, "/"));
    let mut idle = TcpStream::connect(it.address).await.unwrap();
    gate.holds(1).await;
    it.stop.cancel();
    while TcpStream::connect(it.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!it.server.is_serving() && !it.task.is_finished());
    assert!(!matches!(idle.read(&mut [0; 1]).await, Ok(1..)), "an idle one is closed");
    gate.open.cancel();
    assert_eq!(open.await.unwrap(), "HTTP/1.1 200 OK");
    it.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_open_is_given_up_a_minute_after_the_stop_or_by_the_cancellation_or_a_drop() {
    for how in ["minute", "cancel", "drop"] {
        let gate = Gate::default();
        let it = gated(&gate).await;
        let open = tokio::spawn(get(it.address, "/"));
        gate.holds(1).await;
        match how {
            "minute" => {
                tokio::time::pause();
                let before = tokio::time::Instant::now();
                it.stop.cancel();
                it.task.await.unwrap().unwrap();
                assert_eq!(before.elapsed().as_secs(), 60);
                tokio::time::resume();
            }
            "cancel" => {
                it.stop.cancel();
                it.cancel.cancel();
                it.task.await.unwrap().unwrap();
            }
            _ => {
                it.task.abort();
                assert!(it.task.await.is_err());
                assert!(!it.server.is_serving());
            }
        }
        assert_eq!(open.await.unwrap(), "", "{how}");
    }
}

/// In virtual time, from now on.
async fn stops_within_a_second(it: Running) {
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    it.stop.cancel();
    it.task.await.unwrap().unwrap();
    assert!(before.elapsed().as_secs() <= 1, "{:?}", before.elapsed());
}

/// With controller-runtime's 32 s for a head it would outlast a grace period of 30 s.
#[tokio::test]
async fn a_client_that_never_ends_its_request_holds_up_a_stop_for_a_second() {
    let it = running(HttpServer::new("hello", local()), hello).await;
    let mut half = TcpStream::connect(it.address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nhost: lo").await.unwrap();
    // It was accepted before this one.
    assert_eq!(get(it.address, "/").await, "HTTP/1.1 200 OK");
    stops_within_a_second(it).await;
}

/// So does one that is half-way through its handshake, or says nothing at all.
#[tokio::test]
async fn a_client_that_never_shakes_hands_does_not_hold_up_a_stop() {
    let trust = Trust::new();
    let it = running(HttpServer::new("tls", local()).tls(trust.certificate.clone()), hello).await;
    let _silent = TcpStream::connect(it.address).await.unwrap();
    // It was accepted before this one.
    drop(trust.connect(it.address, &[]).await);
    stops_within_a_second(it).await;
}

/// Else 256 of them, such as scrapes of a Prometheus that was cut off, would take all places for ever.
#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_let_go_after_a_minute() {
    const LEN: usize = 64 << 20;
    let body = bytes::Bytes::from(vec![b'x'; LEN]);
    let trust = Trust::new();
    for tls in [false, true] {
        let body = body.clone();
        let server = HttpServer::new("large", local());
        let server = if tls { server.tls(trust.certificate.clone()) } else { server };
        let it = running(server, move |_| std::future::ready(text(StatusCode::OK, body.clone()))).await;
        for (pause, is_cut) in [(50, false), (70, true)] {
            let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            let count = if tls {
                let stream = trust.connect(it.address, &[]).await;
                read_after(stream, request, pause).await
            } else {
                read_after(TcpStream::connect(it.address).await.unwrap(), request, pause).await
            };
            assert_eq!(count < LEN, is_cut, "{count} bytes after {pause} s, TLS: {tls}");
        }
    }
}

/// Sends it, waits for so many seconds of virtual time, and reads to the end.
async fn read_after(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, request: &[u8], pause: u64) -> usize {
    stream.write_all(request).await.unwrap();
    stream.flush().await.unwrap();
    // It is being written.
    let mut first = [0; 1];
    stream.read_exact(&mut first).await.unwrap();
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(pause)).await;
    tokio::time::resume();
    let mut answer = first.to_vec();
    let _ = stream.read_to_end(&mut answer).await;
    answer.len()
}

#[tokio::test]
async fn with_http_2_too_a_dropped_server_drops_what_is_being_answered() {
    let trust = Trust::new();
    let (answering, dropped) = (CancellationToken::new(), CancellationToken::new());
    let (begun, ended) = (answering.clone(), dropped.clone());
    let it = running(HttpServer::new("tls", local()).tls(trust.certificate.clone()), move |_| {
        let (begun, guard) = (begun.clone(), ended.clone().drop_guard());
        async move {
            let _guard = guard;
            begun.cancel();
            std::future::pending().await
        }
    })
    .await;
    let stream = TokioIo::new(trust.connect(it.address, &["h2"]).await);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let asked = tokio::spawn(async move { sender.send_request(request).await.is_ok() });
    answering.cancelled().await;
    it.task.abort();
    tokio::time::timeout(std::time::Duration::from_secs(30), dropped.cancelled()).await.expect("it is dropped");
    assert!(!asked.await.unwrap());
    let _ = connection.await;
}

#[tokio::test]
async fn a_panic_when_answering_begins_or_later_is_answered_by_500() {
    let it = running(HttpServer::new("panics", local()), |request: Request<Incoming>| {
        let path = request.uri().path().to_owned();
        assert_ne!(path, "/now");
        async move {
            assert_ne!(path, "/later");
            text(StatusCode::OK, "well\n")
        }
    })
    .await;
    for (path, status) in [("/now", "500"), ("/later", "500"), ("/", "200")] {
        assert_eq!(get(it.address, path).await.split(' ').nth(1), Some(status), "{path}");
    }
}

#[tokio::test]
async fn the_257th_connection_waits_for_a_place() {
    let gate = Gate::default();
    let it = gated(&gate).await;
    let open: Vec<_> = (0..256).map(|_| tokio::spawn(get(it.address, "/"))).collect();
    gate.holds(256).await;
    let last = tokio::spawn(get(it.address, "/"));
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gate.waiting.load(Ordering::SeqCst), 256);
    gate.open.cancel();
    for answer in open.into_iter().chain([last]) {
        assert_eq!(answer.await.unwrap(), "HTTP/1.1 200 OK");
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_or_does_not_come_ends_the_connection() {
    let it = running(HttpServer::new("hello", local()), hello).await;
    let mut silent = TcpStream::connect(it.address).await.unwrap();
    assert!(is_closed(&mut silent).await);
    let mut half = TcpStream::connect(it.address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nhost: lo").await.unwrap();
    assert!(is_closed(&mut half).await);
    let mut long = TcpStream::connect(it.address).await.unwrap();
    let _ = long.write_all(format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(2 << 20)).as_bytes()).await;
    assert!(!first_line(long).await.contains("200"));
    assert_eq!(get(it.address, "/").await, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let it = running(HttpServer::new("first", local()), hello).await;
    let second = HttpServer::new("second", it.address);
    let error = second.run(hello, CancellationToken::new(), CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&format!("cannot listen on {} for second", it.address)), "{error}");
    assert!(!second.is_serving());
}

/// A certificate for `localhost`, and a client that trusts it.
struct Trust {
    certificate: ReloadingCertificate,
    roots: rustls::RootCertStore,
    _folder: tempfile::TempDir,
}

impl Trust {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        Self { certificate: ReloadingCertificate::from_files(certificate, key).unwrap(), roots, _folder: folder }
    }

    async fn connect(&self, address: SocketAddr, protocols: &[&str]) -> TlsStream<TcpStream> {
        let mut config = rustls::ClientConfig::builder_with_provider(self.certificate.provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(address).await.unwrap();
        connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }
}

#[tokio::test]
async fn with_tls_the_handshake_chooses_the_version_of_http() {
    let trust = Trust::new();
    let it =
        running(HttpServer::new("tls", local()).tls(trust.certificate.clone()), |request: Request<_>| async move {
            let version = if request.version() == Version::HTTP_2 { "2" } else { "1.1" };
            text(StatusCode::OK, version)
        })
        .await;
    let request = || Request::get("https://localhost/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let read = async |answer: http::Response<Incoming>| {
        http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes()
    };

    let stream = TokioIo::new(trust.connect(it.address, &["h2", "http/1.1"]).await);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    assert_eq!(read(sender.send_request(request()).await.unwrap()).await, "2");

    let stream = TokioIo::new(trust.connect(it.address, &[]).await);
    let (mut other, rest) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(rest);
    assert_eq!(read(other.send_request(request()).await.unwrap()).await, "1.1");

    it.stop.cancel();
    it.task.await.unwrap().unwrap();
    connection.await.unwrap().unwrap();
}

/// With HTTP/2 hyper waits for the first bytes without end.
#[tokio::test]
async fn who_shakes_hands_and_says_nothing_or_does_not_shake_hands_is_let_go() {
    let trust = Trust::new();
    let it = running(HttpServer::new("tls", local()).tls(trust.certificate.clone()), hello).await;
    let mut silent = TcpStream::connect(it.address).await.unwrap();
    assert!(is_closed(&mut silent).await, "no handshake");
    for protocols in [&["h2"], &["http/1.1"]] {
        let mut stream = trust.connect(it.address, protocols).await;
        assert!(is_closed(&mut stream).await, "{protocols:?}");
    }
}

#[tokio::test]
async fn with_http_2_a_client_that_does_not_take_its_answer_is_let_go_after_a_minute() {
    let trust = Trust::new();
    // The first is with hyper's queue as a whole, of the second most waits in its body.
    for len in [2 * WINDOW as usize, 1 << 20] {
        let body = bytes::Bytes::from(vec![b'x'; len]);
        let server = HttpServer::new("large", local()).tls(trust.certificate.clone());
        let it = running(server, move |_| std::future::ready(text(StatusCode::OK, body.clone()))).await;
        for (pause, is_cut) in [(0, false), (50, false), (70, true)] {
            let count = take_after(&trust, it.address, pause).await;
            assert_eq!(count < len, is_cut, "{count} bytes of {len} after {pause} s");
        }
    }
}

/// How much of an answer may come before the client takes any.
const WINDOW: u32 = 1024;

/// Asks over HTTP/2, takes nothing of the answer for so many seconds of virtual time, and then all of it. How many bytes
/// there were.
async fn take_after(trust: &Trust, address: SocketAddr, pause: u64) -> usize {
    let stream = trust.connect(address, &["h2"]).await;
    let builder = h2::client::Builder::new().initial_window_size(WINDOW).to_owned();
    let (mut send, mut connection) = builder.handshake::<_, bytes::Bytes>(stream).await.unwrap();
    let mut pings = connection.ping_pong().unwrap();
    // It goes on answering pings.
    let connection = tokio::spawn(connection);
    let request = Request::builder().uri("https://localhost/").body(()).unwrap();
    let (answer, _) = send.send_request(request, true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    for _ in 0..pause / 5 {
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        tokio::time::resume();
        // All that was sent before has come, also the server's own pings.
        let _ = pings.ping(h2::Ping::opaque()).await;
    }
    let mut count = 0;
    while let Some(Ok(part)) = body.data().await {
        count += part.len();
        let _ = body.flow_control().release_capacity(part.len());
    }
    drop((body, send));
    let _ = connection.await.unwrap();
    count
}
