//! The way of a request: what it asks for, faults, access, answer.

use std::future::Future;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, header};
use tokio::time::Instant;

use crate::access::Access;
use crate::body::{BoxError, ResponseBody, reset_error};
use crate::call::Call;
use crate::fault::{Answer, BodyFault, StreamFault};
use crate::form::Form;
use crate::format::Format;
use crate::inner::Inner;
use crate::matching::RequestInfo;
use crate::request_log::RecordedRequest;
use crate::response::{failure, raw};
use crate::route::{Query, Route, route};
use crate::store::CollectionId;
use crate::{Status, Verb, documents};

/// An answer that is right, or a status.
pub(crate) type Answered = Result<Response<ResponseBody>, Status>;

/// Answers one request; an error is a broken connection.
pub(crate) async fn answer<R, F>(
    inner: &Arc<Inner>,
    parts: Parts,
    connection: Option<u64>,
    read_body: R,
) -> Result<Response<ResponseBody>, BoxError>
where
    R: FnOnce() -> F,
    F: Future<Output = Result<Bytes, Status>>,
{
    if inner.is_down() {
        inner.hits.count("refused: the server is down");
        return Err(refused());
    }
    let open = inner.requests_open.open();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let routed = route(&inner.registry, &parts.method, parts.uri.path(), &query);
    let mut info = info(routed.as_ref().ok(), &query);
    inner.log.lock().push(record(&parts, &query, connection, &info));
    let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let user = inner.access.lock().authenticate(authorization);
    info.user = user.as_ref().ok().cloned();
    let applied = inner.faults.lock().apply(&info);
    applied.met.iter().for_each(|name| inner.hits.count(name));
    if let Some(delay) = applied.delay {
        tokio::time::sleep(delay).await;
    }
    let answered = match applied.answer {
        Some(Answer::Refuse) => return Err(refused()),
        Some(Answer::Reset) => return Err(reset_error()),
        Some(Answer::Stall) => std::future::pending().await,
        Some(Answer::Raw { code, content_type, body }) => Ok(raw(code, &content_type, body)),
        Some(Answer::Status(status)) => Err(*status),
        None => {
            let request = RequestParts { parts: &parts, query: &query, info: &info, stream: &applied.stream };
            right_answer(inner, user, routed, &request, read_body).await
        }
    };
    let response = answered.unwrap_or_else(|status| {
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        failure(&status, Format::of_failures(accept))
    });
    Ok(response.map(|body| faulty(inner, body, &applied.stream).counted(open)))
}

/// A body with what is done to it as bytes: of several cuts and of several drips the first.
fn faulty(inner: &Arc<Inner>, mut body: ResponseBody, faults: &[BodyFault]) -> ResponseBody {
    let met = |name| {
        let inner = inner.clone();
        Box::new(move || inner.hits.count(name))
    };
    let cut = faults.iter().find_map(|fault| match fault.what {
        StreamFault::AfterBytes(bytes, cut) => Some((bytes, cut, fault.name)),
        _ => None,
    });
    if let Some((bytes, then, name)) = cut {
        body = body.cut(bytes, then, met(name));
    }
    let drip = faults.iter().find_map(|fault| match fault.what {
        StreamFault::Drip(len, pause) => Some((len, pause, fault.name)),
        _ => None,
    });
    if let Some((len, pause, name)) = drip {
        body = body.drip(len, pause, met(name));
    }
    body
}

/// What is known of a request before its body is read.
pub(crate) struct RequestParts<'a> {
    parts: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) info: &'a RequestInfo,
    /// What is done to the body of the answer.
    pub(crate) stream: &'a [BodyFault],
}

impl RequestParts<'_> {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

async fn right_answer<R, F>(
    inner: &Arc<Inner>,
    user: Result<String, Status>,
    routed: Result<Route, Status>,
    request: &RequestParts<'_>,
    read_body: R,
) -> Answered
where
    R: FnOnce() -> F,
    F: Future<Output = Result<Bytes, Status>>,
{
    if user.is_err() {
        inner.hits.count("token unknown");
    }
    user?;
    let objects = match routed? {
        Route::Document => {
            let accept = request.header(header::ACCEPT).unwrap_or_default();
            return documents::answer(inner, &request.parts.method, request.parts.uri.path(), accept, request.query);
        }
        Route::Objects(objects) => objects,
    };
    if inner.access.lock().is_forbidden(request.info) {
        inner.hits.count("not allowed");
        return Err(Access::denial(&objects.resource, objects.verb, request.info));
    }
    // Every resource of the registry has its collection.
    let id = CollectionId(inner.registry.position(&objects.resource.name()).ok_or_else(Status::no_such_path)?);
    let accept = request.header(header::ACCEPT).unwrap_or_default();
    let form = Form::negotiate(accept, request.query.get("includeObject").unwrap_or_default(), &objects.resource)?;
    let body = match objects.verb {
        Verb::Get | Verb::List | Verb::Watch => Bytes::new(),
        _ => read_body().await?,
    };
    Call { inner, id, objects: &objects, form, request, body }.answer()
}

fn info(routed: Option<&Route>, query: &Query) -> RequestInfo {
    let Some(Route::Objects(objects)) = routed else { return RequestInfo::default() };
    RequestInfo {
        verb: Some(objects.verb),
        resource: Some(objects.resource.name()),
        namespace: objects.namespace.clone(),
        name: objects.name.clone(),
        user: None,
        streaming_list: objects.verb == Verb::Watch && query.flag("sendInitialEvents") == Some(true),
        continuation: objects.verb == Verb::List && query.text("continue").is_some(),
    }
}

fn record(parts: &Parts, query: &Query, connection: Option<u64>, info: &RequestInfo) -> RecordedRequest {
    RecordedRequest {
        at: Instant::now(),
        connection,
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: query.clone(),
        headers: parts.headers.clone(),
        verb: info.verb,
        resource: info.resource.clone(),
    }
}

fn refused() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused: the server is down").into()
}
