//! PURE. The metadata of an object in protobuf: which field is which.
//!
//! They are the first field of every object that can be listed, and `ObjectMeta` is the same in all of them: that is
//! all that needs to be known of an object whose type is not.

use crate::client::protobuf::wire::{Field, Fields, Malformed};

/// The field of an object.
pub(crate) const METADATA: u32 = 1;

pub(crate) const NAME: u32 = 1;
pub(crate) const NAMESPACE: u32 = 3;
pub(crate) const UID: u32 = 5;
pub(crate) const RESOURCE_VERSION: u32 = 6;
pub(crate) const GENERATION: u32 = 7;
pub(crate) const DELETION_TIMESTAMP: u32 = 9;
pub(crate) const LABELS: u32 = 11;
pub(crate) const ANNOTATIONS: u32 = 12;
pub(crate) const OWNER_REFERENCES: u32 = 13;
pub(crate) const MANAGED_FIELDS: u32 = 17;

/// The number of a field of `ObjectMeta` by its name in JSON.
pub(crate) fn tag_of(name: &str) -> Option<u32> {
    Some(match name {
        "name" => NAME,
        "generateName" => 2,
        "namespace" => NAMESPACE,
        "selfLink" => 4,
        "uid" => UID,
        "resourceVersion" => RESOURCE_VERSION,
        "generation" => GENERATION,
        "creationTimestamp" => 8,
        "deletionTimestamp" => DELETION_TIMESTAMP,
        "deletionGracePeriodSeconds" => 10,
        "labels" => LABELS,
        "annotations" => ANNOTATIONS,
        "ownerReferences" => OWNER_REFERENCES,
        "finalizers" => 14,
        "managedFields" => MANAGED_FIELDS,
        _ => return None,
    })
}

/// The fields of the metadata, up to whatever is wrong.
pub(crate) fn lenient_metadata(object: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let metadata = Fields::new(object).map_while(Result::ok).filter_map(|field| field.bytes(METADATA));
    metadata.flat_map(|metadata| Fields::new(metadata).map_while(Result::ok))
}

/// Name and value of a label or an annotation, each read by `text`.
pub(crate) fn map_entry<'a, T: Default>(
    message: &'a [u8],
    text: impl Fn(&Field<'a>) -> Result<T, Malformed>,
) -> Result<(T, T), Malformed> {
    let (mut name, mut value) = (T::default(), T::default());
    for field in Fields::new(message) {
        let field = field?;
        match field.tag {
            1 => name = text(&field)?,
            2 => value = text(&field)?,
            _ => {}
        }
    }
    Ok((name, value))
}
