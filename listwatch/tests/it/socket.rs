//! Against a raw socket that follows a script: what no mock service can show.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use kubewire_listwatch::{
    ClientOptions, ErrorClass, ListWatch, ListerWatcher, RequestError, WatchEvent, client_from_config,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::mock::{list, watch_from};

/// What a server does after it has read the head of a request.
#[derive(Clone)]
enum Step {
    Write(String),
    /// Ends the connection in order.
    Close,
    /// Ends it with a reset.
    Reset,
    /// Waits until the client closes it.
    Wait,
}
use Step::{Close, Reset, Wait, Write};

/// A server of one connection; then nobody listens any more.
struct Served {
    /// Gives the head of the request as soon as it was read.
    asked: oneshot::Receiver<String>,
    /// Is done when the script is.
    done: JoinHandle<()>,
}

async fn serve(script: Vec<Step>) -> (SocketAddr, Served) {
    let (head, asked) = oneshot::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let done = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        drop(listener);
        let _ = head.send(read_head(&mut socket).await);
        for step in script {
            match step {
                Write(text) => socket.write_all(text.as_bytes()).await.unwrap(),
                Close => socket.shutdown().await.unwrap(),
                Reset => socket.set_zero_linger().unwrap(),
                Wait => while !matches!(socket.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {},
            }
        }
    });
    (address, Served { asked, done })
}

async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = String::new();
    let mut byte = [0];
    while !head.ends_with("\r\n\r\n") && socket.read(&mut byte).await.unwrap() == 1 {
        head.push(char::from(byte[0]));
    }
    head
}

fn config(address: SocketAddr) -> Config {
    Config::new(format!("http://{address}").parse().unwrap())
}

fn pods(address: SocketAddr) -> ListWatch<Arc<Pod>> {
    ListWatch::all(client_from_config(config(address)).unwrap())
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
const POD: &str = r#"{"metadata":{"name":"a"}}"#;

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn event() -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{POD}}}\n")
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_a_class_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for client in [client_from_config(config(address)).unwrap(), Client::try_from(config(address)).unwrap()] {
        let pods = ListWatch::<Arc<Pod>>::all(client);
        let error = list(&pods).await.1.unwrap_err();
        assert_eq!(error.class(), ErrorClass::ConnectionRefused, "{error}");
        assert!(error.to_string().contains("list pods: "), "{error}");
        assert_eq!(pods.watch(&watch_from("7")).await.err().unwrap().class(), ErrorClass::ConnectionRefused);
    }
}

/// The errors of a list and of a watch whose answer is this.
async fn errors(script: &[Step]) -> (RequestError, RequestError) {
    let (address, _) = serve(script.to_vec()).await;
    let of_list = list(&pods(address)).await.1.unwrap_err();
    let (address, _) = serve(script.to_vec()).await;
    let of_watch = match pods(address).watch(&watch_from("7")).await {
        Err(error) => error,
        Ok(mut events) => loop {
            if let Err(error) = events.next().await.expect("an error") {
                break error;
            }
        },
    };
    (of_list, of_watch)
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    let head = || Write(CHUNKED.to_owned());
    let part = || Write(chunk(r#"{"items":["#) + &chunk(POD));
    let table = [
        // script, class of the list's error
        ("no last chunk", vec![head(), part(), Close], ErrorClass::Truncated),
        ("within a chunk", vec![head(), Write("ff\r\n{\"items\":".into()), Close], ErrorClass::Truncated),
        ("reset in the body", vec![head(), part(), Reset], ErrorClass::Transport),
        (
            "short of its length",
            vec![Write(format!("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{POD}")), Close],
            ErrorClass::Truncated,
        ),
        ("closed without an answer", vec![Close], ErrorClass::Transport),
        ("reset without an answer", vec![Reset], ErrorClass::Transport),
        ("not HTTP", vec![Write("220 mail ready\r\n\r\n".into()), Close], ErrorClass::Transport),
    ];
    for (name, script, class) in table {
        let (of_list, of_watch) = errors(&script).await;
        assert_eq!(of_list.class(), class, "{name}: {of_list}");
        assert!(matches!(of_watch.class(), ErrorClass::Truncated | ErrorClass::Transport), "{name}: {of_watch}");
    }
}

#[tokio::test]
async fn text_where_json_was_asked_for_is_shown_in_the_error() {
    let body = "Client sent an HTTP request to an HTTPS server.";
    for code in ["200 OK", "400 Bad Request"] {
        let answer = format!("HTTP/1.1 {code}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let (of_list, _) = errors(&[Write(answer), Close]).await;
        assert!(of_list.to_string().contains("Client sent an HTTP request"), "{of_list}");
    }
    let answer = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd".to_owned();
    let (of_list, of_watch) = errors(&[Write(answer), Close]).await;
    for error in [of_list, of_watch] {
        assert_eq!(error.class(), ErrorClass::Decode);
        assert!(error.to_string().contains("compressed"), "{error}");
    }
}

#[tokio::test]
async fn a_watch_gives_events_as_they_come_and_its_connection_back_when_dropped() {
    let (address, served) = serve(vec![Write(CHUNKED.to_owned() + &chunk(&event())), Wait]).await;
    let mut events = pods(address).watch(&watch_from("7")).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    drop(events);
    served.done.await.unwrap();
    let head = served.asked.await.unwrap();
    assert!(head.starts_with("GET /api/v1/pods?watch=true&"), "{head}");
    assert!(head.contains("\r\naccept-encoding: identity\r\n"), "{head}");
    assert!(head.contains("\r\nuser-agent: kubewire/"), "{head}");
}

#[tokio::test]
async fn a_list_that_is_dropped_gives_its_connection_back() {
    let (address, served) = serve(vec![Write(CHUNKED.to_owned() + &chunk(r#"{"items":["#)), Wait]).await;
    let listing = tokio::spawn(async move { list(&pods(address)).await });
    served.asked.await.unwrap();
    listing.abort();
    assert!(listing.await.unwrap_err().is_cancelled());
    served.done.await.unwrap();
}

#[tokio::test]
async fn the_error_event_on_a_connection_that_stays_open_ends_the_stream_and_the_connection() {
    let line = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n";
    let (address, served) = serve(vec![Write(CHUNKED.to_owned() + &chunk(line)), Wait]).await;
    let mut events = pods(address).watch(&watch_from("7")).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap_err().class(), ErrorClass::Expired);
    served.done.await.unwrap();
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_429_comes_out_at_once_and_is_not_repeated_behind_the_scenes() {
    let answer = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_owned();
    let (address, served) = serve(vec![Write(answer), Close]).await;
    let client = ClientOptions::new().user_agent("test/1").throttle(5.0, 10).build(config(address)).unwrap();
    let error = list(&ListWatch::<Arc<Pod>>::all(client)).await.1.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Throttled);
    assert_eq!(error.retry_after().unwrap().as_secs(), 1);
    assert!(served.asked.await.unwrap().contains("\r\nuser-agent: test/1\r\n"));
    // A second request would have been refused: nobody listens any more.
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}
