//! PURE. Reading the protobuf form of the built-in kinds, which kubectl and client-go's typed clients send. `encode`
//! writes it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::types::{Shape, Type};

/// The media type of protobuf in Kubernetes' envelope.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What stands before the envelope.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Messages within messages; Kubernetes' own go to about 20.
const DEPTH_MAX: usize = 64;

/// A body that is no object in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("the body is not Kubernetes' protobuf: it does not begin with `k8s`")]
    NoEnvelope,
    #[error("no protobuf is known for {kind} of {api_version}: send JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("the body is malformed protobuf: {0}")]
    Malformed(&'static str),
}

/// The object in the body, as its client would have written it in JSON.
///
/// # Errors
/// [`ProtobufError`] for what is no protobuf, ends early, or is of a kind that [`Type`] does not know.
pub(crate) fn to_json(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoEnvelope)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let of = Type::of_object(&api_version, &kind)
        .ok_or_else(|| ProtobufError::UnknownKind { api_version: api_version.clone(), kind: kind.clone() })?;
    let mut object = Map::from_iter([("apiVersion".to_owned(), json!(api_version)), ("kind".to_owned(), json!(kind))]);
    read_message(of, &mut Vec::new(), raw, &mut object, 0)?;
    Ok(Value::Object(object))
}

/// Reads a message of type `of` into `object`. `within`: the numbers that lead from the type to the message, where JSON
/// shows no object of its own for it.
fn read_message(
    of: &Type,
    within: &mut Vec<u32>,
    message: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > DEPTH_MAX {
        return Err(ProtobufError::Malformed("it is nested too deeply"));
    }
    for field in Fields(message) {
        let (number, wire) = field?;
        within.push(number);
        if let Some(field) = of.fields.iter().find(|field| field.number == *within) {
            let current = object.remove(field.name);
            if let Some(value) = read_value(&field.shape, current, wire, depth)?
                && (field.keeps_zero || !is_zero(&value))
            {
                object.insert(field.name.to_owned(), value);
            }
        } else if let Wire::Bytes(bytes) = wire
            && of.fields.iter().any(|field| field.number.starts_with(within))
        {
            read_message(of, within, bytes, object, depth + 1)?;
        }
        // A field with another number is of a newer version: it is passed over.
        within.pop();
    }
    Ok(())
}

/// The value that a field has after this occurrence of it; `current`: what it had before, since lists and maps come one
/// element at a time.
fn read_value(
    shape: &Shape,
    current: Option<Value>,
    wire: Wire<'_>,
    depth: usize,
) -> Result<Option<Value>, ProtobufError> {
    Ok(Some(match (shape, wire) {
        (Shape::List(of), wire) => {
            let mut list = into_list(current);
            list.extend(read_value(of, None, wire, depth)?);
            Value::Array(list)
        }
        (Shape::Map(of), Wire::Bytes(entry)) => {
            let mut map = into_map(current);
            let (key, value) = read_entry(of, entry, depth)?;
            map.insert(key, value);
            Value::Object(map)
        }
        (Shape::Object(name), Wire::Bytes(message)) => {
            let mut object = into_map(current);
            let of = Type::named(name).ok_or(ProtobufError::Malformed("a type is not known"))?;
            read_message(of, &mut Vec::new(), message, &mut object, depth + 1)?;
            Value::Object(object)
        }
        (Shape::Bool, Wire::Varint(number)) => Value::Bool(number != 0),
        (Shape::Int32 | Shape::Int64, Wire::Varint(number)) => number.cast_signed().into(),
        (Shape::Double, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Shape::String, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Shape::Bytes, Wire::Bytes(bytes)) => base64(bytes).into(),
        (Shape::Time, Wire::Bytes(message)) => return Ok(time(message)?.map(|time| time.to_string().into())),
        (Shape::MicroTime, Wire::Bytes(message)) => return Ok(time(message)?.map(|time| format!("{time:.6}").into())),
        (Shape::Quantity, Wire::Bytes(message)) => text(first_bytes(message, 1)?)?.into(),
        (Shape::IntOrString, Wire::Bytes(message)) => int_or_string(message)?,
        // JSON in a message of one field.
        (Shape::Any, Wire::Bytes(message)) => match first_bytes(message, 1)? {
            b"" => json!({}),
            json => serde_json::from_slice(json).map_err(|_| ProtobufError::Malformed("it holds malformed JSON"))?,
        },
        _ => return Err(ProtobufError::Malformed("a field is of another type")),
    }))
}

fn into_list(value: Option<Value>) -> Vec<Value> {
    if let Some(Value::Array(list)) = value { list } else { Vec::new() }
}

fn into_map(value: Option<Value>) -> Map<String, Value> {
    if let Some(Value::Object(map)) = value { map } else { Map::new() }
}

/// An entry of a map: field 1 is the key, field 2 the value.
fn read_entry(of: &Shape, entry: &[u8], depth: usize) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut value) = (String::new(), None);
    for field in Fields(entry) {
        match (field?, of) {
            ((1, Wire::Bytes(bytes)), _) => key = text(bytes)?,
            // A list cannot be a map's value in protobuf: it stands in a message of its own.
            ((2, Wire::Bytes(message)), Shape::List(_)) => {
                for item in Fields(message) {
                    value = read_value(of, value, item?.1, depth)?;
                }
            }
            ((2, wire), of) => value = read_value(of, None, wire, depth)?,
            _ => {}
        }
    }
    let empty = || match of {
        Shape::List(_) => json!([]),
        Shape::Object(_) | Shape::Any => json!({}),
        _ => json!(""),
    };
    Ok((key, value.unwrap_or_else(empty)))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(is_true) => !is_true,
        _ => false,
    }
}

/// Seconds (1) and nanoseconds (2) since 1970. An empty message stands for no time.
fn time(message: &[u8]) -> Result<Option<Timestamp>, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Fields(message) {
        match field? {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanoseconds = i32::try_from(number.cast_signed()).unwrap_or(i32::MAX),
            _ => {}
        }
    }
    if message.is_empty() {
        return Ok(None);
    }
    let time = Timestamp::new(seconds, nanoseconds);
    time.map(Some).map_err(|_| ProtobufError::Malformed("a time is out of range"))
}

/// Which one (1: 0 for the number), the number (2), the text (3).
fn int_or_string(message: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    for field in Fields(message) {
        match field? {
            (1, Wire::Varint(which)) => is_text = which != 0,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => string = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { string.into() } else { number.into() })
}

/// The first field of that number; empty where there is none.
fn first_bytes(message: &[u8], wanted: u32) -> Result<&[u8], ProtobufError> {
    for field in Fields(message) {
        if let (number, Wire::Bytes(bytes)) = field?
            && number == wanted
        {
            return Ok(bytes);
        }
    }
    Ok(&[])
}

fn text(bytes: &[u8]) -> Result<String, ProtobufError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ProtobufError::Malformed("a text is not UTF-8"))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'m> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'m [u8]),
    /// Four bytes, which no type of Kubernetes has.
    Fixed32,
}

/// The fields of a message with their numbers, in their order; ends after an error.
struct Fields<'m>(&'m [u8]);

impl<'m> Iterator for Fields<'m> {
    type Item = Result<(u32, Wire<'m>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(ProtobufError::Malformed("a field ends early or is of an unknown kind")))
    }
}

impl<'m> Fields<'m> {
    fn field(&mut self) -> Option<(u32, Wire<'m>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok()?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed32)?,
            _ => return None,
        };
        Some((number, wire))
    }

    /// Seven bits a byte, the lowest first; ten bytes at most.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 127) << (7 * place);
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}
