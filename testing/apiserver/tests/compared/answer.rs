//! An answer, without what differs from run to run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::player::Seen;

/// What was answered: an object, or a failure.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) name: String,
    code: u16,
    #[serde(skip_serializing_if = "Value::is_null", default)]
    failure: Value,
    #[serde(skip_serializing_if = "Value::is_null", default)]
    object: Value,
    /// `new`, `same` or `moved`, after what was answered for the object before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    version: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    managers: Vec<Value>,
    #[serde(skip)]
    pub(crate) seen: Option<Seen>,
}

impl Answer {
    pub(crate) fn new(name: &str, code: u16, answer: &Value, before: Option<&Seen>) -> Self {
        let mut new = Self {
            name: name.to_owned(),
            code,
            failure: Value::Null,
            object: Value::Null,
            version: None,
            managers: vec![],
            seen: None,
        };
        if answer["kind"] == "Status" || !answer.is_object() {
            let causes = answer["details"]["causes"].as_array().into_iter().flatten().map(|cause| {
                json!({"reason": cause["reason"], "message": told(&cause["message"]), "field": told(&cause["field"])})
            });
            let mut causes: Vec<Value> = causes.collect();
            // The real server tells them in the order of a map.
            causes.sort_by_key(Value::to_string);
            new.failure = json!({"reason": answer["reason"], "message": told(&answer["message"]), "causes": causes});
            return new;
        }
        let text = |name: &str| answer["metadata"][name].as_str().unwrap_or_default().to_owned();
        let seen = Seen { uid: text("uid"), first: text("resourceVersion"), version: text("resourceVersion") };
        let moved = match before.filter(|before| before.uid == seen.uid) {
            None => "new",
            Some(before) if before.version == seen.version => "same",
            Some(_) => "moved",
        };
        new.version = Some(moved.to_owned());
        new.managers = managers(&answer["metadata"]["managedFields"]);
        let mut object = answer.clone();
        hide(&mut object);
        new.object = object;
        new.seen = Some(seen);
        new
    }

    /// Aspect, this one's, the other's; without the defaults.
    pub(crate) fn compared(&self, other: &Self, defaults: &[Vec<String>]) -> Vec<(&'static str, Value, Value)> {
        let mut pairs = vec![("status", json!(self.code), json!(other.code))];
        if self.code != other.code {
            // What stands in the two says nothing then.
            return pairs;
        }
        let is_failure = !self.failure.is_null() && self.code >= 400;
        if is_failure {
            pairs.push(("reason", self.failure["reason"].clone(), other.failure["reason"].clone()));
            // The words are compared where they are about ownership.
            let (ours, theirs) = (&self.failure["causes"], &other.failure["causes"]);
            match self.code {
                409 => pairs.push(("causes", ours.clone(), theirs.clone())),
                _ => pairs.push(("causes", fields_of(ours), fields_of(theirs))),
            }
        }
        if self.object.is_object() {
            pairs.push(("version", json!(self.version), json!(other.version)));
            let objects = (without_defaults(&self.object, defaults), without_defaults(&other.object, defaults));
            pairs.push(("object", objects.0, objects.1));
            let kind = self.object["kind"].as_str().unwrap_or_default();
            let managers = |of: &Self| of.managers.iter().map(|m| manager_without(m, kind, defaults)).collect();
            pairs.push(("managers", managers(self), managers(other)));
        }
        pairs
    }
}

/// Reason and field of each cause.
fn fields_of(causes: &Value) -> Value {
    let mut fields: Vec<Value> =
        causes.as_array().into_iter().flatten().map(|c| json!([c["reason"], c["field"]])).collect();
    fields.sort_by_key(Value::to_string);
    fields.into()
}

/// A message, or the path of a field, without uids.
fn told(message: &Value) -> Value {
    let Some(text) = message.as_str() else { return Value::Null };
    let is_uid = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    let words = text.split_inclusive([' ', '"', ',', '\n']).map(|word| {
        let bare = word.trim_end_matches([' ', '"', ',', '\n']);
        if is_uid(bare) { word.replace(bare, "UID") } else { word.to_owned() }
    });
    words.collect::<String>().into()
}

fn managers(entries: &Value) -> Vec<Value> {
    let mut managers: Vec<Value> = entries.as_array().cloned().unwrap_or_default();
    for manager in &mut managers {
        if let Some(time) = manager.get_mut("time") {
            *time = json!("TIME");
        }
        hide_uids(&mut manager["fieldsV1"]);
    }
    // Theirs is the order of time, in seconds.
    managers.sort_by_key(|m| ["operation", "manager", "subresource"].map(|name| m[name].to_string()));
    managers
}

/// Hides what differs from run to run.
fn hide(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.remove("managedFields");
    for name in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = metadata.get_mut(name) {
            *value = json!(name.to_uppercase());
        }
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner["uid"] = json!("UID");
    }
}

/// Hides the uids in the keys of owners.
fn hide_uids(fields: &mut Value) {
    let Some(Value::Object(owners)) = fields.pointer_mut("/f:metadata/f:ownerReferences") else { return };
    let hidden = std::mem::take(owners).into_iter();
    *owners = hidden
        .map(|(key, value)| if key.starts_with("k:") { ("k:UID".to_owned(), value) } else { (key, value) })
        .collect();
}

/// A row of the defaults is a kind and a path, with `*` for each item of a list.
fn without_defaults(object: &Value, defaults: &[Vec<String>]) -> Value {
    let mut stripped = object.clone();
    for row in defaults.iter().filter(|row| object["kind"] == *row[0]) {
        let steps: Vec<&str> = row[1].split('.').collect();
        remove(&mut stripped, &steps);
    }
    sorted(stripped)
}

fn remove(value: &mut Value, steps: &[&str]) {
    match (value, steps) {
        (Value::Object(members), [last]) => drop(members.remove(*last)),
        (Value::Object(members), [first, rest @ ..]) => {
            if let Some(below) = members.get_mut(*first) {
                remove(below, rest);
                if *below == json!({}) {
                    members.remove(*first);
                }
            }
        }
        (Value::Array(items), ["*", rest @ ..]) => items.iter_mut().for_each(|item| remove(item, rest)),
        _ => {}
    }
}

fn manager_without(manager: &Value, kind: &str, defaults: &[Vec<String>]) -> Value {
    let mut manager = manager.clone();
    for row in defaults.iter().filter(|row| row[0] == kind) {
        let steps: Vec<&str> = row[1].split('.').collect();
        remove_field(&mut manager["fieldsV1"], &steps);
    }
    sorted(manager)
}

fn remove_field(fields: &mut Value, steps: &[&str]) {
    let Value::Object(members) = fields else { return };
    match steps {
        [] => {}
        ["*", rest @ ..] => members.values_mut().for_each(|below| remove_field(below, rest)),
        [last] => drop(members.remove(&format!("f:{last}"))),
        [first, rest @ ..] => {
            if let Some(below) = members.get_mut(&format!("f:{first}")) {
                let was_leaf = *below == json!({});
                remove_field(below, rest);
                if !was_leaf && *below == json!({}) {
                    members.remove(&format!("f:{first}"));
                }
            }
        }
    }
}

/// With its members in order, so that two print alike.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().map(|(name, v)| (name, sorted(v))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            members.into_iter().collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
