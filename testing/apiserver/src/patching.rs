//! PURE. A PATCH's body applied to an object, its failures told as the API states them.

use serde_json::Value;

use crate::openapi::Type;
use crate::patch::{self, PatchType};
use crate::{Resource, Status};

/// Whether a body of this content type is applied, rather than a change.
pub(crate) fn is_apply(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    ["application/apply-patch+yaml", "application/apply-patch+json"].iter().any(|t| media_type.eq_ignore_ascii_case(t))
}

/// The configuration in the body of an apply: YAML, of which JSON is a part. Of a key that is there twice the last counts, or
/// it is refused, if `is_strict`.
pub(crate) fn configuration(body: &[u8], is_strict: bool) -> Result<Value, Status> {
    let config = read(body, is_strict)?;
    match config {
        Value::Object(_) => Ok(config),
        _ => Err(Status::bad_request("error decoding YAML: the configuration is not an object")),
    }
}

fn read(body: &[u8], is_strict: bool) -> Result<Value, Status> {
    if is_strict {
        return serde_saphyr::from_slice(body)
            .map_err(|error| Status::bad_request(format!("error strict decoding patch: {error}")));
    }
    // Most clients send JSON, which its own reader reads faster.
    if let Ok(config) = serde_json::from_slice(body) {
        return Ok(config);
    }
    serde_saphyr::from_slice(body).map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))
}

/// The object that a patch of this content type makes of `object`.
pub(crate) fn apply(content_type: &str, body: &[u8], object: Value, resource: &Resource) -> Result<Value, Status> {
    let failed = |error: patch::PatchError| {
        let code = error.status_code().as_u16();
        let reason = match code {
            413 => "RequestEntityTooLarge",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            _ => "BadRequest",
        };
        Status::new(code, reason, error.to_string())
    };
    let patch_type = PatchType::from_content_type(content_type, !resource.custom).map_err(failed)?;
    let of = if resource.custom { None } else { Type::of_kind(&resource.group, &resource.version, &resource.kind) };
    patch::apply(patch_type, body, object, of).map_err(failed)
}
