//! PURE. The strategic merge patch: a merge patch whose lists are merged too where the Kubernetes API says by which key,
//! and which knows directives.
//!
//! | in the patch | means |
//! |---|---|
//! | `null` | the member is removed |
//! | an object | is merged, unless the field's strategy is `replace` |
//! | a list | is merged by its merge key, or as a set of scalars; without a strategy it replaces the list |
//! | `$patch: replace` in an object / in an element of a merged list | the object / the list is replaced |
//! | `$patch: delete` in an object / in an element of a merged list | the object is emptied / that element removed |
//! | `$retainKeys: [a, b]` in an object | all other members are removed first |
//! | `$deleteFromPrimitiveList/f: [x]` | `x` leaves the list `f` |
//! | `$setElementOrder/f: [...]` | the list `f` stands in this order afterwards |

use serde_json::{Map, Value};

use super::order::{arrange, id};
use super::{PatchError, name_of};
use crate::openapi::{Field, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

type Object = Map<String, Value>;

/// What `patch` makes of `object`, which is of type `of`; a type that is not known merges objects and replaces lists.
pub(super) fn merge(object: Value, patch: Value, of: Option<&Type>) -> Result<Value, PatchError> {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_object(object, patch, of).map(Value::Object),
        (Value::Object(_), patch) => Err(PatchError::NotAnObject(name_of(&patch))),
        (object, _) => Err(PatchError::NotAnObject(name_of(&object))),
    }
}

fn merge_object(mut object: Object, mut patch: Object, of: Option<&Type>) -> Result<Object, PatchError> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => {
            return Ok(patch.into_iter().filter_map(cleaned_member).collect());
        }
        Some(directive) if directive == "delete" => return Ok(Object::new()),
        Some(other) => return Err(unknown_directive(&other)),
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain_keys(&mut object, &patch, &keys)?;
    }
    let (orders, patch) = split_off(patch, ORDER_PREFIX);
    let (deletions, mut patch) = split_off(patch, DELETE_PREFIX);
    for (name, order) in orders {
        let order = into_list(&name, ORDER_PREFIX, order)?;
        let change = patch.remove(&name).map(|list| into_list(&name, ORDER_PREFIX, list)).transpose()?;
        order_list(&mut object, &name, &order, change, of.and_then(|of| of.field(&name)))?;
    }
    for (name, gone) in deletions {
        let gone = into_list(&name, DELETE_PREFIX, gone)?;
        if let Some(Value::Array(list)) = object.get_mut(&name) {
            list.retain(|item| !gone.contains(item));
        }
    }
    for (name, change) in patch {
        let field = of.and_then(|of| of.field(&name));
        match merge_member(object.get_mut(&name).map(Value::take), change, field)? {
            Some(value) => drop(object.insert(name, value)),
            None => drop(object.remove(&name)),
        }
    }
    Ok(object)
}

/// What becomes of one member; `None`: it is removed.
fn merge_member(current: Option<Value>, change: Value, field: Option<&Field>) -> Result<Option<Value>, PatchError> {
    let merge = field.and_then(|field| field.merge.as_ref());
    Ok(match (current, change) {
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(change)) if merge.is_some_and(|m| m.replaces()) => {
            Some(Value::Object(change))
        }
        (Some(Value::Object(current)), Value::Object(change)) => {
            let of = field.and_then(|field| field.shape.element());
            Some(Value::Object(merge_object(current, change, of)?))
        }
        (Some(Value::Array(current)), Value::Array(change)) => Some(Value::Array(merge_list(current, change, field)?)),
        (_, change) => without_directives(change),
    })
}

/// Merges two lists by the strategy of their field; without one, `change` replaces `list`.
fn merge_list(list: Vec<Value>, change: Vec<Value>, field: Option<&Field>) -> Result<Vec<Value>, PatchError> {
    let Some(merge) = field.and_then(|field| field.merge.as_ref()).filter(|merge| merge.merges()) else {
        return Ok(change.into_iter().filter_map(without_directives).collect());
    };
    let Merged { list, wanted, before } = match merge.key {
        Some(key) => merge_by_key(list, change, key, field.and_then(|field| field.shape.element()))?,
        None => merge_scalars(list, change)?,
    };
    Ok(arrange(list, merge.key, &wanted, &before))
}

/// A merged list that is not in order yet.
struct Merged {
    list: Vec<Value>,
    /// The ids that the patch names, in its order.
    wanted: Vec<Value>,
    /// The ids of the list as it was, less what was deleted.
    before: Vec<Value>,
}

fn merge_scalars(before: Vec<Value>, wanted: Vec<Value>) -> Result<Merged, PatchError> {
    let mut list: Vec<Value> = Vec::with_capacity(before.len() + wanted.len());
    for item in before.iter().chain(&wanted) {
        if item.is_object() || item.is_array() {
            return Err(PatchError::Unprocessable(format!("{} stands in a list of scalars", name_of(item))));
        }
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
    Ok(Merged { list, wanted, before })
}

fn merge_by_key(mut list: Vec<Value>, change: Vec<Value>, key: &str, of: Option<&Type>) -> Result<Merged, PatchError> {
    let mut changes = Vec::with_capacity(change.len());
    let mut replace = false;
    for item in change {
        match item.get(DIRECTIVE) {
            None => changes.push(item),
            Some(directive) if directive == "delete" => {
                let gone = checked_id(&item, Some(key))?;
                list.retain(|item| item.get(key) != Some(gone));
            }
            Some(directive) if directive == "replace" => replace = true,
            Some(other) => return Err(unknown_directive(other)),
        }
    }
    if replace {
        list.clear();
    }
    let before = ids(&list, Some(key))?;
    let wanted = ids(&changes, Some(key))?;
    for (item, id) in changes.into_iter().zip(&wanted) {
        match list.iter_mut().find(|old| old.get(key) == Some(id)) {
            Some(old) => *old = merge(old.take(), item, of)?,
            None => list.extend(without_directives(item)),
        }
    }
    Ok(Merged { list, wanted, before })
}

/// Merges `change` into the list `name` of `object`, then puts it in the order of `order`: scalars, or objects that
/// hold at least the merge key.
fn order_list(
    object: &mut Object,
    name: &str,
    order: &[Value],
    change: Option<Vec<Value>>,
    field: Option<&Field>,
) -> Result<(), PatchError> {
    let key = field.and_then(|field| field.merge.as_ref()).and_then(|merge| merge.key);
    let wanted = ids(order, key)?;
    if let Some(change) = &change {
        check_order(name, change, &wanted, key)?;
    }
    let current = match object.get_mut(name) {
        None => None,
        Some(Value::Array(list)) => Some(std::mem::take(list)),
        Some(other) => return Err(PatchError::Unprocessable(format!("{name} is {}, not a list", name_of(other)))),
    };
    let before = ids(current.as_deref().unwrap_or_default(), key)?;
    let merged = match (current, change) {
        (None, None) => return Ok(()),
        (Some(current), None) => current,
        (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
        (Some(current), Some(change)) => merge_list(current, change, field)?,
    };
    ids(&merged, key)?;
    object.insert(name.to_owned(), Value::Array(arrange(merged, key, &wanted, &before)));
    Ok(())
}

/// The elements of `change` that are not directives must appear in `wanted`, in the same order.
fn check_order(name: &str, change: &[Value], wanted: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut rest = wanted.iter();
    for item in change.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id = checked_id(item, key)?;
        if !rest.any(|wanted| wanted == id) {
            let problem = format!("{id} of the patch is not in it, or not in the same order");
            return Err(PatchError::directive(format!("{ORDER_PREFIX}{name}"), problem));
        }
    }
    Ok(())
}

/// Removes the members of `object` that `keys` does not name; those of `patch` must be named.
fn retain_keys(object: &mut Object, patch: &Object, keys: &Value) -> Result<(), PatchError> {
    let Value::Array(keys) = keys else {
        return Err(PatchError::directive(RETAIN_KEYS, format!("it is {}, not a list", name_of(keys))));
    };
    let named = |name: &str| keys.iter().any(|key| key == name);
    let stray = |(name, value): &(&String, &Value)| !value.is_null() && !is_list_directive(name) && !named(name);
    if let Some((name, _)) = patch.iter().find(stray) {
        return Err(PatchError::directive(RETAIN_KEYS, format!("the patch sets {name}, which it does not name")));
    }
    object.retain(|name, _| named(name));
    Ok(())
}

/// The members whose names begin with `prefix`, without it, and the others.
fn split_off(object: Object, prefix: &str) -> (Vec<(String, Value)>, Object) {
    let (mut split, mut rest) = (Vec::new(), Object::new());
    for (name, value) in object {
        match name.strip_prefix(prefix) {
            Some(name) => split.push((name.to_owned(), value)),
            None => drop(rest.insert(name, value)),
        }
    }
    (split, rest)
}

/// A new value as it is stored: without nulls, directives, and the objects that `$patch` marks. `None`: nothing is left.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => Some(object.into_iter().filter_map(cleaned_member).collect()),
        Value::Array(list) => Some(list.into_iter().filter_map(without_directives).collect()),
        value => Some(value),
    }
}

fn cleaned_member((name, value): (String, Value)) -> Option<(String, Value)> {
    if value.is_null() || name == RETAIN_KEYS || is_list_directive(&name) {
        return None;
    }
    Some((name, without_directives(value)?))
}

fn is_list_directive(name: &str) -> bool {
    name.starts_with(DELETE_PREFIX) || name.starts_with(ORDER_PREFIX)
}

fn into_list(name: &str, prefix: &str, value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(list) => Ok(list),
        other => {
            Err(PatchError::directive(format!("{prefix}{name}"), format!("expected a list, got {}", name_of(&other))))
        }
    }
}

fn ids(list: &[Value], key: Option<&str>) -> Result<Vec<Value>, PatchError> {
    list.iter().map(|item| checked_id(item, key).cloned()).collect()
}

/// As [`id`]; an error where it has none.
fn checked_id<'v>(item: &'v Value, key: Option<&str>) -> Result<&'v Value, PatchError> {
    match (item, key) {
        (Value::Object(object), Some(key)) if !object.contains_key(key) => {
            Err(PatchError::Unprocessable(format!("{item} does not contain declared merge key: {key}")))
        }
        (Value::Object(_), Some(_)) | (_, None) => Ok(id(item, key)),
        (other, Some(key)) => {
            let got = name_of(other);
            Err(PatchError::Unprocessable(format!("expected an object with the merge key {key}, got {got}")))
        }
    }
}

fn unknown_directive(directive: &Value) -> PatchError {
    PatchError::directive(DIRECTIVE, format!("expected replace or delete, got {directive}"))
}
