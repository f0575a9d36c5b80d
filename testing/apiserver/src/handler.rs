//! The way of a request: what it asks for, faults, access, answer.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::body::{BoxError, ResponseBody, reset_error};
use crate::decoding::FieldValidation;
use crate::fault::{Answer, StreamFault};
use crate::form::{Form, Renderer};
use crate::list::ListOptions;
use crate::list_stream::list_body;
use crate::matching::RequestInfo;
use crate::request_log::RecordedRequest;
use crate::route::{ObjectRequest, Query, Route, route};
use crate::selection::Selection;
use crate::server::Inner;
use crate::store::CollectionId;
use crate::watch::{Cursor, WatchOptions};
use crate::watch_stream::Watch;
use crate::write::{Collection, DeleteOptions, Target, Written};
use crate::{Status, Verb, documents, openapi, patching, review, watch_event};

/// An answer that is right, or a status.
type Answered = Result<Response<ResponseBody>, Status>;

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
        return Err(refused());
    }
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let routed = route(&inner.registry, &parts.method, parts.uri.path(), &query);
    let mut info = info(routed.as_ref().ok(), &query);
    inner.log.lock().push(record(&parts, &query, connection, &info));
    let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let user = inner.access.lock().authenticate(authorization);
    info.user = user.as_ref().ok().cloned();
    let applied = inner.faults.lock().apply(&info);
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
    let response = answered.unwrap_or_else(|status| failure(&status));
    let cut = applied.stream.iter().find_map(|fault| match fault {
        StreamFault::AfterBytes(bytes, cut) => Some((*bytes, *cut)),
        _ => None,
    });
    Ok(match cut {
        Some((bytes, then)) => response.map(|body| body.cut(bytes, then)),
        None => response,
    })
}

struct RequestParts<'a> {
    parts: &'a Parts,
    query: &'a Query,
    info: &'a RequestInfo,
    stream: &'a [StreamFault],
}

impl RequestParts<'_> {
    fn header(&self, name: header::HeaderName) -> Option<&str> {
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
    user?;
    let objects = match routed? {
        Route::Document => {
            let accept = request.header(header::ACCEPT).unwrap_or_default();
            return documents::answer(inner, &request.parts.method, request.parts.uri.path(), accept, request.query);
        }
        Route::Objects(objects) => objects,
    };
    if inner.access.lock().is_forbidden(request.info) {
        return Err(crate::access::Access::denial(&objects.resource, objects.verb, request.info));
    }
    // Every resource of the registry has its collection.
    let id = CollectionId(inner.registry.position(&objects.resource.name()).ok_or_else(Status::no_such_path)?);
    let accept = request.header(header::ACCEPT).unwrap_or_default();
    let form = Form::negotiate(accept, request.query.get("includeObject").unwrap_or_default())?;
    let body = match objects.verb {
        Verb::Get | Verb::List | Verb::Watch => Bytes::new(),
        _ => read_body().await?,
    };
    let call = Call { inner, id, objects: &objects, form, request, body };
    match objects.verb {
        Verb::Get => call.get(),
        Verb::List => call.list(),
        Verb::Watch => call.watch(),
        Verb::Create if !objects.resource.stored => call.review(),
        Verb::Create => call.create(),
        Verb::Update => call.update(),
        Verb::Patch => call.patch(),
        Verb::Delete => call.delete(),
        Verb::DeleteCollection => call.delete_collection(),
    }
}

/// One request for objects.
struct Call<'a> {
    inner: &'a Arc<Inner>,
    id: CollectionId,
    objects: &'a ObjectRequest,
    form: Form,
    request: &'a RequestParts<'a>,
    body: Bytes,
}

impl Call<'_> {
    fn get(&self) -> Answered {
        let key = self.target()?.key();
        let stored = self.inner.world.lock().store.get(self.id, &key).cloned();
        let stored = stored.ok_or_else(|| Status::not_found(&self.objects.resource, &self.objects.name))?;
        Ok(json_body(StatusCode::OK, self.renderer().object(stored.object())))
    }

    fn renderer(&self) -> Renderer {
        Renderer::new(self.form, self.objects.resource.clone())
    }

    fn selection(&self) -> Result<Selection, Status> {
        Selection::parse(&self.objects.resource, self.objects.namespace.as_deref(), self.request.query)
    }

    fn list(&self) -> Answered {
        let options = ListOptions::parse(self.request.query)?;
        let selection = self.selection()?;
        let listed = {
            let world = self.inner.world.lock();
            options.run(world.store.collection(self.id), &selection, world.store.version())?
        };
        if let Some(table) = self.renderer().table(&listed) {
            return Ok(json_body(StatusCode::OK, table));
        }
        let body = list_body(self.objects.resource.clone(), self.form, listed);
        Ok(response(StatusCode::OK, "application/json", ResponseBody::stream(body)))
    }

    fn watch(&self) -> Answered {
        let options = WatchOptions::parse(self.request.query)?;
        let selection = self.selection()?;
        let (begun, random) = {
            let mut world = self.inner.world.lock();
            let random = world.rng.below(1000) as u32;
            let (collection, version) = (world.store.collection(self.id), world.store.version());
            (Cursor::begin(collection, selection, self.form, options.clone(), version), random)
        };
        let body = match begun {
            Ok(cursor) => {
                let min = self.inner.settings.min_request_timeout;
                let timeout = options.timeout_seconds.map_or(min + min * random / 1000, Duration::from_secs);
                let watch = Watch::new(self.inner.clone(), self.id, cursor, timeout, self.request.stream.to_vec());
                ResponseBody::stream(watch.into_stream())
            }
            // As the real server: the answer is 200, and the error its only event.
            Err(status) => ResponseBody::whole(watch_event::error(&status)),
        };
        Ok(response(StatusCode::OK, "application/json", body))
    }

    fn target(&self) -> Result<Target, Status> {
        let dry_run = match self.request.query.text("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                let cause = crate::Cause::not_supported("dryRun", other, &["All"]);
                return Err(Status::invalid_options("Options", vec![cause]));
            }
        };
        Ok(Target {
            namespace: self.objects.namespace.clone().unwrap_or_default(),
            name: self.objects.name.clone(),
            status: self.objects.subresource == "status",
            dry_run,
            direct: false,
        })
    }

    /// The object in the body, and what to warn of.
    fn object(&self) -> Result<(Value, Vec<String>), Status> {
        let mut object = self.json()?;
        let warnings = FieldValidation::parse(self.request.query)?.read(&self.objects.resource, &mut object)?;
        Ok((object, warnings))
    }

    fn json(&self) -> Result<Value, Status> {
        let content_type = self.request.header(header::CONTENT_TYPE).unwrap_or("application/json");
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type == openapi::PROTOBUF && !self.objects.resource.custom {
            return openapi::to_json(&self.body).map_err(|error| Status::bad_request(error.to_string()));
        }
        if !["application/json", ""].contains(&media_type) {
            let message = format!(
                "the body of the request was in an unknown format ({media_type}) - accepted media types include: application/json"
            );
            return Err(Status::unsupported_media_type(message));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let kind = &self.objects.resource.kind;
            Status::bad_request(format!(
                "{kind} in version {:?} cannot be decoded: {error}",
                self.objects.resource.version
            ))
        })
    }

    fn review(&self) -> Answered {
        let object = self.json()?;
        let reviewed = review::answer(self.inner, &self.objects.resource, object, self.request.info);
        Ok(json_body(StatusCode::CREATED, reviewed.to_string()))
    }

    fn create(&self) -> Answered {
        let (target, (object, warnings)) = (self.target()?, self.object()?);
        let written = self.inner.write(|world, now| world.create(self.id, &target, object, now))?;
        Ok(warn(self.written(StatusCode::CREATED, &written), &warnings))
    }

    fn update(&self) -> Answered {
        let (target, (object, warnings)) = (self.target()?, self.object()?);
        let written = self.inner.write(|world, _| world.update(self.id, &target, object))?;
        Ok(warn(self.written(StatusCode::OK, &written), &warnings))
    }

    fn patch(&self) -> Answered {
        let target = self.target()?;
        let content_type = self.request.header(header::CONTENT_TYPE).unwrap_or_default();
        let validation = FieldValidation::parse(self.request.query)?;
        let resource = &self.objects.resource;
        let mut warnings = Vec::new();
        let patch = |object: Value| {
            let mut patched = patching::apply(content_type, &self.body, object, resource)?;
            warnings = validation.read(resource, &mut patched)?;
            Ok(patched)
        };
        let written = self.inner.write(|world, _| world.patch(self.id, &target, patch))?;
        Ok(warn(self.written(StatusCode::OK, &written), &warnings))
    }

    fn written(&self, code: StatusCode, written: &Written) -> Response<ResponseBody> {
        json_body(code, self.renderer().object(written.object()))
    }

    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let mut options = match self.body.is_empty() {
            true => DeleteOptions::default(),
            false => serde_json::from_value(self.json()?)
                .map_err(|error| Status::bad_request(format!("DeleteOptions cannot be decoded: {error}")))?,
        };
        if let Some(seconds) = self.request.query.text("gracePeriodSeconds") {
            let parsed = seconds.parse();
            options.grace_period_seconds =
                Some(parsed.map_err(|error| Status::bad_request(format!("invalid gracePeriodSeconds: {error}")))?);
        }
        Ok(options)
    }

    fn delete(&self) -> Answered {
        let options = self.delete_options()?;
        let mut target = self.target()?;
        target.dry_run |= options.is_dry_run();
        let written = self.inner.write(|world, now| world.delete(self.id, &target, &options, now))?;
        match &written {
            Written::Removed(object) if !returns_deleted(&self.objects.resource) => {
                let details = json!({
                    "name": object.key.name(), "group": self.objects.resource.group,
                    "kind": self.objects.resource.plural, "uid": &*object.uid,
                });
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                Ok(json_body(StatusCode::OK, status.to_string()))
            }
            _ => Ok(self.written(StatusCode::OK, &written)),
        }
    }

    fn delete_collection(&self) -> Answered {
        let (options, selection) = (self.delete_options()?, self.selection()?);
        let dry_run = self.target()?.dry_run || options.is_dry_run();
        let namespace = selection.namespace.clone();
        let of = Collection { namespace: namespace.as_deref(), wanted: &|object| selection.matches(object) };
        let (written, version) = self
            .inner
            .write(|world, now| (world.delete_collection(self.id, of, dry_run, &options, now), world.store.version()));
        let items: Vec<Value> = written.iter().map(Written::to_value).collect();
        let resource = &self.objects.resource;
        let list = json!({
            "kind": resource.list_kind(), "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": version.to_string()}, "items": items,
        });
        Ok(json_body(StatusCode::OK, list.to_string()))
    }
}

/// Whether a delete answers the object rather than a status.
fn returns_deleted(resource: &crate::Resource) -> bool {
    resource.group.is_empty()
        && ["pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims"]
            .contains(&&*resource.plural)
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

/// An answer that is one JSON text.
pub(crate) fn json_body(code: StatusCode, body: impl Into<Bytes>) -> Response<ResponseBody> {
    response(code, "application/json", ResponseBody::whole(body))
}

/// An answer of this content type.
pub(crate) fn response(code: StatusCode, content_type: &str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Adds a `Warning` header for each text, as kubectl prints them.
fn warn(mut response: Response<ResponseBody>, warnings: &[String]) -> Response<ResponseBody> {
    for text in warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

fn raw(code: u16, content_type: &str, body: Bytes) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(code, content_type, ResponseBody::whole(body))
}

fn failure(status: &Status) -> Response<ResponseBody> {
    let mut response = raw(status.code, "application/json", Bytes::from(status.to_value().to_string()));
    if let Some(seconds) = status.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
