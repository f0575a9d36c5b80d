//! TLS: certificates and authorities that change while an informer runs, and handshakes that go wrong. B28.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use kubewire_conformance::wire::{Authority, Leaf, Server, Socket, Tls};
use kubewire_listwatch::{
    ErrorClass, ListOptions, ListWatch, ListerWatcher, RequestError, Timeouts, client_from_config,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::forms::Served;
use crate::support::{RotatedFile, Run, quick, until};

const HOST: &str = "127.0.0.1";

fn https(socket: &Socket) -> Config {
    let mut config = Config::new(format!("https://{}", socket.address()).parse().unwrap());
    config.root_cert = Some(Vec::new());
    config
}

fn trusts(socket: &Socket, authority: &Authority) -> Config {
    let mut config = https(socket);
    config.root_cert = Some(vec![authority.der()]);
    config
}

fn trusts_file(socket: &Socket, file: &RotatedFile) -> Config {
    let mut config = https(socket);
    config.root_cert_file = Some(file.path());
    config
}

fn informer(socket: &Socket, config: Config) -> Run<Arc<Pod>> {
    Run::start_list_watch(socket.server(), Arc::<Pod>::pods(client_from_config(config).unwrap()), quick(), usize::MAX)
}

/// The server ends all connections, as one does that is started again.
async fn restart(socket: &Socket) {
    socket.close().await;
    socket.reopen().await;
}

/// A watch of a server whose next connections are as `change` makes them goes on where it was.
async fn goes_on(run: &Run<Arc<Pod>>, socket: &Socket) {
    let server = socket.server();
    restart(socket).await;
    run.requests(server.log().len() + 1).await;
    server.happens("+y@12");
    run.converges_after(&["x@11", "y@12"]).await;
    let lists = server.asked().iter().filter(|asked| asked.starts_with("LIST")).count();
    assert_eq!(lists, 1, "it goes on from its version: {:?}", server.asked());
}

fn script() -> Server {
    Server::new("LIST → [] rv=10\n WATCH → +x@11 …")
}

#[tokio::test]
async fn a_server_certificate_that_is_renewed_under_its_ca_is_taken_without_an_error_of_tls() {
    let authority = Authority::new("ca");
    let tls = Tls::new(&authority.issue(HOST));
    let socket = Socket::listen_tls(script(), &tls).await;
    let run = informer(&socket, trusts(&socket, &authority));
    run.converges_after(&["x@11"]).await;
    tls.shows(&authority.issue(HOST));
    goes_on(&run, &socket).await;
    assert_eq!(socket.handshakes_failed(), 0);
}

/// The CA file was changed before the server's certificate: one handshake fails, then the file is read, without the
/// minute that kube-client waits; no list. The same where the file holds both authorities.
#[tokio::test]
async fn a_ca_that_was_rotated_on_disk_is_used_with_the_next_request() {
    for both in [false, true] {
        let (old, new) = (Authority::new("old"), Authority::new("new"));
        let file = RotatedFile::new(&format!("ca-{both}"), &old.pem());
        let tls = Tls::new(&old.issue(HOST));
        let socket = Socket::listen_tls(script(), &tls).await;
        let run = informer(&socket, trusts_file(&socket, &file));
        run.converges_after(&["x@11"]).await;
        file.write(&if both { old.pem() + &new.pem() } else { new.pem() });
        tls.shows(&new.issue(HOST));
        goes_on(&run, &socket).await;
        assert!(socket.handshakes_failed() <= 1, "{}", socket.handshakes_failed());
    }
}

/// Without a file there is nothing to read: the error says what to do, what is known stays readable, and a client
/// that is made anew works.
#[tokio::test]
async fn a_ca_that_only_the_server_changed_is_told_with_what_to_do() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let tls = Tls::new(&old.issue(HOST));
    let socket = Socket::listen_tls(script(), &tls).await;
    let run = informer(&socket, trusts(&socket, &old));
    run.converges_after(&["x@11"]).await;
    tls.shows(&new.issue(HOST));
    restart(&socket).await;
    until("it is told", || run.errors().iter().any(|error| error.contains("root_cert_file"))).await;
    assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::Transport);
    assert_eq!(run.store(), ["x@11"]);
    let rebuilt = informer(&socket, trusts(&socket, &new));
    rebuilt.converges_after(&["x@11"]).await;
}

/// The client's certificate was renewed on disk, and the server takes only the new one.
#[tokio::test]
async fn a_client_certificate_that_was_rotated_on_disk_is_used_with_the_next_request() {
    let (authority, old, new) = (Authority::new("ca"), Authority::new("old clients"), Authority::new("new clients"));
    let Leaf { pem, key_pem, .. } = old.issue("client");
    let (certificate, key) = (RotatedFile::new("client-cert", &pem), RotatedFile::new("client-key", &key_pem));
    let server_leaf = authority.issue(HOST);
    let tls = Tls::new(&server_leaf);
    tls.shows_and_demands(&server_leaf, &old);
    let socket = Socket::listen_tls(script(), &tls).await;
    let mut config = trusts(&socket, &authority);
    config.auth_info.client_certificate = certificate.path_text();
    config.auth_info.client_key = key.path_text();
    let run = informer(&socket, config);
    run.converges_after(&["x@11"]).await;
    let renewed = new.issue("client");
    certificate.write(&renewed.pem);
    key.write(&renewed.key_pem);
    tls.shows_and_demands(&server_leaf, &new);
    goes_on(&run, &socket).await;
    assert!(socket.handshakes_failed() <= 1, "{}", socket.handshakes_failed());
}

/// A server that checks certificates request by request says 401 to an old one: the connection is made anew too.
#[tokio::test]
async fn a_401_makes_a_changed_client_certificate_be_used() {
    let (authority, clients) = (Authority::new("ca"), Authority::new("clients"));
    let first = clients.issue("client");
    let (certificate, key) = (RotatedFile::new("cert401", &first.pem), RotatedFile::new("key401", &first.key_pem));
    let server_leaf = authority.issue(HOST);
    let tls = Tls::new(&server_leaf);
    tls.shows_and_demands(&server_leaf, &clients);
    let server = Server::new("LIST → [] rv=10\n WATCH → +x@11 ■\n WATCH → 401\n WATCH → +y@12 …");
    let socket = Socket::listen_tls(server, &tls).await;
    let mut config = trusts(&socket, &authority);
    config.auth_info.client_certificate = certificate.path_text();
    config.auth_info.client_key = key.path_text();
    let second = clients.issue("client");
    let client = client_from_config(config).unwrap();
    certificate.write(&second.pem);
    key.write(&second.key_pem);
    let run = Run::start_list_watch(socket.server(), Arc::<Pod>::pods(client), quick(), usize::MAX);
    run.converges_after(&["x@11", "y@12"]).await;
    assert_eq!(socket.server().asked(), ["LIST(rv=0,limit=500)", "WATCH(10)", "WATCH(11)", "WATCH(11)"]);
    assert_eq!(socket.accepted(), 2, "the second connection is one with the new certificate");
    assert!(run.errors().is_empty(), "{:?}", run.errors());
}

fn list(client: Client) -> impl Future<Output = RequestError> {
    let timeouts = Timeouts::default().headers(Duration::from_millis(700));
    let pods = ListWatch::<Arc<Pod>>::all(client).timeouts(timeouts);
    async move { pods.list(&ListOptions::default(), &mut |_| {}).await.expect_err("no list comes of it") }
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_told_with_what_to_do() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    // the server's certificate, whether it demands one, what the error says
    let table = [
        (other.issue(HOST), false, "not of the CA"),
        (authority.issue_expired(HOST), false, "expired"),
        (authority.issue("other.example"), false, "another name"),
        (authority.issue(HOST), true, "does not accept the client's certificate"),
    ];
    for (leaf, demands, says) in table {
        let tls = Tls::new(&leaf);
        if demands {
            tls.shows_and_demands(&leaf, &other);
        }
        let socket = Socket::listen_tls(script(), &tls).await;
        let error = list(client_from_config(trusts(&socket, &authority)).unwrap()).await;
        assert_eq!(error.class(), ErrorClass::Transport, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(socket.server().log().is_empty(), "no request goes to a server that is not trusted");
    }
}

/// A server that says these bytes, whatever it hears, and then closes; or nothing more (`hold`).
async fn says(bytes: &'static [u8], hold: bool) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(bytes).await;
            if hold {
                while matches!(stream.read(&mut [0; 4096]).await, Ok(len) if len > 0) {}
            }
        }
    });
    (address, task)
}

#[tokio::test]
async fn the_wrong_protocol_and_a_handshake_that_breaks_off_or_stands_still_are_errors_in_time() {
    let go_of_plain = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    // the address, what the server says, whether it then stands still, the class and what the error says
    let table: [(&str, &[u8], bool, ErrorClass, &str); 8] = [
        ("http", go_of_plain, false, ErrorClass::Invalid, "HTTP request to an HTTPS server"),
        // A fatal alert, as servers send it that do not look at what came.
        ("http", b"\x15\x03\x01\x00\x02\x02\x46", false, ErrorClass::Transport, "use an https:// address"),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", false, ErrorClass::Transport, "use an http:// address"),
        ("https", b"", false, ErrorClass::Transport, ""),
        ("https", b"\x16\x03\x03", false, ErrorClass::Transport, ""),
        ("https", b"", true, ErrorClass::TimedOut, "no answer came"),
        ("https", b"\x16\x03\x03\x40\x00\x02", true, ErrorClass::TimedOut, "no answer came"),
        ("https", b"\x16\x03\x03\xff\xff\x02", true, ErrorClass::Transport, ""),
    ];
    for (scheme, bytes, hold, class, text) in table {
        let (address, task) = says(bytes, hold).await;
        let mut config = Config::new(format!("{scheme}://{address}").parse().unwrap());
        config.root_cert = Some(Vec::new());
        let error = list(client_from_config(config).unwrap()).await;
        assert_eq!(error.class(), class, "{scheme} {bytes:?}: {error}");
        assert!(error.to_string().contains(text), "{scheme} {bytes:?}: {error}");
        task.abort();
    }
}

/// A handshake that stands still is left, told, and tried again; nothing is left of it.
#[tokio::test]
async fn an_informer_lives_through_handshakes_that_stand_still() {
    let (address, task) = says(b"", true).await;
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.root_cert = Some(Vec::new());
    let timeouts = Timeouts::default().headers(Duration::from_millis(50));
    let pods = Arc::<Pod>::pods(client_from_config(config).unwrap()).timeouts(timeouts);
    let run = Run::start_list_watch(&script(), pods, quick(), usize::MAX);
    until("three tries", || run.errors().len() >= 3).await;
    assert!(run.errors().iter().all(|error| error.contains("no answer came")), "{:?}", run.errors());
    task.abort();
    run.ends().await;
}

/// The faults of bodies are the same over TLS: no class changes because a layer lies between.
#[tokio::test]
async fn bodies_that_break_off_over_tls_lose_nothing() {
    let authority = Authority::new("ca");
    let half = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na";
    for (fault, width) in [("CUT", 0), ("RST", 0), ("$half CUT", 0), ("$half RST", 7), ("■", 1), ("CUT", 3)] {
        let script = format!("LIST → [] rv=10\n WATCH → +x@11 ~x@12 {fault}\n WATCH → +y@13 …");
        let server = Server::new(&script).bytes("half", half);
        let socket = Socket::listen_tls(server, &Tls::new(&authority.issue(HOST))).await.writes_of(width);
        let run = informer(&socket, trusts(&socket, &authority));
        run.converges_after(&["x@12", "y@13"]).await;
        assert_eq!(socket.server().asked(), ["LIST(rv=0,limit=500)", "WATCH(10)", "WATCH(12)"], "{fault}");
        run.ends().await;
    }
}

/// A CA file that stays as it is: no request is repeated for it.
#[tokio::test]
async fn certificates_that_never_fit_make_no_hot_loop() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    let file = RotatedFile::new("ca-never", &authority.pem());
    let socket = Socket::listen_tls(script(), &Tls::new(&other.issue(HOST))).await;
    let run = informer(&socket, trusts_file(&socket, &file));
    until("ten tries", || run.errors().len() >= 10).await;
    // One connection a try: the file is as it was, so none is repeated.
    let (tries, accepted) = (run.errors().len() as u64, socket.accepted());
    assert!(accepted <= tries + 2, "{accepted} connections for {tries} tries");
    run.ends().await;
}
