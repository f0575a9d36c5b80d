//! PURE. Reads a Kubernetes `Status`, also one that lacks parts or holds odd ones, in JSON or in protobuf.

use serde_json::Value;

use crate::client::excerpt::{cut, excerpt};
use crate::client::protobuf::status::value_of_envelope;
use crate::client::retry_after::seconds;
use crate::error::TOO_LARGE;
use crate::{ErrorClass, RequestError, Status};

/// Longer messages are cut.
const MESSAGE_LEN_MAX: usize = 4 << 10;
/// More causes than this are not kept.
const CAUSES_MAX: usize = 32;

/// The error that an answer with an HTTP status of failure stands for, from its body: a `Status`, or any text.
pub(crate) fn error_of_answer(code: u16, body: &[u8]) -> RequestError {
    match read(body).filter(is_status) {
        Some(value) => error_of_status(&value, code),
        None => {
            let message = match excerpt(body) {
                text if text.is_empty() => format!("the server answered {code} without a word"),
                text => format!("the server answered {code}: {text}"),
            };
            RequestError::from_status(Status { code, message, ..Status::default() })
        }
    }
}

/// The error that the object of an `ERROR` event stands for, whatever it is.
pub(crate) fn error_of_event(object: &[u8]) -> RequestError {
    match read(object) {
        Some(value) if value.is_object() => error_of_status(&value, 0),
        _ => {
            let message = format!("the server sent an ERROR event without a Status: {}", excerpt(object));
            RequestError::new(ErrorClass::Other, message)
        }
    }
}

/// The value of an object in either format: how it begins tells in which.
fn read(object: &[u8]) -> Option<Value> {
    value_of_envelope(object).or_else(|| serde_json::from_slice(object).ok())
}

/// The error that a `Status` stands for; `code` where it has none itself.
pub(crate) fn error_of_status(value: &Value, code: u16) -> RequestError {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let own_code = value["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code != 0);
    let causes = value["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut status = Status {
        code: own_code.unwrap_or(code),
        reason: text("reason"),
        message: text("message"),
        causes: causes.iter().take(CAUSES_MAX).filter_map(cause).collect(),
    };
    cut(&mut status.message, MESSAGE_LEN_MAX);
    if status.code == 0 && status.reason.is_empty() && status.message.is_empty() {
        status.message =
            format!("the server sent an error that says nothing: {}", excerpt(value.to_string().as_bytes()));
    }
    let retry_after = value["details"]["retryAfterSeconds"].as_u64().filter(|wait| *wait > 0).map(seconds);
    RequestError::from_status(status).with_retry_after(retry_after)
}

/// Whether a JSON value is a `Status`; the kind alone decides, as in client-go.
pub(crate) fn is_status(value: &Value) -> bool {
    value["kind"] == "Status"
}

/// The reason of a cause; its message where that says what old servers give no reason for, or where it is alone.
fn cause(cause: &Value) -> Option<String> {
    let part = |name: &str| cause[name].as_str().filter(|text| !text.is_empty());
    let message = part("message");
    let mut text = match part("reason") {
        Some(reason) if !message.is_some_and(|message| message.contains(TOO_LARGE)) => reason,
        _ => message?,
    }
    .to_owned();
    cut(&mut text, MESSAGE_LEN_MAX);
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn class_of_event(object: &Value) -> ErrorClass {
        error_of_event(object.to_string().as_bytes()).class()
    }

    #[test]
    fn all_forms_of_expired_are_one_class() {
        for object in [
            json!({"kind": "Status", "code": 410, "reason": "Expired"}),
            json!({"kind": "Status", "code": 410, "reason": "Gone"}),
            json!({"kind": "Status", "reason": "Expired"}),
            json!({"code": 410}),
        ] {
            assert_eq!(class_of_event(&object), ErrorClass::Expired, "{object}");
        }
        assert_eq!(error_of_answer(410, b"").class(), ErrorClass::Expired);
    }

    #[test]
    fn all_three_forms_of_a_version_too_large_are_one_class() {
        for object in [
            json!({"reason": "Timeout", "code": 504, "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}}),
            json!({"reason": "Timeout", "code": 504, "details": {"causes": [{"message": "Too large resource version"}]}}),
            json!({"reason": "Timeout", "code": 504, "details": {"causes": [{"reason": "x", "message": "Too large resource version"}]}}),
            json!({"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}}),
            json!({"reason": "Timeout", "code": 504, "message": "Timeout: Too large resource version: 20, current: 10"}),
        ] {
            assert_eq!(class_of_event(&object), ErrorClass::VersionTooLarge, "{object}");
        }
        assert_eq!(class_of_event(&json!({"reason": "Timeout", "code": 504})), ErrorClass::Unavailable);
    }

    #[test]
    fn an_error_event_is_an_error_whatever_its_object_is() {
        for object in [
            "null",
            "\"text\"",
            "12",
            "{}",
            "[]",
            "no json",
            "",
            "{\"kind\":\"Pod\"}",
            "{\"code\":\"x\",\"message\":7}",
        ] {
            let error = error_of_event(object.as_bytes());
            assert_eq!(error.class(), ErrorClass::Other, "{object}");
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn an_answer_of_plain_text_keeps_its_code_and_an_excerpt() {
        let error = error_of_answer(503, b"<html>\n<h1>Service  Unavailable</h1>");
        assert_eq!(error.class(), ErrorClass::Unavailable);
        assert_eq!(error.status().unwrap().code, 503);
        assert_eq!(error.to_string(), "unavailable: the server answered 503: <html> <h1>Service Unavailable</h1>");
    }

    #[test]
    fn the_details_may_tell_when_to_come_again() {
        let body = json!({"kind": "Status", "reason": "TooManyRequests", "details": {"retryAfterSeconds": 2}});
        let error = error_of_answer(429, body.to_string().as_bytes());
        assert_eq!((error.class(), error.retry_after()), (ErrorClass::Throttled, Some(Duration::from_secs(2))));
    }

    #[test]
    fn a_long_message_is_cut() {
        let object = json!({"code": 500, "message": "é".repeat(100_000)});
        assert!(error_of_event(object.to_string().as_bytes()).to_string().len() < MESSAGE_LEN_MAX + 100);
    }
}
