//! One request and its answer: headers in time, status checked, body in chunks that come in time.

use std::time::{Duration, SystemTime};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body;
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::codec::Format;
use crate::client::excerpt::excerpt;
use crate::client::retry_after::retry_after;
use crate::client::status::error_of_answer;
use crate::client::transport::{error_of_body, error_of_send};
use crate::{ErrorClass, Limits, RequestError, Timeouts};

/// Sends a request and gives the body of a good answer, and what it is written in; an answer of failure is an error of
/// its class.
///
/// Cancel-safe: dropping it ends the request.
pub(crate) async fn send(
    client: &Client,
    request: Request<Body>,
    timeouts: &Timeouts,
    limits: &Limits,
) -> Result<(Format, Body), RequestError> {
    let response = match timeout(timeouts.headers, client.send(request)).await {
        Ok(response) => response.map_err(error_of_send)?,
        Err(_) => return Err(timed_out("no answer came", timeouts.headers)),
    };
    if !response.status().is_success() {
        return Err(read_error(response, timeouts, limits).await);
    }
    match response.headers().get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok((Format::of(response.headers().get(CONTENT_TYPE)), response.into_body())),
        Some(encoding) => {
            let message = format!("the answer is compressed ({}), which was not asked for", excerpt(encoding));
            Err(RequestError::new(ErrorClass::Decode, message))
        }
    }
}

/// The error in an answer of failure, from as much of its body as is allowed.
async fn read_error(response: Response<Body>, timeouts: &Timeouts, limits: &Limits) -> RequestError {
    let (parts, body) = response.into_parts();
    let mut chunks = Chunks::new(body, Some(timeouts.list_idle), Some(timeouts.headers));
    let mut text = Vec::new();
    // Whatever ends the body, the status line has said enough.
    while let Some(Ok(mut chunk)) = chunks.next().await {
        chunk.truncate(limits.error_body - text.len());
        text.extend_from_slice(&chunk);
        if text.len() == limits.error_body {
            break;
        }
    }
    let error = error_of_answer(parts.status.as_u16(), &text);
    match retry_after(&parts.headers, SystemTime::now()) {
        None => error,
        from_header => error.with_retry_after(from_header),
    }
}

/// The body of an answer, piece by piece, each in time.
pub(crate) struct Chunks {
    body: Body,
    /// How long one piece may take.
    idle: Option<Duration>,
    /// When the whole must be over, and how long that was from the beginning.
    deadline: Option<(Instant, Duration)>,
}

impl Chunks {
    /// The pieces of a body.
    pub(crate) fn new(body: Body, idle: Option<Duration>, whole: Option<Duration>) -> Self {
        // A deadline beyond the end of time is none.
        let deadline = whole.and_then(|whole| Some((Instant::now().checked_add(whole)?, whole)));
        Self { body, idle, deadline }
    }

    /// The next piece, never empty; `None` at an orderly end.
    ///
    /// Cancel-safe. Cost: a timer where it has to wait.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, RequestError>> {
        loop {
            // A body that always has something ready would keep the thread to itself.
            tokio::task::consume_budget().await;
            match self.frame().await? {
                Ok(chunk) if chunk.has_remaining() => return Some(Ok(chunk)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn frame(&mut self) -> Option<Result<Bytes, RequestError>> {
        let idle = self.idle.and_then(|idle| Some((Instant::now().checked_add(idle)?, idle)));
        let (until, error) = match (self.deadline, idle) {
            (Some((deadline, whole)), idle) if idle.is_none_or(|(until, _)| deadline <= until) => {
                (deadline, ("the answer did not end", whole))
            }
            (_, Some((until, idle))) => (until, ("nothing more came", idle)),
            (_, None) => return Self::data(self.body.frame().await),
        };
        match timeout_at(until, self.body.frame()).await {
            Ok(frame) => Self::data(frame),
            Err(_) => Some(Err(timed_out(error.0, error.1))),
        }
    }

    /// The data of a frame; trailers have none.
    fn data(frame: Option<Result<http_body::Frame<Bytes>, kube_client::Error>>) -> Option<Result<Bytes, RequestError>> {
        Some(frame?.map(|frame| frame.into_data().unwrap_or_default()).map_err(error_of_body))
    }
}

fn timed_out(what: &str, after: Duration) -> RequestError {
    RequestError::new(ErrorClass::TimedOut, format!("{what} within {after:?}"))
}
