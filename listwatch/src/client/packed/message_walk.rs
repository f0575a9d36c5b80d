//! PURE. Reads through the message of an object in protobuf once: notes what identifies it, and finds what is to be
//! cut out. What lies beside its metadata is passed over by its length.

use std::borrow::Cow;

use super::parts::{Owner, Part, Parts};
use super::table::NUMBER_MAX;
use crate::client::protobuf::edits::Edits;
use crate::client::protobuf::item::item_error;
use crate::client::protobuf::metadata::{
    ANNOTATIONS, DELETION_TIMESTAMP, GENERATION, LABELS, MANAGED_FIELDS, METADATA, NAME, NAMESPACE, OWNER_REFERENCES,
    RESOURCE_VERSION, UID, map_entry,
};
use crate::client::protobuf::wire::{Field, Fields, Malformed};
use crate::{DecodeOptions, ItemError};

/// Reads a whole message.
pub(super) fn read<'a>(message: &'a [u8], options: &DecodeOptions) -> Result<Parts<'a>, ItemError> {
    if message.len() > NUMBER_MAX / 2 {
        return Err(item_error(message, "the object is too long to be packed".to_owned()));
    }
    let mut parts = Parts::of(message);
    let tags = options.drop.metadata_tags() | 1 << MANAGED_FIELDS;
    match read_object(&mut parts, tags) {
        Ok(()) => Ok(parts),
        Err(error) => Err(item_error(message, error.to_string())),
    }
}

fn read_object(parts: &mut Parts<'_>, dropped: u32) -> Result<(), Malformed> {
    let mut edits = Edits::default();
    for field in Fields::new(parts.wire) {
        let field = field?;
        if field.tag == METADATA {
            let metadata = field.message()?;
            let length = field.value_start..field.end - metadata.len();
            edits.cut_fields(length, metadata, dropped, |field| take(parts, &field))?;
        }
    }
    parts.edits = edits;
    Ok(())
}

/// Takes a field of the metadata.
fn take<'a>(parts: &mut Parts<'a>, field: &Field<'a>) -> Result<(), Malformed> {
    match field.tag {
        NAME => parts.name = text(field)?,
        NAMESPACE => parts.namespace = text(field)?,
        UID => parts.uid = text(field)?,
        RESOURCE_VERSION => parts.resource_version = text(field)?,
        // Where JSON has none, there is a zero.
        GENERATION => parts.generation = Some(field.number()?.cast_signed()).filter(|generation| *generation != 0),
        DELETION_TIMESTAMP => parts.being_deleted = true,
        LABELS => {
            parts.labels.push(map_entry(field.message()?, text)?);
        }
        OWNER_REFERENCES => parts.owners.push(read_owner(field.message()?)?),
        _ => {}
    }
    Ok(())
}

/// Names and values.
type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The annotations of a message.
pub(super) fn annotations(message: &[u8]) -> Result<Pairs<'_>, Malformed> {
    let mut annotations = Vec::new();
    for field in Fields::new(message) {
        let field = field?;
        if field.tag != METADATA {
            continue;
        }
        for field in Fields::new(field.message()?) {
            let field = field?;
            if field.tag == ANNOTATIONS {
                let (name, value) = map_entry(field.message()?, Field::text)?;
                annotations.push((name.into(), value.into()));
            }
        }
    }
    Ok(annotations)
}

fn read_owner(message: &[u8]) -> Result<Owner<'_>, Malformed> {
    let mut owner = Owner::default();
    for field in Fields::new(message) {
        let field = field?;
        match field.tag {
            1 => owner.kind = text(&field)?,
            3 => owner.name = text(&field)?,
            4 => owner.uid = text(&field)?,
            5 => owner.api_version = text(&field)?,
            6 => owner.controller = field.number()? != 0,
            _ => {}
        }
    }
    Ok(owner)
}

/// Nearly all texts are ASCII and short: decoding them would be one mispredicted branch each, and twice the instructions.
fn text<'a>(field: &Field<'a>) -> Result<Part<'a>, Malformed> {
    let bytes = field.message()?;
    if bytes.is_ascii() { Ok(bytes.into()) } else { field.text().map(|text| text.as_bytes().into()) }
}
