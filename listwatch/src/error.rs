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
    /// 502, 503, 504: the server cannot answer now.
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

/// Why a list or a watch failed. Cheap to clone, so that it can be kept as the last error.
#[derive(Clone, Debug)]
pub struct RequestError {
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
        Self { class, message: message.into(), status: None, retry_after: None, source: None }
    }

    /// The error that a status stands for; its class follows from code, reason and causes.
    pub fn from_status(status: Status) -> Self {
        let class = classify(&status);
        let message = match (status.reason.is_empty(), status.message.is_empty()) {
            (_, false) => status.message.clone(),
            (false, true) => status.reason.clone(),
            (true, true) => format!("the server answered {}", status.code),
        };
        Self { status: Some(status), ..Self::new(class, message) }
    }

    /// With the error behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// With the time after which the server wants to be asked again.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// The class.
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// What the server said, where it said something.
    pub fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// When the server wants to be asked again, where it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl Error for RequestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// The class of a status, from its reason first, then its causes, then its code.
fn classify(status: &Status) -> ErrorClass {
    let too_large =
        |text: &str| text.contains("ResourceVersionTooLarge") || text.contains("Too large resource version");
    let timeout = status.code == 504 || status.reason == "Timeout";
    if timeout && (status.causes.iter().any(|cause| too_large(cause)) || too_large(&status.message)) {
        return ErrorClass::VersionTooLarge;
    }
    match (status.reason.as_str(), status.code) {
        ("Expired" | "Gone", _) | (_, 410) => ErrorClass::Expired,
        ("Unauthorized", _) | (_, 401) => ErrorClass::Unauthorized,
        ("Forbidden", _) | (_, 403) => ErrorClass::Forbidden,
        ("NotFound", _) | (_, 404) => ErrorClass::NotFound,
        ("TooManyRequests", _) | (_, 429) => ErrorClass::Throttled,
        ("InternalError", _) | (_, 500) => ErrorClass::Internal,
        ("ServiceUnavailable" | "Timeout" | "ServerTimeout", _) | (_, 502..=504) => ErrorClass::Unavailable,
        (_, 400 | 405 | 406 | 409 | 413 | 415 | 422) => ErrorClass::Invalid,
        _ => ErrorClass::Other,
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
