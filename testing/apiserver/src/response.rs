//! Answers, whole ones.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;

use crate::Status;
use crate::body::ResponseBody;
use crate::format::Format;

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
pub(crate) fn warn(mut response: Response<ResponseBody>, warnings: &[String]) -> Response<ResponseBody> {
    for text in warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// An answer of this code, content type and body, whatever they are.
pub(crate) fn raw(code: u16, content_type: &str, body: Bytes) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(code, content_type, ResponseBody::whole(body))
}

/// A status as an answer.
pub(crate) fn failure(status: &Status, format: Format) -> Response<ResponseBody> {
    let mut response = raw(status.code, format.media_type(), format.whole(&status.to_value()));
    if let Some(seconds) = status.retry_after_seconds {
        let headers = response.headers_mut();
        match status.retry_after_as_date {
            false => _ = headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds)),
            true => {
                let now = Timestamp::now();
                let later = Timestamp::from_second(now.as_second() + i64::from(seconds)).unwrap_or(now);
                headers.extend([(header::DATE, now), (header::RETRY_AFTER, later)].map(|(name, at)| (name, date(at))));
            }
        }
    }
    response
}

/// A moment as HTTP headers say it.
fn date(at: Timestamp) -> HeaderValue {
    // Letters, digits and punctuation.
    HeaderValue::try_from(at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).unwrap_or(HeaderValue::from_static(""))
}
