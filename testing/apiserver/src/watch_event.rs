//! PURE. The lines of a watch, as far as they hold no object of the store.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{Resource, Status};

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
    #[cfg(test)]
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

/// One line of a watch: an envelope of this type around this object.
pub(crate) fn line(type_: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": type_, "object": object}).to_string();
    line.push('\n');
    Bytes::from(line)
}

/// An `ERROR` event.
pub(crate) fn error(status: &Status) -> Bytes {
    line("ERROR", &status.to_value())
}

/// A bookmark's object of this kind: nothing but a version, and the mark of the end of the initial events.
pub(crate) fn bookmark_object(kind: &str, api_version: &str, version: u64, initial_events_end: bool) -> Value {
    let mut object = json!({
        "kind": kind, "apiVersion": api_version,
        "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null},
    });
    if initial_events_end {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    object
}

/// A bookmark of a watch of whole objects.
pub(crate) fn bookmark(resource: &Resource, version: u64, initial_events_end: bool) -> Bytes {
    let object = bookmark_object(&resource.kind, &resource.api_version(), version, initial_events_end);
    line("BOOKMARK", &object)
}
