//! PURE. A PATCH's body applied to an object.

use serde_json::Value;

use crate::{Resource, Status};

/// The object that a patch of this content type makes of `object`.
pub(crate) fn apply(content_type: &str, body: &[u8], mut object: Value, _resource: &Resource) -> Result<Value, Status> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/merge-patch+json" => {
            let patch = serde_json::from_slice(body).map_err(|e| Status::bad_request(e.to_string()))?;
            json_patch::merge(&mut object, &patch);
            Ok(object)
        }
        other => Err(Status::unsupported_media_type(other)),
    }
}
