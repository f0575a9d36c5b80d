//! PURE. The rules of writing: create, update, patch, delete.

mod apply;
mod create;
mod defaults;
mod delete;
mod names;
mod object_meta;
#[cfg(test)]
mod tests;
mod update;
mod validation;

use std::sync::Arc;

use bytes::Bytes;
use kubewire_indexer::ObjectKey;
use serde_json::{Map, Value, json};

pub(crate) use apply::{FieldManager, not_typed};
pub(crate) use delete::{Collection, DeleteOptions};

use crate::stored::Stored;
use crate::{Resource, Status};

/// Where a write goes, and how it is meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    /// Empty for cluster scope.
    pub(crate) namespace: String,
    /// Empty for a create.
    pub(crate) name: String,
    /// Whether it goes to the status subresource.
    pub(crate) status: bool,
    /// Whether to check all and write nothing.
    pub(crate) dry_run: bool,
    /// Whether a test writes: then a created object keeps the status that it came with.
    pub(crate) direct: bool,
    /// Who writes, if that is to be noted.
    pub(crate) manager: Option<FieldManager>,
}

impl Target {
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

/// What a write made.
#[derive(Debug)]
pub(crate) enum Written {
    /// The object's present state.
    Stored(Arc<Stored>),
    /// The object is gone; its last state.
    Removed(Arc<Stored>),
    /// What would have been written: in a dry run, or where the object went instead.
    Dry(Value),
}

impl Written {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Stored(object) | Self::Removed(object) => object.to_value(),
            Self::Dry(object) => object.clone(),
        }
    }

    /// The object as JSON.
    pub(crate) fn object(&self) -> Bytes {
        match self {
            Self::Stored(object) | Self::Removed(object) => object.object(),
            Self::Dry(object) => Bytes::from(object.to_string()),
        }
    }
}

/// The object's metadata, made if it is not there. What came with the wrong type has been refused before.
fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("set to an object above"),
    }
}

/// A text in the object's metadata; empty where there is none.
fn meta_text<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Objects within objects. What is stored must be read again, and the JSON reader goes down 127 levels; a patch could
/// make more of two texts that each have less.
const DEPTH_MAX: usize = 100;

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Object(members), Some(rest)) => members.values().any(|value| is_deeper_than(value, rest)),
        (Value::Array(items), Some(rest)) => items.iter().any(|value| is_deeper_than(value, rest)),
        (Value::Object(_) | Value::Array(_), None) => true,
        _ => false,
    }
}

/// Checks what every object must keep to, whatever its kind: the types of the members that the server reads. Sets
/// `kind` and `apiVersion`.
fn check_shape(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    if is_deeper_than(object, DEPTH_MAX) {
        return Err(Status::bad_request(format!("the object is nested deeper than {DEPTH_MAX} levels")));
    }
    let Value::Object(members) = object else {
        return Err(Status::bad_request(format!("the body is not an object: want a {}", resource.kind)));
    };
    let api_version = resource.api_version();
    for (member, wanted) in [("kind", &*resource.kind), ("apiVersion", api_version.as_str())] {
        match members.get(member) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text == wanted || text.is_empty() => {}
            Some(other) => {
                let message =
                    format!("the object provided is unrecognized: {member} is {other}, but this path takes {wanted:?}");
                return Err(Status::bad_request(message));
            }
        }
        members.insert(member.to_owned(), json!(wanted));
    }
    let wrong = |field: &str, wanted: &str| Err(Status::bad_request(format!("cannot decode {field}: want {wanted}")));
    let metadata = match members.get_mut("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return wrong("metadata", "an object"),
    };
    metadata.retain(|_, value| !value.is_null());
    for (name, value) in metadata.iter() {
        match (name.as_str(), value) {
            ("labels" | "annotations", Value::Object(map)) if map.values().all(Value::is_string) => {}
            ("finalizers", Value::Array(list)) if list.iter().all(Value::is_string) => {}
            ("ownerReferences" | "managedFields", Value::Array(list)) if list.iter().all(Value::is_object) => {}
            ("generation" | "deletionGracePeriodSeconds", Value::Number(_)) => {}
            ("labels" | "annotations", _) => return wrong(&format!("metadata.{name}"), "an object of texts"),
            ("finalizers", _) => return wrong("metadata.finalizers", "a list of texts"),
            ("ownerReferences" | "managedFields", _) => return wrong(&format!("metadata.{name}"), "a list of objects"),
            ("generation" | "deletionGracePeriodSeconds", _) => return wrong(&format!("metadata.{name}"), "a number"),
            (_, Value::String(_)) => {}
            ("name" | "generateName" | "namespace" | "uid" | "resourceVersion", _) => {
                return wrong(&format!("metadata.{name}"), "a text");
            }
            _ => {}
        }
    }
    Ok(())
}
