//! Errors as the API states them: a `Status` object with code, reason, message and details.

use serde_json::{Map, Value, json};

use crate::Resource;

/// A failure as the API server states it: an HTTP status code, a reason for programs, a message for people.
///
/// The constructors use the real server's words, because clients look for some of them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({reason}, {code})")]
#[non_exhaustive]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// Such as `NotFound`, `Conflict`, `Expired`.
    pub reason: String,
    /// What happened.
    pub message: String,
    /// What it is about.
    pub subject: Option<Box<Subject>>,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds`, and the header `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    /// Whether the header `Retry-After` says it as a date, beside a `Date`, rather than in seconds.
    pub retry_after_as_date: bool,
    /// `metadata.continue`: where a list whose token expired may go on inconsistently.
    pub continue_token: Option<Box<str>>,
}

/// What a [`Status`] is about: `details.name`, `.group` and `.kind`; what is empty is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Of the object.
    pub name: String,
    /// Empty for the core group.
    pub group: String,
    /// The plural name of the resource, or the kind, as the real server mixes them.
    pub kind: String,
}

/// One of the causes of a [`Status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Such as `FieldValueInvalid` or `ResourceVersionTooLarge`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// The path of the field; empty where there is none.
    pub field: String,
}

impl Cause {
    fn new(reason: &str, field: &str, message: String) -> Self {
        Self { reason: reason.to_owned(), message, field: field.to_owned() }
    }

    /// A field that must be there.
    pub fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new("FieldValueRequired", field, message)
    }

    /// A field with a value that is not allowed.
    pub fn invalid(field: &str, value: &str, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value:?}: {detail}"))
    }

    /// A text with more bytes than are allowed.
    pub fn too_long(field: &str, max: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {max} bytes"))
    }

    /// A field that must not be set here.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    /// A field whose value is none of the known ones.
    pub fn not_supported(field: &str, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }
}

impl Status {
    /// A status of this code, reason and message.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            subject: None,
            causes: Vec::new(),
            retry_after_seconds: None,
            retry_after_as_date: false,
            continue_token: None,
        }
    }

    /// With a time after which to ask again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// The header `Retry-After` says the time as a date.
    #[must_use]
    pub fn retry_after_as_date(mut self) -> Self {
        self.retry_after_as_date = true;
        self
    }

    fn about(self, resource: &Resource, name: &str) -> Self {
        self.subject(name, &resource.group, &resource.plural)
    }

    fn subject(mut self, name: &str, group: &str, kind: &str) -> Self {
        let subject = Subject { name: name.to_owned(), group: group.to_owned(), kind: kind.to_owned() };
        self.subject = Some(Box::new(subject));
        self
    }

    /// 404: no object of this name.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified_plural());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// 404: nothing is served under this path.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").subject("", "", "")
    }

    /// 405: the verb is not served under this path.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    /// 409: an object of this name is there already.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified_plural());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409: the object is not in the state that the write expects.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_plural());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409: the write was made from an older version of the object.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 422: the object is not valid.
    pub fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind(&resource.group, &resource.kind, name, causes)
    }

    /// 422: the options of the request are not valid.
    pub fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind("meta.k8s.io", kind, "", causes)
    }

    fn invalid_kind(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let texts = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{qualified} {name:?} is invalid: {texts}");
        let mut status = Self::new(422, "Invalid", message).subject(name, group, kind);
        status.causes = causes;
        status
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: who asks is not known.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: who asks may not do this.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let what = resource.qualified_plural();
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} {name:?} is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 410: the version or the token is older than what is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410 for a watch that cannot begin at `version`, because `oldest` is the oldest one kept.
    pub fn version_too_old(version: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {version} ({oldest})"))
    }

    /// 504: the version asked for is in the future.
    pub fn version_too_large(version: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {version}, current: {current}");
        let mut status = Self::new(504, "Timeout", message).retry_after(1);
        status.causes.push(Cause::new("ResourceVersionTooLarge", "", "Too large resource version".to_owned()));
        status
    }

    /// 413: the body is longer than the server reads.
    pub fn too_large(max: usize) -> Self {
        let message = format!("Request entity too large: limit is {max}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body is in a format that is not read here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429: too many requests; ask again after this many seconds.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let message = "Too many requests, please try again later.";
        Self::new(429, "TooManyRequests", message).retry_after(retry_after_seconds)
    }

    /// 500.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.causes.push(Cause::new("", "", message));
        status
    }

    /// 503.
    pub fn unavailable() -> Self {
        Self::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    }

    /// 504.
    pub fn timeout() -> Self {
        Self::new(504, "Timeout", "the server was unable to return a response in the time allotted")
    }

    /// The object that the API answers.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status["code"] = json!(self.code);
        status
    }

    fn details(&self) -> Option<Value> {
        let mut details = Map::new();
        if let Some(subject) = &self.subject {
            for (key, value) in [("name", &subject.name), ("group", &subject.group), ("kind", &subject.kind)] {
                if !value.is_empty() {
                    details.insert(key.to_owned(), json!(value));
                }
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_value).collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        (self.subject.is_some() || !details.is_empty()).then_some(Value::Object(details))
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                cause.insert(key.to_owned(), json!(value));
            }
        }
        Value::Object(cause)
    }
}
