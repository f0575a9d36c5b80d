//! What clients ask of OpenAPI, and what the server itself needs of it: the fields of the built-in kinds.
//!
//! [`Type`] holds the facts. Of them are made the schemas in the OpenAPI v3 documents ([`document`]), by which kubectl
//! decides that the server validates fields and takes a strategic merge patch, computes the patches of `apply`, and
//! answers `explain`; and the check of what a client sends ([`decode`]). The merge patch reads them too.

mod decode;
mod document;
mod encode;
mod protobuf;
mod schema;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use decode::decode;
pub(crate) use document::document;
pub(crate) use encode::{ListHead, envelope, frame, item_len, message, put_item, to_protobuf};
pub(crate) use protobuf::{MEDIA_TYPE as PROTOBUF, to_json};
pub(crate) use types::{Field, Shape, Type};
