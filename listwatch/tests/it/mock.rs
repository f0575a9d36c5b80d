//! A kube client whose answers a closure gives, and which remembers what it was asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube_client::Client;
use kube_client::client::Body;
use kubewire_listwatch::{BoxError, ItemError, ListOptions, ListerWatcher, RequestError, WatchOptions};
use parking_lot::Mutex;

pub(crate) type MockBody = UnsyncBoxBody<bytes::Bytes, BoxError>;

/// The requests that a mock client got.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<Request<()>>>>);

impl Asked {
    /// Paths and queries, in order.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.lock().iter().map(|request| request.uri().to_string()).collect()
    }

    pub(crate) fn header(&self, index: usize, name: &str) -> String {
        self.0.lock()[index].headers()[name].to_str().unwrap().to_owned()
    }
}

/// A client that gets its answers from a closure.
pub(crate) fn client(answer: impl Fn(&Request<Body>) -> Response<MockBody> + Send + Sync + 'static) -> (Client, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let response = answer(&request);
        let (parts, _) = request.into_parts();
        log.0.lock().push(Request::from_parts(parts, ()));
        async move { Ok::<_, Infallible>(response) }
    });
    (Client::new(service, "default"), asked)
}

/// A client that answers every request with this text.
pub(crate) fn answering(body: impl Into<String>) -> (Client, Asked) {
    let body = body.into();
    client(move |_| ok(body.clone()))
}

pub(crate) fn ok(body: impl Into<String>) -> Response<MockBody> {
    Response::new(Full::new(bytes::Bytes::from(body.into())).map_err(|never| match never {}).boxed_unsync())
}

pub(crate) fn status(code: u16, body: &str) -> Response<MockBody> {
    let mut response = ok(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

/// An answer whose body comes as these pieces come.
pub(crate) fn streamed(
    pieces: impl Stream<Item = Result<bytes::Bytes, BoxError>> + Send + 'static,
) -> Response<MockBody> {
    Response::new(StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync())
}

/// A whole list: items (or their errors) and meta.
pub(crate) async fn list_with<L: ListerWatcher>(
    lister: &L,
    options: &ListOptions,
) -> (Vec<Result<L::Object, ItemError>>, Result<kubewire_listwatch::ListMeta, RequestError>) {
    let mut items = Vec::new();
    let meta = lister.list(options, &mut |item| items.push(item)).await;
    (items, meta)
}

pub(crate) async fn list<L: ListerWatcher>(
    lister: &L,
) -> (Vec<Result<L::Object, ItemError>>, Result<kubewire_listwatch::ListMeta, RequestError>) {
    list_with(lister, &ListOptions::default()).await
}

pub(crate) fn watch_from(version: &str) -> WatchOptions {
    WatchOptions::from_version(version, Duration::from_secs(300))
}
