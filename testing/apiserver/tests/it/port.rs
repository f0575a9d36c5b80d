//! The port: real connections that are refused, reset, stalled.

use std::io::ErrorKind;
use std::time::Duration;

use kubewire_apiserver::{ApiServer, Fault};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn with_pod() -> ApiServer {
    let server = ApiServer::builder().port(0).start().await.unwrap();
    server.create("pods", json!({"metadata": {"name": "a", "namespace": "default"}})).unwrap();
    server
}

async fn ask(server: &ApiServer, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address().unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// What comes until the end, and how it ends.
async fn read(mut stream: TcpStream) -> (String, Option<ErrorKind>) {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => return (String::from_utf8(text).unwrap(), None),
            Ok(len) => text.extend_from_slice(&buffer[..len]),
            Err(error) => return (String::from_utf8(text).unwrap(), Some(error.kind())),
        }
    }
}

#[tokio::test]
async fn an_answer_comes_in_http() {
    let server = with_pod().await;
    let (text, end) = read(ask(&server, "/api/v1/pods").await).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("transfer-encoding: chunked"), "{text}");
    assert!(text.ends_with("\r\n0\r\n\r\n"));
    assert_eq!(end, None);
    assert_eq!(server.requests()[0].connection, Some(0));
}

#[tokio::test]
async fn connections_are_reset_instead_of_an_answer_and_in_the_middle_of_one() {
    let server = with_pod().await;
    server.fault(Fault::reset());
    assert_eq!(read(ask(&server, "/api/v1/pods").await).await, (String::new(), Some(ErrorKind::ConnectionReset)));
    server.fault(Fault::reset_watch_mid_event(0));
    let (text, end) = read(ask(&server, "/api/v1/pods?watch=true").await).await;
    assert_eq!(end, Some(ErrorKind::ConnectionReset));
    assert!(!text.contains("\r\n0\r\n"), "{text}");
    let (_, end) = read(ask(&server, "/api/v1/pods").await).await;
    assert_eq!(end, None, "the next connection is well");
}

#[tokio::test]
async fn a_port_that_is_down_refuses_connections_breaks_open_ones_and_comes_back() {
    let server = with_pod().await;
    let mut open = ask(&server, "/api/v1/pods?watch=true").await;
    let mut buffer = [0; 16];
    open.read_exact(&mut buffer).await.unwrap();
    server.go_down().await;
    timeout(Duration::from_secs(20), read(open)).await.expect("the open watch ends");
    let refused = TcpStream::connect(server.address().unwrap()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    server.come_back().await;
    let (text, _) = read(ask(&server, "/api/v1/pods").await).await;
    assert!(text.contains("\"name\":\"a\""));
}

#[tokio::test]
async fn a_stalled_answer_keeps_the_connection_open() {
    let server = with_pod().await;
    server.fault(Fault::stall());
    let stalled = ask(&server, "/api/v1/pods").await;
    // Another request is answered meanwhile, so the stalled one was taken and waits.
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let (text, _) = read(ask(&server, "/api/v1/pods").await).await;
    assert!(text.contains("200 OK"));
    assert!(timeout(Duration::from_millis(50), read(stalled)).await.is_err());
}

#[tokio::test]
async fn the_port_is_closed_when_the_server_is_gone() {
    let server = with_pod().await;
    let address = server.address().unwrap();
    let open = ask(&server, "/api/v1/pods?watch=true").await;
    drop(server);
    timeout(Duration::from_secs(20), read(open)).await.expect("the open watch ends");
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let server = with_pod().await;
    let error = ApiServer::builder().port(server.address().unwrap().port()).start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}
