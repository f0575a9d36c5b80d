//! What `kubectl get` shows: objects as the rows of a Table, with the columns of their kind. Pure: the time comes in.
//!
//! A client asks for it by `Accept: application/json;as=Table;v=v1;g=meta.k8s.io` (see [`crate::accept`]).

mod column;
mod duration;
mod event;
mod json_path;
mod kinds;
mod network;
mod node;
mod pod;
#[cfg(test)]
mod tests;
mod volume;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::column::{AGE, Column, NAME, Row, definition};
use self::json_path::{JsonPath, plain};
use crate::resource::{PrinterColumn, Resource};

/// How much of each object stands beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// Reads the query parameter `includeObject`; empty stands for the default.
    ///
    /// # Errors
    /// A message for an answer of status 400.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(format!("unrecognized includeObject value: {other:?}; use None, Metadata or Object")),
        }
    }
}

/// Prints the objects of one resource.
pub(crate) struct Printer {
    columns: Columns,
    is_pod: bool,
}

enum Columns {
    BuiltIn(&'static [Column]),
    /// Name, then the columns given with the resource.
    Custom(Vec<CustomColumn>),
}

struct CustomColumn {
    column: PrinterColumn,
    /// `None` where the path cannot be read: the cells stay empty.
    path: Option<JsonPath>,
}

impl Printer {
    /// With the columns that were given, else the kind's own, else name and age.
    pub(crate) fn new(resource: &Resource) -> Self {
        let own = if resource.custom { None } else { kinds::columns(&resource.group, &resource.kind) };
        let columns = match (&resource.columns[..], own) {
            ([], own) => Columns::BuiltIn(own.unwrap_or(&[NAME, AGE])),
            (given, _) => Columns::Custom(given.iter().map(|column| CustomColumn::new(column.clone())).collect()),
        };
        Self { columns, is_pod: !resource.custom && resource.group.is_empty() && resource.kind == "Pod" }
    }

    /// A Table without rows: `metadata` is that of the list (or of the object), to which rows are added. In a watch
    /// only the first Table has columns.
    pub(crate) fn table(&self, metadata: Value, with_columns: bool) -> Value {
        let columns = if with_columns { self.definitions().into() } else { Value::Null };
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": [],
        })
    }

    fn definitions(&self) -> Vec<Value> {
        match &self.columns {
            Columns::BuiltIn(columns) => columns.iter().map(Column::definition).collect(),
            Columns::Custom(columns) => {
                let custom = |CustomColumn { column, .. }: &CustomColumn| {
                    definition(&column.name, &column.type_, "", column.priority)
                };
                std::iter::once(NAME.definition()).chain(columns.iter().map(custom)).collect()
            }
        }
    }

    /// The row of an object as it looks at `now`.
    pub(crate) fn row(&self, object: Value, include: IncludeObject, now: Timestamp) -> Value {
        let row = Row { object: &object, now };
        let cells: Vec<Value> = match &self.columns {
            Columns::BuiltIn(columns) => columns.iter().map(|column| column.cell(&row)).collect(),
            Columns::Custom(columns) => {
                std::iter::once(NAME.cell(&row)).chain(columns.iter().map(|column| column.cell(&row))).collect()
            }
        };
        let conditions = if self.is_pod { pod::row_conditions(&object) } else { None };
        let mut row = json!({"cells": cells});
        if let Some(conditions) = conditions {
            row["conditions"] = conditions;
        }
        row["object"] = included(object, include);
        row
    }
}

fn included(mut object: Value, include: IncludeObject) -> Value {
    match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object,
        IncludeObject::Metadata => {
            let metadata = object.get_mut("metadata").map(Value::take).unwrap_or_default();
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
        }
    }
}

impl CustomColumn {
    fn new(column: PrinterColumn) -> Self {
        let path = JsonPath::parse(&column.json_path);
        Self { column, path }
    }

    /// Null where there is no value, or one of another type.
    fn cell(&self, row: &Row<'_>) -> Value {
        let Some(value) = self.path.as_ref().and_then(|path| path.find(row.object)) else { return Value::Null };
        match (&*self.column.type_, value) {
            ("string", value) => plain(value).into(),
            ("integer", Value::Number(number)) => match number.as_i64() {
                Some(integer) => integer.into(),
                None => number.as_f64().map_or(Value::Null, |float| (float as i64).into()),
            },
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(time)) => duration::since(Some(time), row.now).into(),
            _ => Value::Null,
        }
    }
}
