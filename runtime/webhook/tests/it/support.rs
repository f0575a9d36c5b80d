//! Webhooks over TLS, as an API server calls them.

use std::net::SocketAddr;
use std::sync::Arc;

use kubewire_envtest::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const VALIDATE: &str = "/validate-example-com-v2-widget";
pub(crate) const MUTATE: &str = "/mutate-example-com-v2-widget";
pub(crate) const JSON: &str = "application/json";

pub(crate) fn write(directory: &TempDir, authority: &Authority) {
    let certificate = authority.server(&["localhost"]).unwrap();
    std::fs::write(directory.path().join("tls.crt"), certificate.certificate_pem).unwrap();
    std::fs::write(directory.path().join("tls.key"), certificate.key_pem).unwrap();
}

/// The status and the body of a POST over a connection of its own; an error where there is no handshake.
pub(crate) async fn post(
    address: SocketAddr,
    authority: &Authority,
    path: &str,
    kind: &str,
    body: &[u8],
) -> std::io::Result<(u16, Value)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    // A server that refuses a long body does not read all of it.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

pub(crate) fn review(operation: &str, object: Value, old: Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "name": "a", "namespace": "default",
        "kind": {"group": "example.com", "version": "v2", "kind": "Widget"},
        "resource": {"group": "example.com", "version": "v2", "resource": "widgets"},
        "userInfo": {"username": "alice"}, "object": object, "oldObject": old,
    }})
    .to_string()
    .into_bytes()
}

pub(crate) fn widget(size: i64) -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"size": size, "other": 1}})
}
