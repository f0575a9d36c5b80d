//! PURE. Reading an object of a built-in kind as the API server does: a value of the wrong type is an error, a field that
//! does not exist is dropped and told; a null is dropped, and so is an empty list or map that need not be there.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::types::{Shape, Type};

/// A value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}, got {got}")]
pub(crate) struct DecodeError {
    /// Such as `spec.containers[0].image`.
    pub(crate) path: String,
    expected: &'static str,
    got: String,
}

/// Reads `object` as of type `of`: drops nulls and unknown fields, and returns the latter's paths in the words of the API
/// server (`unknown field "spec.foo"`), in their order.
///
/// # Errors
/// [`DecodeError`] for the first value of the wrong type; the object may have lost some fields by then.
pub(crate) fn decode(of: &Type, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    let mut decoder = Decoder { path: String::new(), unknown: Vec::new() };
    match object {
        Value::Object(object) => decoder.object(of, object)?,
        other => return Err(decoder.mistyped("an object", other)),
    }
    Ok(decoder.unknown)
}

struct Decoder {
    /// Where we are.
    path: String,
    unknown: Vec<String>,
}

impl Decoder {
    fn object(&mut self, of: &Type, object: &mut Map<String, Value>) -> Result<(), DecodeError> {
        let mut result = Ok(());
        object.retain(|name, value| {
            if value.is_null() {
                return false;
            }
            if of.kind.is_some() && (name == "apiVersion" || name == "kind") {
                return true;
            }
            let dot = if self.path.is_empty() { "" } else { "." };
            let before = self.enter(&format!("{dot}{name}"));
            let known = match of.field(name) {
                Some(field) if result.is_ok() => {
                    result = self.value(&field.shape, value);
                    field.required || !is_empty_collection(&field.shape, value)
                }
                Some(_) => true,
                None => {
                    self.unknown.push(format!("unknown field \"{}\"", self.path));
                    false
                }
            };
            self.path.truncate(before);
            known
        });
        result
    }

    fn value(&mut self, shape: &Shape, value: &mut Value) -> Result<(), DecodeError> {
        match (shape, value) {
            (Shape::Any, _)
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Double, Value::Number(_))
            | (Shape::String | Shape::IntOrString, Value::String(_))
            // What a list or a map holds may be null.
            | (_, Value::Null) => Ok(()),
            (Shape::Int64, Value::Number(number)) if number.is_i64() => Ok(()),
            (Shape::Int32 | Shape::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
            {
                Ok(())
            }
            (Shape::Bytes, Value::String(text)) if is_base64(text) => Ok(()),
            (Shape::Time | Shape::MicroTime, Value::String(text)) if text.parse::<Timestamp>().is_ok() => Ok(()),
            (Shape::Quantity, Value::String(text)) if is_quantity(text) => Ok(()),
            (Shape::Quantity, Value::Number(_)) => Ok(()),
            (Shape::List(of), Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    let before = self.enter(&format!("[{index}]"));
                    self.value(of, item)?;
                    self.path.truncate(before);
                }
                Ok(())
            }
            (Shape::Map(of), Value::Object(map)) => {
                for (name, item) in map {
                    if item.is_null() && matches!(**of, Shape::String) {
                        *item = Value::String(String::new());
                    }
                    let before = self.enter(&format!(".{name}"));
                    self.value(of, item)?;
                    self.path.truncate(before);
                }
                Ok(())
            }
            (Shape::Object(name), Value::Object(object)) => match Type::named(name) {
                Some(of) => self.object(of, object),
                None => Ok(()),
            },
            (shape, value) => Err(self.mistyped(expected(shape), value)),
        }
    }

    /// Goes down; the length that leads back up.
    fn enter(&mut self, step: &str) -> usize {
        let before = self.path.len();
        self.path.push_str(step);
        before
    }

    fn mistyped(&self, expected: &'static str, value: &Value) -> DecodeError {
        let got = match value {
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            Value::String(text) if text.len() > 40 => "a long string".to_owned(),
            scalar => scalar.to_string(),
        };
        let path = if self.path.is_empty() { "the object".to_owned() } else { self.path.clone() };
        DecodeError { path, expected, got }
    }
}

/// Whether the API server leaves it out when it writes the object.
fn is_empty_collection(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "anything",
        Shape::Bool => "true or false",
        Shape::Int32 => "an integer of 32 bits",
        Shape::Int64 => "an integer of 64 bits",
        Shape::Double => "a number",
        Shape::String => "a string",
        Shape::Bytes => "base64 data",
        Shape::Time | Shape::MicroTime => "a time of RFC 3339",
        Shape::IntOrString => "an integer of 32 bits or a string",
        Shape::Quantity => "a quantity such as 100m or 1Gi",
        Shape::Object(_) | Shape::Map(_) => "an object",
        Shape::List(_) => "a list",
    }
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_digit)
}

/// A sign, digits with at most one point, and a suffix.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
    let is_suffix = match suffix {
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => true,
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => true,
        exponent => exponent.strip_prefix(['e', 'E']).is_some_and(|digits| digits.parse::<i16>().is_ok()),
    };
    is_number && is_suffix
}
