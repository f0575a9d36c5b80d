//! The smallest client, for tests.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status and body of a GET.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_with(address, path, "").await
}

/// With more header lines, each ended by `\r\n`.
pub(crate) async fn get_with(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let (status, _, body) = get_over(TcpStream::connect(address).await.unwrap(), path, headers).await;
    (status, body)
}

/// Status, head and body.
pub(crate) async fn get_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    headers: &str,
) -> (u16, String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // TLS servers may close without saying so.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, head.to_owned(), body.to_owned())
}
