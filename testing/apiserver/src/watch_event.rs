//! PURE. The lines of a watch, as far as they hold no object of the store.

use bytes::Bytes;
use serde_json::{Value, json};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventKind {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}

impl EventKind {
    /// As it stands on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// The line up to the object.
    pub(crate) const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Added => br#"{"type":"ADDED","object":"#,
            Self::Modified => br#"{"type":"MODIFIED","object":"#,
            Self::Deleted => br#"{"type":"DELETED","object":"#,
        }
    }
}

/// What ends the line of a change, after the object.
pub(crate) const SUFFIX: &[u8] = b"}\n";

/// One line of a watch: an envelope of this type around this object.
pub(crate) fn line(type_: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": type_, "object": object}).to_string();
    line.push('\n');
    Bytes::from(line)
}

/// The line of a change whose object has these bytes.
pub(crate) fn wrap(kind: EventKind, object: &[u8]) -> Bytes {
    Bytes::from([kind.prefix(), object, SUFFIX].concat())
}

/// The object in the line of a change of this kind. Shares the bytes.
pub(crate) fn object_of(kind: EventKind, line: &Bytes) -> Bytes {
    line.slice(kind.prefix().len()..line.len() - SUFFIX.len())
}

/// A bookmark: an object of this kind with nothing but a version, and the mark of the end of the initial events.
pub(crate) fn bookmark(kind: &str, api_version: &str, version: u64, initial_events_end: bool) -> Value {
    let mut object = json!({
        "kind": kind, "apiVersion": api_version,
        "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null},
    });
    if initial_events_end {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    object
}
