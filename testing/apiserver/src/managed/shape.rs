//! The fields of a value, and the fields in which two values differ.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::{FieldSet, shown};
use super::schema::{Items, Schema};

/// A value as far as it falls into fields.
pub(super) enum Parts<'v, 'a> {
    /// It does not: a scalar, an object or a list that is one field, nothing.
    Leaf,
    /// Element, value, what is known of it, whether the schema declares it by name.
    Of(Vec<(String, &'v Value, Schema<'a>, bool)>),
}

/// Takes a value apart. Of items with the same keys the last counts.
pub(super) fn parts<'v, 'a>(value: &'v Value, schema: Schema<'a>) -> Parts<'v, 'a> {
    match (value, schema.items()) {
        (Value::Object(members), _) if !schema.is_atomic() => Parts::Of(
            members
                .iter()
                .map(|(name, value)| {
                    let (schema, declared) = schema.member(name);
                    (format!("f:{name}"), value, schema, declared)
                })
                .collect(),
        ),
        (Value::Array(items), by @ (Items::Set | Items::Keys(_))) => {
            Parts::Of(items.iter().map(|item| (by.element(item), item, schema.item(), false)).collect())
        }
        _ => Parts::Leaf,
    }
}

/// The fields of a value: its leaves, the items of its lists, and the members that no schema declares.
pub(super) fn fields(value: &Value, schema: Schema<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    fill(value, schema, &mut set);
    set
}

fn fill(value: &Value, schema: Schema<'_>, set: &mut FieldSet) {
    let Parts::Of(parts) = parts(value, schema) else {
        set.member = true;
        return;
    };
    for (element, value, schema, declared) in parts {
        let is_nothing = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let below = set.child_mut(element);
        below.member |= !declared || is_nothing;
        fill(value, schema, below);
    }
}

/// The fields in which two values differ.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Made or changed.
    pub(super) changed: FieldSet,
    pub(super) removed: FieldSet,
}

/// What was done to make `new` of `old`.
pub(super) fn difference(old: &Value, new: &Value, schema: Schema<'_>) -> Difference {
    let mut difference = Difference::default();
    compare(Some(old), Some(new), schema, &mut difference.changed, &mut difference.removed);
    difference
}

fn compare(
    old: Option<&Value>,
    new: Option<&Value>,
    schema: Schema<'_>,
    changed: &mut FieldSet,
    removed: &mut FieldSet,
) {
    let same_kind = match (old, new) {
        (Some(old), Some(new)) => old.is_array() == new.is_array(),
        _ => true,
    };
    let (Some(olds), Some(news), true) = (by_element(old, schema), by_element(new, schema), same_kind) else {
        return note(old, new, changed, removed);
    };
    if olds.is_empty() && news.is_empty() {
        return note(old, new, changed, removed);
    }
    for element in olds.keys().chain(news.keys().filter(|element| !olds.contains_key(*element))) {
        let (was, is) = (olds.get(element), news.get(element));
        // One of them is there.
        let Some((_, below)) = was.or(is) else { continue };
        let (mut made, mut gone) = (FieldSet::default(), FieldSet::default());
        compare(was.map(|part| part.0), is.map(|part| part.0), *below, &mut made, &mut gone);
        let is_value = schema.is_value(element) && is.is_some_and(|part| !is_empty(part.0));
        made.member |= was.is_none() && !is_value;
        gone.member |= is.is_none();
        if !made.is_empty() {
            changed.child_mut(element.clone()).union(&made);
        }
        if !gone.is_empty() {
            removed.child_mut(element.clone()).union(&gone);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

fn note(old: Option<&Value>, new: Option<&Value>, changed: &mut FieldSet, removed: &mut FieldSet) {
    changed.member |= new.is_some() && old != new;
    removed.member |= new.is_none() && old.is_some();
}

type ByElement<'v, 'a> = BTreeMap<String, (&'v Value, Schema<'a>)>;

/// The parts of a value; none where there is no value, `None` where it has no parts.
fn by_element<'v, 'a>(value: Option<&'v Value>, schema: Schema<'a>) -> Option<ByElement<'v, 'a>> {
    match value.map(|value| parts(value, schema)) {
        None => Some(BTreeMap::new()),
        Some(Parts::Leaf) => None,
        Some(Parts::Of(parts)) => {
            Some(parts.into_iter().map(|(element, value, schema, _)| (element, (value, schema))).collect())
        }
    }
}

/// Whether a configuration is as its schema says: no two items of a list are the same, and a custom resource has the members
/// that its schema declares.
///
/// # Errors
/// The path, and what is wrong there.
pub(crate) fn check(value: &Value, schema: Schema<'_>) -> Result<(), String> {
    check_below(value, schema, "")
}

fn check_below(value: &Value, schema: Schema<'_>, path: &str) -> Result<(), String> {
    if let (Value::Array(items), by @ (Items::Set | Items::Keys(_))) = (value, schema.items()) {
        let mut seen = std::collections::BTreeSet::new();
        for item in items {
            if let Some(element) = seen.replace(by.element(item)) {
                return Err(format!("{path}: duplicate entries for key {}", shown(&element)));
            }
        }
    }
    if let Some(name) = value.as_object().and_then(|members| members.keys().find(|name| !schema.allows(name))) {
        return Err(format!("{path}.{name}: field not declared in schema"));
    }
    let Parts::Of(parts) = parts(value, schema) else { return Ok(()) };
    parts
        .into_iter()
        .try_for_each(|(element, value, schema, _)| check_below(value, schema, &format!("{path}{}", shown(&element))))
}

/// The paths of the keys that items of lists lack, such as `spec.containers[1].name`.
pub(crate) fn keyless(value: &Value, schema: Schema<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    keyless_below(value, schema, "", &mut paths);
    paths
}

fn keyless_below(value: &Value, schema: Schema<'_>, path: &str, paths: &mut Vec<String>) {
    match (value, schema.items()) {
        (Value::Object(members), _) if !schema.is_atomic() => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in members {
                keyless_below(value, schema.member(name).0, &format!("{path}{dot}{name}"), paths);
            }
        }
        (Value::Array(items), by @ Items::Keys(_)) => {
            for (at, item) in items.iter().enumerate() {
                paths.extend(by.missing(item).iter().map(|name| format!("{path}[{at}].{name}")));
                keyless_below(item, schema.item(), &format!("{path}[{at}]"), paths);
            }
        }
        _ => {}
    }
}
