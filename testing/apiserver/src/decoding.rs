//! PURE. The reading of an object that a client sends: wrong types, unknown fields.

use serde_json::Value;

use crate::openapi::{self, Type};
use crate::route::Query;
use crate::status::Cause;
use crate::{Resource, Status};

/// What to do about fields that do not exist: the query's `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn parse(query: &Query) -> Result<Self, Status> {
        match query.text("fieldValidation") {
            Some("Ignore") => Ok(Self::Ignore),
            Some("Warn") | None => Ok(Self::Warn),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => {
                let cause = Cause::not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
                Err(Status::invalid_options("CreateOptions", vec![cause]))
            }
        }
    }

    /// Reads an object of a built-in kind: fields that do not exist are dropped, refused where that was asked for, and
    /// returned as warnings else. The fields of custom resources are not known, so all are kept.
    pub(crate) fn read(self, resource: &Resource, object: &mut Value) -> Result<Vec<String>, Status> {
        let of = if resource.custom { None } else { Type::of_kind(&resource.group, &resource.version, &resource.kind) };
        let Some(of) = of else { return Ok(Vec::new()) };
        let (kind, version) = (&resource.kind, &resource.version);
        let refused = |why: String| {
            Err(Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")))
        };
        match (openapi::decode(of, object), self) {
            (Err(error), _) => refused(error.to_string()),
            (Ok(unknown), Self::Strict) if !unknown.is_empty() => {
                refused(format!("strict decoding error: {}", unknown.join(", ")))
            }
            (Ok(unknown), Self::Warn) => Ok(unknown),
            (Ok(_), _) => Ok(Vec::new()),
        }
    }
}
