//! PURE. A PATCH's body applied to an object, its failures told as the API states them.

use serde_json::Value;

use crate::openapi::Type;
use crate::patch::{self, PatchType};
use crate::{Resource, Status};

/// The object that a patch of this content type makes of `object`.
pub(crate) fn apply(content_type: &str, body: &[u8], object: Value, resource: &Resource) -> Result<Value, Status> {
    if content_type.starts_with("application/apply-patch") {
        let message = "server-side apply is not supported by this server: use a merge patch, a JSON patch or a strategic \
            merge patch (kubectl: without --server-side)";
        return Err(Status::unsupported_media_type(message));
    }
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
