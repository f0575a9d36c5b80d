//! PURE. A Kubernetes `Status` in protobuf, as the JSON value that it would be: so that errors are classified by one
//! rule, whatever they come in.

use serde_json::{Value, json};

use crate::client::protobuf::envelope::{Envelope, MAGIC};
use crate::client::protobuf::wire::{Field, Fields};

/// The value of an envelope; of a `Status` as much as can be read, of another object the type alone.
pub(crate) fn value_of_envelope(bytes: &[u8]) -> Option<Value> {
    if !bytes.starts_with(&MAGIC) {
        return None;
    }
    // The bytes of an error may have been cut off: what stands before the cut is read.
    let envelope = Envelope::read(bytes).unwrap_or_else(|_| rescue(bytes));
    Some(match envelope.type_meta.kind {
        "Status" => value_of_status(envelope.raw),
        kind => json!({"apiVersion": envelope.type_meta.api_version, "kind": kind}),
    })
}

/// The value of a `Status` without its envelope.
pub(crate) fn value_of_status(message: &[u8]) -> Value {
    let mut value = json!({"kind": "Status"});
    for field in fields(message) {
        match field.tag {
            2 => value["status"] = text(&field),
            3 => value["message"] = text(&field),
            4 => value["reason"] = text(&field),
            5 => value["details"] = details(field.message().unwrap_or_default()),
            6 => value["code"] = number(&field),
            _ => {}
        }
    }
    value
}

fn details(message: &[u8]) -> Value {
    let mut causes = Vec::new();
    let mut retry_after = Value::Null;
    for field in fields(message) {
        match field.tag {
            4 => causes.push(cause(field.message().unwrap_or_default())),
            5 => retry_after = number(&field),
            _ => {}
        }
    }
    json!({"causes": causes, "retryAfterSeconds": retry_after})
}

fn cause(message: &[u8]) -> Value {
    let mut value = json!({});
    for field in fields(message) {
        match field.tag {
            1 => value["reason"] = text(&field),
            2 => value["message"] = text(&field),
            _ => {}
        }
    }
    value
}

/// The fields before whatever is wrong.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Fields::new(message).map_while(Result::ok)
}

fn text(field: &Field<'_>) -> Value {
    field.text().unwrap_or_default().into()
}

/// Numbers below zero are none.
fn number(field: &Field<'_>) -> Value {
    field.number().ok().filter(|number| i64::try_from(*number).is_ok()).map_or(Value::Null, Value::from)
}

/// The type and the beginning of the object in an envelope that was cut off within it.
fn rescue(bytes: &[u8]) -> Envelope<'_> {
    let mut envelope = Envelope::default();
    let mut end = MAGIC.len();
    for field in fields(&bytes[MAGIC.len()..]) {
        end = MAGIC.len() + field.end;
        if let Some(type_meta) = field.bytes(1) {
            envelope.type_meta = crate::client::protobuf::envelope::TypeMeta::read(type_meta).unwrap_or_default();
        }
    }
    // The key and the length of the object, then what is there of it.
    if bytes.get(end) == Some(&0x12) {
        let len = bytes[end + 1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
        envelope.raw = bytes.get(end + 1 + len..).unwrap_or_default();
    }
    envelope
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an API server of version 1.37 answers for a ConfigMap that is not there.
    const NOT_FOUND: &[u8] = include_bytes!("../../../tests/it/protobuf/not_found.pb");

    #[test]
    fn a_recorded_status_reads_as_it_would_in_json() {
        let value = value_of_envelope(NOT_FOUND).unwrap();
        let details = json!({"causes": [], "retryAfterSeconds": 0});
        let message = "configmaps \"x\" not found";
        let expected = json!({"kind": "Status", "status": "Failure", "message": message, "reason": "NotFound", "details": details, "code": 404});
        assert_eq!(value, expected);
    }

    #[test]
    fn causes_and_the_time_to_wait_are_read() {
        let cause = b"\x0a\x17ResourceVersionTooLarge\x12\x01m";
        let mut details = vec![0x22, cause.len() as u8];
        details.extend_from_slice(cause);
        details.extend_from_slice(b"\x28\x07");
        let mut message = vec![0x2a, details.len() as u8];
        message.extend_from_slice(&details);
        let value = value_of_status(&message);
        assert_eq!(value["details"]["causes"], json!([{"reason": "ResourceVersionTooLarge", "message": "m"}]));
        assert_eq!(value["details"]["retryAfterSeconds"], 7);
    }

    #[test]
    fn a_status_that_was_cut_off_says_what_stands_before_the_cut() {
        for len in 0..NOT_FOUND.len() {
            let value = value_of_envelope(&NOT_FOUND[..len]);
            assert_eq!(value.is_some(), len >= 4, "{len} bytes");
        }
        let value = value_of_envelope(&NOT_FOUND[..NOT_FOUND.len() - 30]).unwrap();
        assert_eq!((&value["kind"], &value["reason"]), (&json!("Status"), &json!("NotFound")));
        assert_eq!(value_of_envelope(b"k8s\0\x0a\x05\x12\x03Pod"), Some(json!({"apiVersion": "", "kind": "Pod"})));
        assert_eq!(value_of_envelope(b"{}"), None);
    }
}
