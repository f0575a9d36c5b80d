//! Requests and answers as they are, in process.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kubewire_apiserver::{ApiServer, BoxError, ResponseBody};
use serde_json::Value;
use tower::ServiceExt;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The names of the items, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let items = self.body["items"].as_array().expect("a list");
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
    }

    pub(crate) fn reason(&self) -> (u16, &str) {
        (self.code, self.body["reason"].as_str().unwrap_or_default())
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// A request with this body; `content_type` is sent where it is not empty.
pub(crate) async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Response<ResponseBody>, BoxError> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.service().oneshot(request.body(Full::new(body.into())).unwrap()).await
}

async fn read(response: Response<ResponseBody>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a whole body").to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
    Answer { code: parts.status.as_u16(), headers: parts.headers, body }
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> Answer {
    get_as(server, path, "application/json").await
}

pub(crate) async fn get_as(server: &ApiServer, path: &str, accept: &str) -> Answer {
    read(send(server, "GET", path, &[("accept", accept)], "").await.unwrap()).await
}

/// A request with a JSON body.
pub(crate) async fn write(server: &ApiServer, method: &str, path: &str, body: Value) -> Answer {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    patch_as(server, method, path, content_type, body).await
}

pub(crate) async fn patch_as(server: &ApiServer, method: &str, path: &str, content_type: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    read(send(server, method, path, &[("content-type", content_type)], body).await.unwrap()).await
}

/// The lines of a body, as they come.
pub(crate) fn lines(response: Response<ResponseBody>) -> impl Stream<Item = Result<Value, BoxError>> + Unpin {
    let frames = response.into_body().into_data_stream();
    Box::pin(futures::stream::unfold((frames, Vec::new()), |(mut frames, mut buffer)| async move {
        loop {
            if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let text = || Value::from(String::from_utf8_lossy(&line).into_owned());
                return Some((Ok(serde_json::from_slice(&line).unwrap_or_else(|_| text())), (frames, buffer)));
            }
            match frames.next().await {
                Some(Ok(frame)) => buffer.extend_from_slice(&frame),
                Some(Err(error)) => return Some((Err(error), (frames, Vec::new()))),
                None if buffer.is_empty() => return None,
                None => {
                    let rest = std::mem::take(&mut buffer);
                    return Some((Ok(String::from_utf8_lossy(&rest).into_owned().into()), (frames, buffer)));
                }
            }
        }
    }))
}

/// Opens a watch; its lines.
pub(crate) async fn watch(
    server: &ApiServer,
    path: &str,
) -> impl Stream<Item = Result<Value, BoxError>> + Unpin + use<> {
    let response = send(server, "GET", path, &[("accept", "application/json")], "").await.unwrap();
    assert_eq!(response.status(), 200);
    lines(response)
}

/// `ADDED a@5` and so on; the text itself where it is no event.
pub(crate) fn told(line: Result<Value, BoxError>) -> String {
    let line = match line {
        Ok(line) => line,
        Err(error) => return format!("broken: {error}"),
    };
    let Some(kind) = line["type"].as_str() else { return line.to_string() };
    let metadata = &line["object"]["metadata"];
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {}", line["object"]["code"]),
        "BOOKMARK" if metadata["annotations"]["k8s.io/initial-events-end"] == "true" => format!("END @{version}"),
        "BOOKMARK" => format!("BOOKMARK @{version}"),
        _ => format!("{kind} {}@{version}", metadata["name"].as_str().unwrap_or_default()),
    }
}

/// The next lines of a watch.
pub(crate) async fn next(
    watch: &mut (impl Stream<Item = Result<Value, BoxError>> + Unpin),
    count: usize,
) -> Vec<String> {
    watch.take(count).map(told).collect().await
}

/// All lines up to the end of a watch.
pub(crate) async fn rest(watch: impl Stream<Item = Result<Value, BoxError>> + Unpin) -> Vec<String> {
    watch.map(told).collect().await
}
