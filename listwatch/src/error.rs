//! Errors in classes: what a caller should do next follows from the class.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::ObjectKey;

/// Any error, shared.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What kind of failure it was, and so what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// 410, or reason `Expired` or `Gone`: the version or the continue token is too old. List again.
    Expired,
    /// The version asked for is newer than the server's ("too large"). List without a version, or later.
    VersionTooLarge,
    /// 401: the credentials are not accepted (any more).
    Unauthorized,
    /// 403: the credentials give no right to this.
    Forbidden,
    /// 404: no such resource, or not yet.
    NotFound,
    /// 429: wait, then ask the same again.
    Throttled,
    /// 400, 406, 415, 422 and the like: the request will not become right by itself.
    Invalid,
    /// 500 or reason `InternalError`.
    Internal,
    /// 502, 503, 504, another 5xx or 408: the server cannot answer now.
    Unavailable,
    /// Nobody listens there.
    ConnectionRefused,
    /// The connection failed or broke: DNS, TLS, reset.
    Transport,
    /// No answer, or no end of it, in the time that the request was given.
    TimedOut,
    /// The answer is not what it should be: foreign text, wrong JSON, a list without a version.
    Decode,
    /// The answer ended before it was complete.
    Truncated,
    /// An item or a line is longer than the limit.
    TooLong,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// A short name for logs and metrics, such as `expired` or `connection_refused`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::VersionTooLarge => "version_too_large",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Throttled => "throttled",
            Self::Invalid => "invalid",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::ConnectionRefused => "connection_refused",
            Self::Transport => "transport",
            Self::TimedOut => "timed_out",
            Self::Decode => "decode",
            Self::Truncated => "truncated",
            Self::TooLong => "too_long",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the server said, in a Kubernetes `Status` or in the HTTP status line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The code, 0 where there was none.
    pub code: u16,
    /// The reason, such as `Expired`.
    pub reason: String,
    /// The message, for people; cut to a bounded length.
    pub message: String,
    /// The reasons of the causes among the details, such as `ResourceVersionTooLarge`.
    pub causes: Vec<String>,
}

/// Why a list or a watch failed. Small, and cheap to clone (a few texts, once in a failure), so that it can be kept
/// as the last error.
#[derive(Clone)]
pub struct RequestError {
    parts: Box<Parts>,
}

#[derive(Clone, Debug)]
struct Parts {
    class: ErrorClass,
    /// For people: what was asked, and what happened.
    message: String,
    status: Option<Status>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl RequestError {
    /// An error of a class, with a message for people.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        let parts = Parts { class, message: message.into(), status: None, retry_after: None, source: None };
        Self { parts: Box::new(parts) }
    }

    /// The error that a status stands for; its class follows from code, reason and causes.
    pub fn from_status(status: Status) -> Self {
        let class = classify(&status);
        let message = match (status.reason.is_empty(), status.message.is_empty()) {
            (_, false) => status.message.clone(),
            (false, true) => status.reason.clone(),
            (true, true) => format!("the server answered {}", status.code),
        };
        let mut error = Self::new(class, message);
        error.parts.status = Some(status);
        error
    }

    /// With the error behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.parts.source = Some(Arc::from(source.into()));
        self
    }

    /// With the time after which the server wants to be asked again.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.parts.retry_after = retry_after;
        self
    }

    /// With what was asked in front of the message: `list pods: ...`.
    #[must_use]
    pub fn context(mut self, asked: impl fmt::Display) -> Self {
        self.parts.message = format!("{asked}: {}", self.parts.message);
        self
    }

    /// With what to do about it behind the message.
    #[cfg(feature = "client")]
    pub(crate) fn advise(mut self, advice: &str) -> Self {
        self.parts.message = format!("{}; {advice}", self.parts.message);
        self
    }

    /// The class.
    pub fn class(&self) -> ErrorClass {
        self.parts.class
    }

    /// What the server said, where it said something.
    pub fn status(&self) -> Option<&Status> {
        self.parts.status.as_ref()
    }

    /// When the server wants to be asked again, where it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.parts.retry_after
    }
}

impl fmt::Debug for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { class, message, status, retry_after, source } = &*self.parts;
        f.debug_struct("RequestError")
            .field("class", class)
            .field("message", message)
            .field("status", status)
            .field("retry_after", retry_after)
            .field("source", source)
            .finish()
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parts.class, self.parts.message)
    }
}

impl Error for RequestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.parts.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// What API servers say of a version that is newer than theirs, in a message.
pub(crate) const TOO_LARGE: &str = "Too large resource version";

/// The class of a status: from its causes, then its reason, then its code.
fn classify(status: &Status) -> ErrorClass {
    let has_cause = |text: &str| status.causes.iter().any(|cause| cause.contains(text));
    let timeout = status.code == 504 || status.reason == "Timeout";
    // As client-go: the cause, or a timeout with a cause or a message (of old servers) that says so.
    if has_cause("ResourceVersionTooLarge") || (timeout && (has_cause(TOO_LARGE) || status.message.contains(TOO_LARGE)))
    {
        return ErrorClass::VersionTooLarge;
    }
    match status.reason.as_str() {
        "Expired" | "Gone" => ErrorClass::Expired,
        "Unauthorized" => ErrorClass::Unauthorized,
        "Forbidden" => ErrorClass::Forbidden,
        "NotFound" => ErrorClass::NotFound,
        "TooManyRequests" => ErrorClass::Throttled,
        "InternalError" => ErrorClass::Internal,
        "ServiceUnavailable" | "Timeout" | "ServerTimeout" => ErrorClass::Unavailable,
        "BadRequest"
        | "Invalid"
        | "MethodNotAllowed"
        | "NotAcceptable"
        | "UnsupportedMediaType"
        | "RequestEntityTooLarge"
        | "Conflict"
        | "AlreadyExists" => ErrorClass::Invalid,
        _ => match status.code {
            410 => ErrorClass::Expired,
            401 => ErrorClass::Unauthorized,
            403 => ErrorClass::Forbidden,
            404 => ErrorClass::NotFound,
            429 => ErrorClass::Throttled,
            500 => ErrorClass::Internal,
            408 | 501..=599 => ErrorClass::Unavailable,
            400 | 405 | 406 | 409 | 413 | 414 | 415 | 422 | 431 => ErrorClass::Invalid,
            _ => ErrorClass::Other,
        },
    }
}

/// One object of a list or watch that could not be taken: which one, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ItemError {
    /// The object's key, where it could be read.
    pub key: Option<ObjectKey>,
    /// The object's version, where it could be read.
    pub resource_version: Option<String>,
    /// What is wrong, with the path of the field where there is one.
    pub message: String,
}

impl ItemError {
    /// An item about which nothing but the failure is known.
    pub fn new(message: impl Into<String>) -> Self {
        Self { key: None, resource_version: None, message: message.into() }
    }

    /// With the place in its list (from 0) for one that has no key.
    #[must_use]
    pub fn at_position(mut self, position: u64) -> Self {
        if self.key.is_none() {
            self.message = format!("item {position} of the list: {}", self.message);
        }
        self
    }
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Error for ItemError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_reason_then_code() {
        let table = [
            // code, reason, class
            (410, "", ErrorClass::Expired),
            (410, "Expired", ErrorClass::Expired),
            (0, "Gone", ErrorClass::Expired),
            (401, "", ErrorClass::Unauthorized),
            (403, "Forbidden", ErrorClass::Forbidden),
            (404, "NotFound", ErrorClass::NotFound),
            (429, "", ErrorClass::Throttled),
            (0, "TooManyRequests", ErrorClass::Throttled),
            (400, "BadRequest", ErrorClass::Invalid),
            (422, "", ErrorClass::Invalid),
            (414, "", ErrorClass::Invalid),
            (431, "", ErrorClass::Invalid),
            (500, "InternalError", ErrorClass::Internal),
            (500, "ServerTimeout", ErrorClass::Unavailable),
            (500, "", ErrorClass::Internal),
            (502, "", ErrorClass::Unavailable),
            (503, "ServiceUnavailable", ErrorClass::Unavailable),
            (504, "Timeout", ErrorClass::Unavailable),
            (302, "", ErrorClass::Other),
            (0, "", ErrorClass::Other),
            (400, "Expired", ErrorClass::Expired),
        ];
        for (code, reason, class) in table {
            let status = Status { code, reason: reason.to_owned(), ..Status::default() };
            assert_eq!(RequestError::from_status(status).class(), class, "{code} {reason}");
        }
    }

    #[test]
    fn an_error_prints_its_class_what_was_asked_and_what_happened() {
        let status = Status { code: 403, message: "no right to pods".to_owned(), ..Status::default() };
        let error = RequestError::from_status(status).context("list pods");
        assert_eq!(error.to_string(), "forbidden: list pods: no right to pods");
    }
}
