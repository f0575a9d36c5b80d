//! A configuration merged into an object, and fields taken out of one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::FieldSet;
use super::schema::{Items, Schema};

/// The object with what the configuration says.
pub(super) fn merge(live: Value, config: &Value, schema: Schema<'_>) -> Value {
    match (live, config, schema.items()) {
        (Value::Object(mut live), Value::Object(config), _) if !schema.is_atomic() => {
            for (name, wanted) in config {
                let merged = match live.get_mut(name).map(Value::take) {
                    Some(present) => merge(present, wanted, schema.member(name).0),
                    None => wanted.clone(),
                };
                live.insert(name.clone(), merged);
            }
            Value::Object(live)
        }
        (Value::Array(live), Value::Array(config), by @ (Items::Set | Items::Keys(_))) => {
            Value::Array(merge_items(live, config, &by, schema.item()))
        }
        (_, config, _) => config.clone(),
    }
}

/// Items of both in the order of `config`; those that only `live` has stay before the item that they stood before.
fn merge_items(live: Vec<Value>, config: &[Value], by: &Items, schema: Schema<'_>) -> Vec<Value> {
    let wanted: Vec<(String, &Value)> = config.iter().map(|item| (by.element(item), item)).collect();
    let is_wanted = |element: &String| wanted.iter().any(|(e, _)| e == element);
    let order: Vec<String> = live.iter().map(|item| by.element(item)).collect();
    let mut present: BTreeMap<String, Value> = BTreeMap::new();
    let mut others: Vec<(usize, Value)> = Vec::new();
    for (at, item) in live.into_iter().enumerate() {
        match is_wanted(&order[at]) {
            true => drop(present.insert(order[at].clone(), item)),
            false => others.push((at, item)),
        }
    }
    let mut shared =
        wanted.iter().map(|(element, _)| element).filter(|element| present.contains_key(*element)).cloned();
    let mut shared: Vec<String> = shared.by_ref().collect();
    shared.reverse();
    let (mut merged, mut at) = (Vec::with_capacity(order.len() + wanted.len()), 0);
    let mut others = others.into_iter().peekable();
    for (element, item) in &wanted {
        // What stands before the next shared item, and shared items that come later by the configuration.
        while at < order.len() && &order[at] != element {
            if let Some((_, other)) = others.next_if(|(place, _)| *place == at) {
                merged.push(other);
            } else if shared.last() == Some(&order[at]) {
                break;
            }
            at += 1;
        }
        if order.get(at) == Some(element) {
            at += 1;
        }
        if shared.last() == Some(element) {
            shared.pop();
        }
        merged.push(match present.remove(element) {
            Some(live) => merge(live, item, schema),
            None => (*item).clone(),
        });
    }
    merged.extend(others.map(|(_, other)| other));
    merged
}

/// Takes out of `value` what is in `last` and not in `kept`, and the objects and lists that are empty after that.
pub(super) fn prune(value: &mut Value, schema: Schema<'_>, last: &FieldSet, kept: &FieldSet) {
    let nothing = FieldSet::default();
    match (value, schema.items()) {
        (Value::Object(members), _) if !schema.is_atomic() => {
            members.retain(|name, value| {
                let element = format!("f:{name}");
                let Some(last) = last.child(&element) else { return true };
                let (schema, declared) = schema.member(name);
                let kept = kept.child(&element).unwrap_or(&nothing);
                stays(value, schema, last, kept, declared)
            });
        }
        (Value::Array(items), by @ (Items::Set | Items::Keys(_))) => {
            items.retain_mut(|item| {
                let element = by.element(item);
                let Some(last) = last.child(&element) else { return true };
                stays(item, schema.item(), last, kept.child(&element).unwrap_or(&nothing), false)
            });
        }
        _ => {}
    }
}

fn stays(value: &mut Value, schema: Schema<'_>, last: &FieldSet, kept: &FieldSet, declared: bool) -> bool {
    if last.member && !kept.member && (!declared || kept.is_empty()) {
        return false;
    }
    let was_empty = is_empty(value);
    prune(value, schema, last, kept);
    was_empty || !is_empty(value) || kept.member
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
