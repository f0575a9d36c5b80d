//! PURE. One line of a watch: an event, or the error that ends the stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kubewire_indexer::Id;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::decode::read_item;
use crate::client::excerpt::{cut, excerpt};
use crate::client::peek::peek_json;
use crate::client::shaped::Types;
use crate::client::status::{error_of_event, error_of_status, is_status};
use crate::client::text::Text;
use crate::{Decode, DecodeOptions, ErrorClass, EventKind, ItemError, Json, RequestError, WatchEvent};

/// Says that the initial events of a streaming list are over, by the value `"true"` and no other.
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// How much of an unknown type is kept.
const UNKNOWN_LEN_MAX: usize = 100;

/// Reads one line. The error is the last thing of the stream: an `ERROR` event, a bare `Status`, or something
/// that is no event at all (and so may have been a change).
pub(crate) fn read_line<O: Decode<Json>>(line: &[u8], options: &DecodeOptions) -> Result<WatchEvent<O>, RequestError> {
    if let Some((kind, object)) = guess(line)
        && let Some(kind) = change(kind)
        && let Ok(event) = read_object(kind, object, options)
    {
        return Ok(event);
    }
    let members = read_members(line)?;
    let object = members.get("object").map_or("null", |object| object.get());
    let Some(kind) = members.get("type") else {
        let line_value = serde_json::from_slice(line).unwrap_or_default();
        return Err(match is_status(&line_value) {
            true => error_of_status(&line_value, 0),
            false => no_event(line, "it has no type"),
        });
    };
    let Ok(Text(kind)) = serde_json::from_str(kind.get()) else { return Err(no_event(line, "its type is no text")) };
    match (&*kind, change(&kind)) {
        ("ERROR", _) => Err(error_of_event(object.as_bytes())),
        ("BOOKMARK", _) => Ok(read_bookmark(object, options.types.as_ref())),
        (_, None) => Ok(unknown(kind.into_owned())),
        (_, Some(_)) if !object.starts_with('{') => Err(no_event(line, "it has no object")),
        (_, Some(kind)) => Ok(read_object(kind, object.as_bytes(), options)
            .unwrap_or_else(|error| WatchEvent::Undecodable { kind, error })),
    }
}

/// Which state of which object a line adds, as far as can be told without decoding it.
pub(crate) fn added_state(line: &[u8]) -> Option<Id<'_>> {
    let (kind, object) = guess(line)?;
    if kind == "ADDED" { peek_json(object) } else { None }
}

/// The type and the object of a line that is written as API servers write it. It is a guess until the object was
/// decoded as a whole; then there can be nothing behind it.
fn guess(line: &[u8]) -> Option<(&str, &[u8])> {
    let line = line.strip_prefix(br#"{"type":""#)?.strip_suffix(b"}")?;
    let end = line.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let kind = str::from_utf8(&line[..end]).ok()?;
    let object = line[end..].strip_prefix(br#"","object":"#)?;
    object.starts_with(b"{").then_some((kind, object))
}

/// The members of a line, as JSON; of two with one name the last one counts.
fn read_members(line: &[u8]) -> Result<BTreeMap<Cow<'_, str>, &RawValue>, RequestError> {
    let members: Result<BTreeMap<Text<'_>, &RawValue>, _> = serde_json::from_slice(line);
    match members {
        Ok(members) => Ok(members.into_iter().map(|(Text(name), value)| (name, value)).collect()),
        Err(error) => Err(no_event(line, &error.to_string())),
    }
}

pub(crate) fn change(kind: &str) -> Option<EventKind> {
    match kind {
        "ADDED" => Some(EventKind::Added),
        "MODIFIED" => Some(EventKind::Modified),
        "DELETED" => Some(EventKind::Deleted),
        _ => None,
    }
}

fn read_object<O: Decode<Json>>(
    kind: EventKind,
    object: &[u8],
    options: &DecodeOptions,
) -> Result<WatchEvent<O>, ItemError> {
    Ok(event(kind, read_item(object, options)?))
}

/// The event of a change.
pub(crate) fn event<O>(kind: EventKind, object: O) -> WatchEvent<O> {
    match kind {
        EventKind::Added => WatchEvent::Added(object),
        EventKind::Modified => WatchEvent::Modified(object),
        EventKind::Deleted => WatchEvent::Deleted(object),
    }
}

/// A bookmark of another kind of object, or without a version, says nothing; it is skipped as unknown.
fn read_bookmark<O>(object: &str, types: Option<&Types>) -> WatchEvent<O> {
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    let metadata = &object["metadata"];
    let foreign = ["apiVersion", "kind"].into_iter().find(|name| match (&object[*name], types) {
        (Value::String(value), Some(types)) => !types.admits(name, value),
        _ => false,
    });
    let foreign = foreign.map(|name| format!("{name} {}", object[name]));
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    bookmark(foreign, version, metadata["annotations"][INITIAL_EVENTS_END] == "true")
}

/// A bookmark; `foreign` is what it says of its type that is not what was asked for.
pub(crate) fn bookmark<O>(foreign: Option<String>, version: &str, initial_events_end: bool) -> WatchEvent<O> {
    match (foreign, version) {
        (Some(what), _) => unknown(format!("BOOKMARK of {what}")),
        (None, "") => unknown("BOOKMARK without a resourceVersion".to_owned()),
        (None, version) => WatchEvent::Bookmark { resource_version: version.to_owned(), initial_events_end },
    }
}

/// An event of a type that is not known.
pub(crate) fn unknown<O>(mut kind: String) -> WatchEvent<O> {
    cut(&mut kind, UNKNOWN_LEN_MAX);
    WatchEvent::Unknown { kind }
}

/// The error of a line that is no event.
fn no_event(line: &[u8], why: &str) -> RequestError {
    RequestError::new(ErrorClass::Decode, format!("a line of the watch is no event: {why}: {}", excerpt(line)))
}

#[cfg(test)]
mod tests;
