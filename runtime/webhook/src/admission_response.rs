//! What an API server is answered. PURE: a decision in, JSON out.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde_json::{Value, json};

use crate::Rejection;

/// Whether a request is admitted, and with what changes.
///
/// ```
/// use kubewire_webhook::{AdmissionResponse, Rejection};
///
/// let yes = AdmissionResponse::allowed().warning("spec.size is deprecated: use spec.replicas").audit("size", "small");
/// let no = AdmissionResponse::from(Rejection::invalid("spec.replicas must be positive"));
/// assert!(yes.is_allowed() && !no.is_allowed());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "it is to be returned"]
pub struct AdmissionResponse {
    rejection: Option<Rejection>,
    patch: Patch,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

impl AdmissionResponse {
    /// Admitted as it is.
    pub fn allowed() -> Self {
        Self { rejection: None, patch: Patch::default(), warnings: Vec::new(), audit_annotations: BTreeMap::new() }
    }

    /// Not allowed (403), with this message. For other codes, see [`Rejection`].
    pub fn denied(message: impl Into<String>) -> Self {
        Rejection::forbidden(message).into()
    }

    /// Admitted with these changes, which a mutating webhook may make. [`patch_between`](crate::patch_between) finds them.
    pub fn patched(patch: Patch) -> Self {
        Self { patch, ..Self::allowed() }
    }

    /// With a warning for whoever sent the request; an API server shortens those beyond 256 characters.
    pub fn warning(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }

    /// With several warnings.
    pub fn warnings(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.warnings.extend(texts.into_iter().map(Into::into));
        self
    }

    /// With a line for the audit log; the API server puts the webhook's name before the key.
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// Whether it is admitted.
    pub fn is_allowed(&self) -> bool {
        self.rejection.is_none()
    }

    /// Why it is not admitted.
    pub fn rejection(&self) -> Option<&Rejection> {
        self.rejection.as_ref()
    }

    /// The changes.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// As the `response` of an `AdmissionReview`.
    pub(crate) fn to_json(&self, uid: &str) -> Value {
        let mut response = json!({ "uid": uid, "allowed": self.is_allowed() });
        match &self.rejection {
            Some(rejection) => response["status"] = rejection.to_json(),
            None if !self.patch.0.is_empty() => {
                // A patch is a list of objects with texts as keys: it can be written.
                let patch = serde_json::to_vec(&self.patch).unwrap_or_default();
                response["patch"] = STANDARD.encode(patch).into();
                response["patchType"] = "JSONPatch".into();
            }
            None => {}
        }
        if !self.warnings.is_empty() {
            response["warnings"] = self.warnings.clone().into();
        }
        if !self.audit_annotations.is_empty() {
            response["auditAnnotations"] = json!(self.audit_annotations);
        }
        response
    }
}

impl From<Rejection> for AdmissionResponse {
    fn from(mut rejection: Rejection) -> Self {
        let warnings = rejection.take_warnings();
        Self { rejection: Some(rejection), warnings, ..Self::allowed() }
    }
}

impl From<Result<AdmissionResponse, Rejection>> for AdmissionResponse {
    fn from(result: Result<AdmissionResponse, Rejection>) -> Self {
        result.unwrap_or_else(Into::into)
    }
}
