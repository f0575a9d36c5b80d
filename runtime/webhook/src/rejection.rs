//! Why something is not admitted.

use std::error::Error;
use std::fmt;

use kube_core::Status;
use serde_json::{Value, json};

/// Why an object is not admitted: a code of HTTP, a reason for programs and a message for people; whoever sent the object
/// sees all three.
///
/// Every error becomes one by `?`. Where a [`Status`] of Kubernetes is among its sources, as in what `kube` returns when an API
/// server refuses, that passes through; else it is 403, as in controller-runtime.
#[derive(Clone, PartialEq)]
pub struct Rejection {
    /// In a box, as results with it are passed about.
    status: Box<Status>,
    warnings: Vec<String>,
}

impl Rejection {
    /// Not allowed (403), with this message.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// The object is invalid (422), with this message.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// The request is not what the webhook understands (400), with this message.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// With a code and a reason of one's own. A code that is no error of HTTP becomes 500.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let code = if (400..600).contains(&code) { code } else { 500 };
        let status = Status { code, reason: reason.into(), message: message.into(), ..Status::default() };
        Self { status: Box::new(status), warnings: Vec::new() }
    }

    /// With a warning for whoever sent the object, beside the message.
    #[must_use = "it changes nothing by itself"]
    pub fn warning(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }

    /// The code of HTTP.
    pub fn code(&self) -> u16 {
        self.status.code
    }

    /// The reason, for programs.
    pub fn reason(&self) -> &str {
        &self.status.reason
    }

    /// The message, for people.
    pub fn message(&self) -> &str {
        &self.status.message
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// As a `Status` of `meta/v1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut status = json!({
            "status": "Failure", "code": self.status.code, "reason": self.status.reason, "message": self.status.message,
        });
        if let Some(details) = &self.status.details
            && let Ok(details) = serde_json::to_value(details)
        {
            status["details"] = details;
        }
        status
    }
}

// It is no `Error` itself: so this does not meet `From<Rejection> for Rejection`.
impl<E: Error + 'static> From<E> for Rejection {
    fn from(error: E) -> Self {
        let mut source: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(here) = source {
            // What `kube` returns has it in a box.
            let boxed = here.downcast_ref::<Box<Status>>().map(|status| &**status);
            if let Some(status) = here.downcast_ref::<Status>().or(boxed) {
                let code = if (400..600).contains(&status.code) { status.code } else { 500 };
                return Self { status: Box::new(Status { code, ..status.clone() }), warnings: Vec::new() };
            }
            source = here.source();
        }
        Self::forbidden(error.to_string())
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status.code, self.status.reason, self.status.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the widget was not read")]
    struct Wrapped(#[source] Status);

    #[test]
    fn an_error_is_forbidden_and_a_status_among_its_sources_passes_through() {
        let plain = Rejection::from(std::io::Error::other("no"));
        assert_eq!((plain.code(), plain.reason(), plain.message()), (403, "Forbidden", "no"));
        let status = Status { code: 409, reason: "Conflict".into(), message: "twice".into(), ..Status::default() };
        let direct = Rejection::from(status.clone());
        assert_eq!((direct.code(), direct.reason(), direct.message()), (409, "Conflict", "twice"));
        let wrapped = Rejection::from(Wrapped(status.clone()));
        assert_eq!(wrapped, direct);
        let of_kube = Rejection::from(kube_client::Error::Api(Box::new(status)));
        assert_eq!(of_kube, direct);
        assert_eq!(Rejection::from(Status::default()).code(), 500, "a status without a code");
    }

    #[test]
    fn a_code_that_is_no_error_becomes_500() {
        assert_eq!(Rejection::new(200, "OK", "").code(), 500);
        assert_eq!(Rejection::new(418, "Teapot", "").code(), 418);
    }
}
