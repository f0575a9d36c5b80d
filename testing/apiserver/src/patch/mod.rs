//! The three kinds of PATCH that change an object by a document: JSON patch (RFC 6902), JSON merge patch (RFC 7396) and
//! the Kubernetes strategic merge patch. Pure functions: an object and a body in, an object or an error out.
//!
//! What a patch may not touch (name, namespace, uid), a `resourceVersion` inside it, and validation of what comes out
//! are the caller's matter, as for an update.

mod error;
mod order;
mod strategic;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use json_patch::{AddOperation, PatchOperation, jsonptr};
use serde_json::Value;

pub(crate) use error::PatchError;

use crate::openapi::Type;

/// As many operations as the API server allows in one JSON patch.
const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;

/// What the `copy` operations of one JSON patch may copy together.
const JSON_PATCH_COPIED_BYTES_MAX: usize = 3 << 20;

/// How the body of a PATCH changes the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// A list of operations, RFC 6902.
    Json,
    /// A partial object; `null` removes a member, a list replaces a list. RFC 7396.
    Merge,
    /// A partial object; lists are merged by the keys that the Kubernetes API states for them. Only built-in kinds.
    Strategic,
}

impl PatchType {
    const ALL: [PatchType; 3] = [PatchType::Json, PatchType::Merge, PatchType::Strategic];

    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
        }
    }

    /// What a resource takes: `built_in` ones all three, custom ones no strategic merge.
    pub(crate) fn accepted(built_in: bool) -> impl Iterator<Item = PatchType> {
        Self::ALL.into_iter().filter(move |t| built_in || *t != PatchType::Strategic)
    }

    /// Reads a `Content-Type` header; parameters after `;` do not count.
    ///
    /// # Errors
    /// [`PatchError::UnsupportedMediaType`] for everything else, server-side apply (`application/apply-patch+yaml`)
    /// included.
    pub(crate) fn from_content_type(content_type: &str, built_in: bool) -> Result<Self, PatchError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        Self::accepted(built_in).find(|t| t.content_type().eq_ignore_ascii_case(media_type)).ok_or_else(|| {
            PatchError::UnsupportedMediaType {
                content_type: content_type.to_owned(),
                accepted: Self::accepted(built_in).map(Self::content_type).collect::<Vec<_>>().join(", "),
            }
        })
    }
}

/// The object that `body` makes of `current`. `of` is the type of a built-in kind, `None` for a custom resource.
///
/// Costs O(object + patch), lists O(n²) in their length when they are merged by key.
///
/// # Errors
/// [`PatchError`]; the object is then lost, so patch a copy of what is stored.
pub(crate) fn apply(
    patch_type: PatchType,
    body: &[u8],
    current: Value,
    of: Option<&Type>,
) -> Result<Value, PatchError> {
    let patched = match patch_type {
        PatchType::Json => json_patch(current, body)?,
        PatchType::Merge => json_merge(current, body)?,
        PatchType::Strategic => strategic::merge(current, serde_json::from_slice(body)?, of)?,
    };
    if !patched.is_object() {
        return Err(PatchError::Unprocessable(format!("the patch leaves {} where an object was", name_of(&patched))));
    }
    Ok(patched)
}

fn json_patch(mut object: Value, body: &[u8]) -> Result<Value, PatchError> {
    let patch: json_patch::Patch = serde_json::from_slice(body)?;
    if patch.len() > JSON_PATCH_OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations { max: JSON_PATCH_OPERATIONS_MAX, got: patch.len() });
    }
    let mut copied_bytes = 0;
    for (index, operation) in patch.iter().enumerate() {
        if let PatchOperation::Copy(copy) = operation
            && let Some(value) = object.pointer(copy.from.as_str())
        {
            // Copies of copies double each time; without a bound, a short patch makes a huge object.
            copied_bytes += value.to_string().len();
            if copied_bytes > JSON_PATCH_COPIED_BYTES_MAX {
                return Err(PatchError::TooManyCopies { max_bytes: JSON_PATCH_COPIED_BYTES_MAX });
            }
        }
        let Some(operation) = as_the_real_server(&object, operation) else { continue };
        json_patch::patch(&mut object, std::slice::from_ref(&*operation)).map_err(|mut error| {
            error.operation = index;
            error
        })?;
    }
    Ok(object)
}

/// The operation as the real server takes it, where a member is not there but its object is: to replace it adds it, and to
/// test that it is null goes well (`None`).
fn as_the_real_server<'a>(object: &Value, operation: &'a PatchOperation) -> Option<Cow<'a, PatchOperation>> {
    let is_missing_member = |path: &jsonptr::Pointer| {
        let parent = path.parent().and_then(|parent| object.pointer(parent.as_str()));
        parent.is_some_and(Value::is_object) && object.pointer(path.as_str()).is_none()
    };
    match operation {
        PatchOperation::Replace(replace) if is_missing_member(&replace.path) => {
            let add = AddOperation { path: replace.path.clone(), value: replace.value.clone() };
            Some(Cow::Owned(PatchOperation::Add(add)))
        }
        PatchOperation::Test(test) if test.value.is_null() && is_missing_member(&test.path) => None,
        operation => Some(Cow::Borrowed(operation)),
    }
}

fn json_merge(mut object: Value, body: &[u8]) -> Result<Value, PatchError> {
    let patch: Value = serde_json::from_slice(body)?;
    if !patch.is_object() {
        return Err(PatchError::NotAnObject(name_of(&patch)));
    }
    json_patch::merge(&mut object, &patch);
    Ok(object)
}

/// What to call a value in a message.
fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
