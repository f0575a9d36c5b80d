//! PURE. Writing the protobuf form of the built-in kinds: objects, lists and the frames of a watch, by the numbers that
//! [`Type`] holds. What was written is what the real API server writes, but for the order of what has none.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::protobuf::MAGIC;
use super::types::{Field, Shape, Type};

/// The object in its envelope; an object of a list kind is a list. `None` for what [`Type`] does not know.
pub(crate) fn to_protobuf(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = said(object);
    if let Some(of) = Type::of_object(api_version, kind) {
        return Some(envelope(api_version, kind, &message(of, object)));
    }
    let of = Type::of_object(api_version, kind.strip_suffix("List")?)?;
    let mut list = field(1, &message(Type::list_meta()?, &object["metadata"]));
    object["items"].as_array().into_iter().flatten().for_each(|value| put_item(&message(of, value), &mut list));
    Some(envelope(api_version, kind, &list))
}

/// What an object says of its type; empty where it says nothing.
pub(super) fn said(object: &Value) -> (&str, &str) {
    let text = |name| object[name].as_str().unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

/// A message in the envelope that tells its type.
pub(crate) fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    [&envelope_head(api_version, kind, message.len()), message, ENVELOPE_END].concat()
}

/// An envelope up to its message of this length.
fn envelope_head(api_version: &str, kind: &str, len: usize) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    let mut head = [MAGIC, &field(1, &type_meta)].concat();
    put_len(2, len, &mut head);
    head
}

/// Neither another encoding nor another type.
const ENVELOPE_END: &[u8] = &[0x1a, 0, 0x22, 0];

/// A list up to its items, and what follows them.
pub(crate) struct ListHead {
    pub(crate) head: Vec<u8>,
    pub(crate) end: &'static [u8],
}

impl ListHead {
    /// `items_len`: the bytes of all items, as [`put_item`] writes them. Lengths come first in protobuf, so it must be known.
    pub(crate) fn new(api_version: &str, kind: &str, metadata: &Value, items_len: usize) -> Self {
        let metadata = Type::list_meta().map(|of| field(1, &message(of, metadata))).unwrap_or_default();
        let mut head = envelope_head(api_version, kind, metadata.len() + items_len);
        head.extend(metadata);
        Self { head, end: ENVELOPE_END }
    }
}

/// Appends a message as an item of a list.
pub(crate) fn put_item(message: &[u8], out: &mut Vec<u8>) {
    put_bytes(2, message, out);
}

/// How many bytes that takes.
pub(crate) fn item_len(message: &[u8]) -> usize {
    let mut len = Vec::new();
    put_varint(message.len() as u64, &mut len);
    1 + len.len() + message.len()
}

/// An event of a watch: its length in four bytes, its type, an object in its envelope.
pub(crate) fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    [&(event.len() as u32).to_be_bytes()[..], &event].concat()
}

/// The message of an object, without an envelope. A value of another type than the field's is written as what the field
/// cannot be, so that who reads the field fails as with JSON; an object that is none has no fields.
///
/// Cost: reads the object.
pub(crate) fn message(of: &Type, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Value::Object(object) = object {
        put_fields(&of.fields_by_number(), 0, object, &mut out);
    }
    out
}

/// `fields` have the first `depth` numbers in common: those of the messages within the message that JSON does not show.
fn put_fields(mut fields: &[&Field], depth: usize, object: &Map<String, Value>, out: &mut Vec<u8>) {
    while let [first, rest @ ..] = fields {
        let number = first.number[depth];
        if first.number.len() == depth + 1 {
            match object.get(first.name).filter(|value| !value.is_null()) {
                Some(value) => put(number, &first.shape, value, out),
                None if !first.keeps_zero => put_zero(number, &first.shape, out),
                None => {}
            }
            fields = rest;
            continue;
        }
        let len = fields.iter().take_while(|field| field.number[depth] == number).count();
        let mut inner = Vec::new();
        put_fields(&fields[..len], depth + 1, object, &mut inner);
        put_bytes(number, &inner, out);
        fields = &fields[len..];
    }
}

/// As the real API server does, a zero is written where it says the same as nothing.
fn put_zero(number: u32, shape: &Shape, out: &mut Vec<u8>) {
    match shape {
        Shape::Bool | Shape::Int32 | Shape::Int64 => put_varint_field(number, 0, out),
        Shape::Double => put_double(number, 0.0, out),
        Shape::String | Shape::Time | Shape::MicroTime => put_bytes(number, b"", out),
        _ => {}
    }
}

fn put(number: u32, shape: &Shape, value: &Value, out: &mut Vec<u8>) {
    match (shape, value) {
        (Shape::List(of), Value::Array(list)) => list.iter().for_each(|element| put_element(number, of, element, out)),
        (Shape::Map(of), Value::Object(map)) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|entry| entry.0);
            for (key, value) in entries {
                let mut entry = field(1, key.as_bytes());
                put_map_value(of, value, &mut entry);
                put_bytes(number, &entry, out);
            }
        }
        (Shape::Bool, Value::Bool(is_true)) => put_varint_field(number, u64::from(*is_true), out),
        (Shape::Double, Value::Number(value)) => put_double(number, value.as_f64().unwrap_or_default(), out),
        (Shape::Int32 | Shape::Int64, Value::Number(value)) if value.is_i64() => {
            put_varint_field(number, value.as_i64().unwrap_or_default().cast_unsigned(), out);
        }
        _ => match bytes_of(shape, value) {
            Some(bytes) => put_bytes(number, &bytes, out),
            None if matches!(shape, Shape::Bool | Shape::Double | Shape::Int32 | Shape::Int64) => {
                put_bytes(number, b"?", out);
            }
            None => put_varint_field(number, 1, out),
        },
    }
}

/// The bytes of a value that is neither a number nor many of them; `None`: it is of another type.
fn bytes_of(shape: &Shape, value: &Value) -> Option<Vec<u8>> {
    Some(match (shape, value) {
        (Shape::String, Value::String(text)) => text.clone().into_bytes(),
        (Shape::Bytes, Value::String(text)) => STANDARD.decode(text).ok()?,
        (Shape::Time, Value::String(text)) => time(text.parse::<Timestamp>().ok()?, false),
        (Shape::MicroTime, Value::String(text)) => time(text.parse::<Timestamp>().ok()?, true),
        (Shape::Quantity, Value::String(text)) => field(1, text.as_bytes()),
        (Shape::Quantity, Value::Number(value)) => field(1, value.to_string().as_bytes()),
        (Shape::IntOrString, Value::String(text)) => int_or_string(1, 0, text),
        (Shape::IntOrString, Value::Number(value)) => int_or_string(0, value.as_i64()?, ""),
        (Shape::Object(name), Value::Object(_)) => message(Type::named(name)?, value),
        // JSON in a message of one field.
        (Shape::Any, value) => field(1, value.to_string().as_bytes()),
        _ => return None,
    })
}

/// An element of a list; a null is an empty one.
fn put_element(number: u32, shape: &Shape, element: &Value, out: &mut Vec<u8>) {
    match element {
        Value::Null => put_bytes(number, b"", out),
        element => put(number, shape, element, out),
    }
}

fn put_map_value(shape: &Shape, value: &Value, entry: &mut Vec<u8>) {
    match (shape, value) {
        (Shape::String, Value::Null) => put_bytes(2, b"", entry),
        // A list cannot be a map's value in protobuf: it stands in a message of its own.
        (Shape::List(of), Value::Array(list)) => {
            let mut inner = Vec::new();
            list.iter().for_each(|element| put_element(1, of, element, &mut inner));
            put_bytes(2, &inner, entry);
        }
        (shape, value) => put(2, shape, value, entry),
    }
}

/// Seconds (1) and nanoseconds (2) since 1970.
fn time(time: Timestamp, has_fraction: bool) -> Vec<u8> {
    let nanoseconds = time.as_nanosecond();
    let (seconds, fraction) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let mut out = Vec::new();
    put_varint_field(1, (seconds as i64).cast_unsigned(), &mut out);
    put_varint_field(2, if has_fraction { fraction as u64 } else { 0 }, &mut out);
    out
}

/// Which one (1: 0 for the number), the number (2), the text (3).
fn int_or_string(which: u64, number: i64, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(1, which, &mut out);
    put_varint_field(2, number.cast_unsigned(), &mut out);
    put_bytes(3, text.as_bytes(), &mut out);
    out
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    put_bytes(number, bytes, &mut out);
    out
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_len(number, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// What stands before so many bytes.
fn put_len(number: u32, len: usize, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(len as u64, out);
}

fn put_varint_field(number: u32, value: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3, out);
    put_varint(value, out);
}

fn put_double(number: u32, value: f64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 1, out);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;
