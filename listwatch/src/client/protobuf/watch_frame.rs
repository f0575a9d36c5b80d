//! PURE. One frame of a watch in protobuf: an event, or the error that ends the stream.

use kubewire_indexer::Id;

use crate::client::codec::Protobuf;
use crate::client::excerpt::excerpt;
use crate::client::protobuf::envelope::{Envelope, MAGIC};
use crate::client::protobuf::item::{item_error, peek, read_item};
use crate::client::protobuf::metadata::{ANNOTATIONS, RESOURCE_VERSION, lenient_metadata, map_entry};
use crate::client::protobuf::wire::{Field, Fields, Malformed};
use crate::client::shaped::Types;
use crate::client::status::error_of_event;
use crate::client::watch_line::{INITIAL_EVENTS_END, bookmark, change, event, unknown};
use crate::{Decode, DecodeOptions, ErrorClass, ItemError, RequestError, WatchEvent};

/// Reads one frame. The error is the last thing of the stream: an `ERROR` event, a bare `Status`, or something that
/// is no event at all (and so may have been a change).
pub(crate) fn read_frame<O: Decode<Protobuf>>(
    frame: &[u8],
    options: &DecodeOptions,
) -> Result<WatchEvent<O>, RequestError> {
    if frame.starts_with(&MAGIC) {
        return Err(error_of_event(frame));
    }
    let (kind, object) = read_event(frame).map_err(|error| no_event(frame, &error.to_string()))?;
    match (kind, change(kind)) {
        ("", _) => Err(no_event(frame, "it has no type")),
        ("ERROR", _) => Err(error_of_event(object)),
        ("BOOKMARK", _) => Ok(read_bookmark(object, options.types.as_ref())),
        (_, None) => Ok(unknown(kind.to_owned())),
        (_, Some(_)) if object.is_empty() => Err(no_event(frame, "it has no object")),
        (_, Some(kind)) => Ok(match read_object(object, options) {
            Ok(object) => event(kind, object),
            Err(error) => WatchEvent::Undecodable { kind, error },
        }),
    }
}

/// Which state of which object a frame adds, as far as can be told without decoding it.
pub(crate) fn added_state(frame: &[u8]) -> Option<Id<'_>> {
    let (kind, object) = read_event(frame).ok()?;
    if kind == "ADDED" { peek(Envelope::read(object).ok()?.raw) } else { None }
}

/// The type and the object of a `WatchEvent`.
fn read_event(frame: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let (mut kind, mut object) = ("", &[][..]);
    for field in Fields::new(frame) {
        let field = field?;
        match field.tag {
            1 => kind = field.text()?,
            2 => object = read_raw(field.message()?)?,
            _ => {}
        }
    }
    Ok((kind, object))
}

/// The bytes of a `RawExtension`.
fn read_raw(message: &[u8]) -> Result<&[u8], Malformed> {
    let mut raw = &[][..];
    for field in Fields::new(message) {
        let field = field?;
        if field.tag == 1 {
            raw = field.message()?;
        }
    }
    Ok(raw)
}

fn read_object<O: Decode<Protobuf>>(object: &[u8], options: &DecodeOptions) -> Result<O, ItemError> {
    let envelope = Envelope::read(object).map_err(|error| ItemError::new(error.to_string()))?;
    match foreign(&envelope, options.types.as_ref()) {
        Some((name, value, types)) => Err(item_error(envelope.raw, types.unexpected_text(name, value))),
        None => read_item(envelope.raw, options),
    }
}

/// What the object says of its type that is not what was asked for.
fn foreign<'a>(envelope: &Envelope<'a>, types: Option<&'a Types>) -> Option<(&'static str, &'a str, &'a Types)> {
    let types = types?;
    let (name, value) = envelope.type_meta.said().find(|(name, value)| !types.admits(name, value))?;
    Some((name, value, types))
}

/// A bookmark of another kind of object, or without a version, says nothing; it is skipped as unknown.
fn read_bookmark<O>(object: &[u8], types: Option<&Types>) -> WatchEvent<O> {
    let envelope = Envelope::read(object).unwrap_or_default();
    let foreign = foreign(&envelope, types).map(|(name, value, _)| format!("{name} {value:?}"));
    let (mut version, mut ends) = ("", false);
    for field in lenient_metadata(envelope.raw) {
        match field.tag {
            RESOURCE_VERSION => version = field.text().unwrap_or_default(),
            ANNOTATIONS => {
                let entry = field.message().and_then(|entry| map_entry(entry, Field::text));
                if let Ok((INITIAL_EVENTS_END, value)) = entry {
                    ends = value == "true";
                }
            }
            _ => {}
        }
    }
    bookmark(foreign, version, ends)
}

/// The error of a frame that is no event.
fn no_event(frame: &[u8], why: &str) -> RequestError {
    RequestError::new(ErrorClass::Decode, format!("a frame of the watch is no event: {why}: {}", excerpt(frame)))
}

#[cfg(test)]
mod tests;
