//! Requests of API servers over HTTP.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use kubewire_http_server::text;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::review::Review;
use crate::webhooks::Route;
use crate::{AdmissionResponse, BoxError, Rejection, WebhookMetrics};

/// As controller-runtime: an object of etcd's limit, old and new, and room around it.
const BODY_BYTES_MAX: usize = 7 << 20;

/// [`Webhooks`](crate::Webhooks) as a service of `tower`: it answers requests of any server, such as one of `hyper`, or a
/// route of `axum`. Cloning gives another handle.
///
/// A review that can be read is answered by a review with the same `uid`, with 200 of HTTP: what is not admitted, a handler that
/// panicked (500 within the review) or took too long (504). What is no review is answered by 400, 404, 405 or 413 of HTTP.
#[derive(Clone)]
pub struct WebhookService {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) routes: BTreeMap<String, Route>,
    pub(crate) metrics: WebhookMetrics,
    pub(crate) timeout: Duration,
    /// Never closed.
    pub(crate) places: Semaphore,
}

impl WebhookService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// What is counted.
    pub fn metrics(&self) -> &WebhookMetrics {
        &self.shared.metrics
    }

    /// Answers one request. Cancel-safe: what is dropped is not answered, and its handler is dropped, too.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send,
    {
        let Some((path, route)) = self.shared.routes.get_key_value(request.uri().path()) else {
            return text(StatusCode::NOT_FOUND, "there is no webhook at this path\n");
        };
        let metrics = &self.shared.metrics;
        let _in_flight = metrics.enter(path);
        let begun = Instant::now();
        let answer = self.answer_at(path, route, request).await;
        metrics.answered(path, answer.status().as_u16(), begun.elapsed());
        answer
    }

    async fn answer_at<B>(&self, path: &str, route: &Route, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send,
    {
        if request.method() != Method::POST {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "a webhook takes POST only\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return answer;
        }
        let limit = time_limit(request.uri().query(), self.shared.timeout);
        let begun = tokio::time::Instant::now();
        let read = async {
            let place = self.shared.places.acquire().await;
            (place, read(request).await)
        };
        let (_place, body) = match timeout(limit, read).await {
            Ok((place, Ok(body))) => (place, body),
            Ok((_, Err(rejection))) => return refused(path, &rejection),
            Err(_) => {
                let message = "the request did not come, or had to wait, for too long";
                return refused(path, &Rejection::new(503, "ServiceUnavailable", message));
            }
        };
        let left = limit.saturating_sub(begun.elapsed());
        let answered = match route {
            Route::Admission(handler) => {
                let decide = async |review: &mut Review| match review.admission() {
                    Err(rejection) => AdmissionResponse::from(rejection),
                    Ok(request) => {
                        let handled = AssertUnwindSafe(async { handler.handle(request).await }).catch_unwind();
                        let result = match timeout(left, handled).await {
                            Ok(Ok(response)) => Ok(response),
                            Ok(Err(panic)) => Err(self.panicked(path, &*panic)),
                            Err(_) => Err(too_slow(path, limit)),
                        };
                        result.into()
                    }
                };
                match Review::parse(&body, "admission.k8s.io", "AdmissionReview") {
                    Err(rejection) => Err(rejection),
                    Ok(mut review) => {
                        let response = decide(&mut review).await;
                        Ok(review.admitted(&response))
                    }
                }
            }
            Route::Conversion(converter) => {
                Review::parse(&body, "apiextensions.k8s.io", "ConversionReview").map(|mut review| {
                    let result = review.conversion().and_then(|request| {
                        let convert = AssertUnwindSafe(|| request.convert(&**converter));
                        std::panic::catch_unwind(convert).unwrap_or_else(|panic| Err(self.panicked(path, &*panic)))
                    });
                    review.converted(result)
                })
            }
        };
        match answered {
            Ok(review) => json(StatusCode::OK, &review),
            Err(rejection) => refused(path, &rejection),
        }
    }

    fn panicked(&self, path: &str, panic: &(dyn std::any::Any + Send)) -> Rejection {
        let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("no text");
        self.shared.metrics.panicked();
        tracing::error!(webhook = path, panic = said, "a webhook panicked");
        Rejection::new(500, "InternalError", format!("panic: {said} [recovered]"))
    }
}

fn too_slow(path: &str, limit: Duration) -> Rejection {
    tracing::warn!(webhook = path, ?limit, "a webhook took too long");
    Rejection::new(504, "Timeout", format!("the webhook has not decided within {} s", limit.as_secs_f64()))
}

/// How long the API server waits, which it says in the query, or we do, if that is shorter.
fn time_limit(query: Option<&str>, ours: Duration) -> Duration {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    // Whole seconds, thirty at most.
    let theirs = pairs.filter(|(name, _)| name == "timeout").find_map(|(_, value)| {
        let seconds = value.strip_suffix('s')?.parse().ok()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    });
    theirs.map_or(ours, |theirs| theirs.min(ours))
}

async fn read<B>(request: Request<B>) -> Result<Bytes, Rejection>
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send,
{
    if !is_json(request.headers()) {
        return Err(Rejection::bad_request("the content type must be application/json"));
    }
    match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("the body is longer than {BODY_BYTES_MAX} bytes");
            Err(Rejection::new(413, "RequestEntityTooLarge", message))
        }
        Err(error) => Err(Rejection::bad_request(format!("the body cannot be read: {error}"))),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What is no review of somebody's.
fn refused(path: &str, rejection: &Rejection) -> Response<Full<Bytes>> {
    tracing::warn!(webhook = path, ?rejection, "a request was not understood");
    let status = StatusCode::from_u16(rejection.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = rejection.to_json();
    body["kind"] = "Status".into();
    body["apiVersion"] = "v1".into();
    json(status, &body)
}

fn json(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(value.to_string().into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

impl<B> tower::Service<Request<B>> for WebhookService
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

impl fmt::Debug for WebhookService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookService").field("paths", &self.shared.routes.keys()).finish_non_exhaustive()
    }
}
