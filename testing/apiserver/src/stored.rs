//! PURE. One object as the server holds it: the bytes that go out, and beside them what selectors ask for.

use std::sync::OnceLock;

use bytes::Bytes;
use kubewire_indexer::ObjectKey;
use serde_json::Value;

use crate::Resource;
use crate::pairs::Pairs;
use crate::watch_event::{EventKind, SUFFIX};

/// One state of one object.
///
/// The object is held once, as the line of the watch event that made it:
///
/// ```text
/// {"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"42","name":…}…}}⏎
///                             ^ object_at                                                     ^ rest_at
/// ```
///
/// and, once somebody has asked for protobuf, as its message beside that. So the common event is one shared buffer, the object is a slice of it, and an item of a list another. The
/// version stands first in the metadata, so that another one is set without reading the object.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: ObjectKey,
    pub(crate) version: u64,
    pub(crate) uid: Box<str>,
    pub(crate) labels: Pairs,
    /// The fields that field selectors may name, besides name and namespace; empty values are left out.
    pub(crate) fields: Pairs,
    line: Bytes,
    /// The object in protobuf, once somebody has asked for it. Not counted in the size, which must not change.
    message: OnceLock<Bytes>,
    kind: EventKind,
    /// Where the object begins in `line`.
    object_at: u32,
    /// Where `"metadata"` begins in `line`: after `apiVersion`.
    metadata_at: u32,
    /// Where the line goes on after the version's closing quote.
    rest_at: u32,
}

/// An object that waits for its version.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) key: ObjectKey,
    uid: Box<str>,
    labels: Pairs,
    fields: Pairs,
    /// Everything after the version's closing quote, up to the object's last brace.
    rest: Vec<u8>,
}

/// The members of `metadata` in the order in which the real server writes them; others follow.
const METADATA_ORDER: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

impl Draft {
    /// The draft of a whole object. `object.metadata` must hold its name, and its namespace if it has one.
    pub(crate) fn new(resource: &Resource, object: &Value) -> Self {
        let metadata = object.get("metadata").and_then(Value::as_object);
        let text = |name| metadata.and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default();
        let labels = metadata.and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
        let labels = labels.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        Self {
            key: ObjectKey::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            labels: labels.collect(),
            fields: crate::fields::of(resource, object),
            rest: encode_rest(object),
        }
    }

    /// The draft of an object whose parts are known, and whose text from after the version on is `rest`: for
    /// generated objects, which need not be read again.
    pub(crate) fn from_parts(key: ObjectKey, uid: &str, labels: Pairs, fields: Pairs, rest: Vec<u8>) -> Self {
        Self { key, uid: uid.into(), labels, fields, rest }
    }

    /// The object in the state `version`, which it reached by an event of this kind.
    pub(crate) fn commit(self, resource: &Resource, kind: EventKind, version: u64) -> Stored {
        let (line, places) = write_line(resource, kind, version, &self.rest);
        let Self { key, uid, labels, fields, .. } = self;
        let [object_at, metadata_at, rest_at] = places;
        Stored {
            key,
            version,
            uid,
            labels,
            fields,
            line,
            message: OnceLock::new(),
            kind,
            object_at,
            metadata_at,
            rest_at,
        }
    }
}

fn write_line(resource: &Resource, kind: EventKind, version: u64, rest: &[u8]) -> (Bytes, [u32; 3]) {
    let mut line = Vec::with_capacity(kind.prefix().len() + rest.len() + 160);
    line.extend_from_slice(kind.prefix());
    let object_at = line.len() as u32;
    line.extend_from_slice(
        format!(r#"{{"kind":"{}","apiVersion":"{}","#, resource.kind, resource.api_version()).as_bytes(),
    );
    let metadata_at = line.len() as u32;
    line.extend_from_slice(format!(r#""metadata":{{"resourceVersion":"{version}""#).as_bytes());
    let rest_at = line.len() as u32;
    line.extend_from_slice(rest);
    line.extend_from_slice(SUFFIX);
    line.shrink_to_fit();
    (Bytes::from(line), [object_at, metadata_at, rest_at])
}

/// The text of an object from after the version on.
pub(crate) fn encode_rest(object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    if let Some(metadata) = object.get("metadata").and_then(Value::as_object) {
        for name in METADATA_ORDER {
            if let Some(value) = metadata.get(name) {
                member(&mut out, name, value);
            }
        }
        for (name, value) in metadata {
            if name != "resourceVersion" && !METADATA_ORDER.contains(&name.as_str()) {
                member(&mut out, name, value);
            }
        }
    }
    out.push(b'}');
    for (name, value) in object.as_object().into_iter().flatten() {
        if !["kind", "apiVersion", "metadata", "status"].contains(&name.as_str()) {
            member(&mut out, name, value);
        }
    }
    if let Some(status) = object.get("status") {
        member(&mut out, "status", status);
    }
    out.push(b'}');
    out
}

fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    out.push(b',');
    // Writing to a vector does not fail, and a `Value` has only text keys.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

impl Stored {
    /// The object in protobuf, without an envelope, made by `make` if it was not yet.
    pub(crate) fn message(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        self.message.get_or_init(make).clone()
    }

    /// The object as JSON. Shares the stored bytes.
    pub(crate) fn object(&self) -> Bytes {
        self.line.slice(self.object_at as usize..self.line.len() - SUFFIX.len())
    }

    /// The parts of an item of a list, to be written one after the other. Items of built-in kinds have no `kind`
    /// and `apiVersion`, as from the real server; items of custom resources do.
    pub(crate) fn list_item(&self, with_type: bool) -> [&[u8]; 2] {
        let end = self.line.len() - SUFFIX.len();
        match with_type {
            true => [&self.line[self.object_at as usize..end], b""],
            false => [b"{", &self.line[self.metadata_at as usize..end]],
        }
    }

    /// The line of an event of this kind in one or two parts. Shares the stored bytes.
    pub(crate) fn event(&self, kind: EventKind) -> (Bytes, Option<Bytes>) {
        if kind == self.kind {
            return (self.line.clone(), None);
        }
        (Bytes::from_static(kind.prefix()), Some(self.line.slice(self.object_at as usize..)))
    }

    /// The same object at another version, as an event of this kind has it.
    ///
    /// Cost: a copy of the bytes.
    pub(crate) fn at_version(&self, resource: &Resource, kind: EventKind, version: u64) -> Self {
        let rest = &self.line[self.rest_at as usize..self.line.len() - SUFFIX.len()];
        let (line, [object_at, metadata_at, rest_at]) = write_line(resource, kind, version, rest);
        Self {
            key: self.key.clone(),
            version,
            uid: self.uid.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            line,
            message: OnceLock::new(),
            kind,
            object_at,
            metadata_at,
            rest_at,
        }
    }

    /// The object, read.
    pub(crate) fn to_value(&self) -> Value {
        let end = self.line.len() - SUFFIX.len();
        // The line was written by this server from a value, or by its pod generator, whose tests read it.
        serde_json::from_slice(&self.line[self.object_at as usize..end]).unwrap_or(Value::Null)
    }

    /// How much memory the object takes, roughly.
    pub(crate) fn size(&self) -> usize {
        self.line.len() + self.labels.size() + self.fields.size() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Registry;

    #[test]
    fn an_object_comes_out_as_it_went_in_with_its_version() {
        let registry = Registry::default();
        let pods = registry.get(&"pods".into()).unwrap();
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}, "spec": {"nodeName": "n1"},
            "metadata": {"x": 1, "labels": {"a": "b", "quote\"": "\u{e9}"}, "name": "p", "namespace": "ns", "uid": "u"},
        });
        let stored = Draft::new(pods, &object).commit(pods, EventKind::Added, 42);
        let mut expected = object.clone();
        expected["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(stored.to_value(), expected);
        assert_eq!(stored.key.as_str(), "ns/p");
        assert_eq!(
            (&*stored.uid, stored.labels.get("a"), stored.fields.get("spec.nodeName")),
            ("u", Some("b"), Some("n1"))
        );

        let moved = stored.at_version(pods, EventKind::Deleted, 100);
        expected["metadata"]["resourceVersion"] = json!("100");
        assert_eq!(moved.to_value(), expected);
        for kind in [EventKind::Added, EventKind::Modified, EventKind::Deleted] {
            let (first, second) = moved.event(kind);
            assert_eq!(second.is_none(), kind == EventKind::Deleted, "the event that made the object is one buffer");
            let line = [&first[..], &second.unwrap_or_default()].concat();
            assert_eq!(line.last(), Some(&b'\n'));
            let event: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(event, json!({"type": kind.as_str(), "object": expected}));
        }
        let item: Value = serde_json::from_slice(&moved.list_item(false).concat()).unwrap();
        let object = expected.as_object_mut().unwrap();
        object.remove("kind");
        object.remove("apiVersion");
        assert_eq!(item, expected);
    }
}
