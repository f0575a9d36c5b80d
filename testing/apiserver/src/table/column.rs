//! One column of a built-in kind, and what its cells are made of.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::duration;

/// A column: how it is headed, and how its cell is read from an object.
pub(super) struct Column {
    name: &'static str,
    type_: &'static str,
    /// Only shown with `-o wide`.
    wide: bool,
    cell: fn(&Row<'_>) -> Value,
}

/// A column of texts.
pub(super) const fn text(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { name, type_: "string", wide: false, cell }
}

/// A column of numbers.
pub(super) const fn integer(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { name, type_: "integer", wide: false, cell }
}

/// A column of truths, whose cells are texts nevertheless.
pub(super) const fn boolean(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { name, type_: "boolean", wide: false, cell }
}

/// The name of the object.
pub(super) const NAME: Column = text("Name", |row| row.text("/metadata/name").into());

/// The time since the object was created.
pub(super) const AGE: Column = text("Age", |row| row.since("/metadata/creationTimestamp").into());

impl Column {
    pub(super) const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }

    pub(super) fn definition(&self) -> Value {
        let format = if self.name == NAME.name { "name" } else { "" };
        definition(self.name, self.type_, format, i32::from(self.wide))
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        (self.cell)(row)
    }
}

/// A column as a Table lists it.
pub(super) fn definition(name: &str, type_: &str, format: &str, priority: i32) -> Value {
    json!({"name": name, "type": type_, "format": format, "description": "", "priority": priority})
}

/// An object, and when it is looked at.
pub(super) struct Row<'v> {
    pub(super) object: &'v Value,
    pub(super) now: Timestamp,
}

impl<'v> Row<'v> {
    /// The text at a JSON pointer; empty where there is none.
    pub(super) fn text(&self, pointer: &str) -> &'v str {
        text_at(self.object, pointer)
    }

    /// The text at a JSON pointer, or `otherwise` where it is missing or empty.
    pub(super) fn text_or(&self, pointer: &str, otherwise: &'v str) -> &'v str {
        match self.text(pointer) {
            "" => otherwise,
            text => text,
        }
    }

    /// The number at a JSON pointer; 0 where there is none.
    pub(super) fn integer(&self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    /// The list at a JSON pointer; empty where there is none.
    pub(super) fn list(&self, pointer: &str) -> &'v [Value] {
        list_at(self.object, pointer)
    }

    /// How many members the objects at these JSON pointers have together.
    pub(super) fn members(&self, pointers: &[&str]) -> usize {
        pointers.iter().filter_map(|p| self.object.pointer(p)?.as_object()).map(Map::len).sum()
    }

    /// The age of the time at a JSON pointer.
    pub(super) fn since(&self, pointer: &str) -> String {
        duration::since(self.object.pointer(pointer).and_then(Value::as_str), self.now)
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }
}

/// The text at a JSON pointer; empty where there is none.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a JSON pointer; empty where there is none.
pub(super) fn list_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The text at a JSON pointer of each element, separated by commas.
pub(super) fn joined(list: &[Value], pointer: &str) -> String {
    list.iter().map(|item| text_at(item, pointer)).collect::<Vec<_>>().join(",")
}

/// The text, or `otherwise` where it is empty.
pub(super) fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// The text, or `<none>` where it is empty.
pub(super) fn or_none(text: String) -> String {
    or(text, "<none>")
}

/// `a=1,b=2`, by name.
pub(super) fn pairs(object: Option<&Value>) -> String {
    let mut pairs: Vec<_> = object
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    pairs.join(",")
}
