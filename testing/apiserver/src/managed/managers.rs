//! The managers of an object, and what they own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use super::merge::{merge, prune};
use super::schema::Schema;
use super::shape::{difference, fields};

/// Members of an object's metadata that nobody owns.
const NOBODYS: [&str; 8] =
    ["name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"];

/// The manager of what was there before anything was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, in which version, where and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    /// Empty, or `status`.
    pub(crate) subresource: &'a str,
    /// Whether the resource has a status of its own, which a write to the object leaves alone.
    pub(crate) status_apart: bool,
    pub(crate) time: &'a str,
}

/// A field that is wanted with another value by another manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// As messages show it: `"name" using v1`.
    pub(crate) manager: String,
    /// As messages show it: `.spec.replicas`.
    pub(crate) path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    manager: String,
    /// Whether its fields were applied, rather than updated.
    applied: bool,
    api_version: String,
    subresource: String,
    time: Option<String>,
    fields: FieldSet,
}

/// The managers of an object: what `metadata.managedFields` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managers(Vec<Entry>);

impl Managers {
    /// Reads `managedFields`. `None`: it cannot be read.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        if value.is_null() {
            return Some(Self::default());
        }
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let entries = value.as_array()?.iter().filter(|entry| **entry != json!({})).map(|entry| {
            let applied = match entry["operation"].as_str()? {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            Some(Entry {
                manager: text(entry, "manager"),
                applied,
                api_version: text(entry, "apiVersion"),
                subresource: text(entry, "subresource"),
                time: entry["time"].as_str().map(str::to_owned),
                fields: FieldSet::parse(entry.get("fieldsV1").unwrap_or(&json!({})))?,
            })
        });
        entries.collect::<Option<Vec<_>>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As `managedFields`: first who applied, then who updated, each in the order of time and name.
    pub(crate) fn to_value(&self) -> Value {
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        entries.sort_by_key(|e| (Reverse(e.applied), &e.time, &e.manager, &e.api_version, &e.subresource));
        entries.into_iter().map(Entry::to_value).collect()
    }

    /// The object that comes of it when `writer` applies `config`, which becomes all that it owns.
    ///
    /// # Errors
    /// The fields that others own with other values, unless `force` takes them over; nothing has changed then.
    pub(crate) fn apply(
        &mut self,
        live: &Value,
        config: &Value,
        schema: Schema<'_>,
        writer: Writer<'_>,
        force: bool,
    ) -> Result<Value, Vec<Conflict>> {
        let mut managers = self.clone();
        if managers.is_empty() {
            let before = Writer { manager: BEFORE_FIRST_APPLY, subresource: "", ..writer };
            let nothing = Value::Object(Map::new());
            let fields = owned(difference(&nothing, live, schema).changed, Writer { status_apart: false, ..before });
            managers.0.extend((!fields.is_empty()).then(|| Entry::new(before, false, fields)));
        }
        let at = managers.entry(writer, true);
        let last = std::mem::replace(&mut managers.0[at].fields, owned(fields(config, schema), writer));
        let mut new = merge(live.clone(), config, schema);
        let mut kept = FieldSet::default();
        managers.0.iter().for_each(|entry| kept.union(&entry.fields));
        prune(&mut new, schema, &last, &kept);
        let difference = difference(live, &new, schema);
        let mut conflicts = Vec::new();
        for (_, entry) in managers.0.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let disputed = entry.fields.intersection(&difference.changed);
            let shown = entry.shown();
            conflicts.extend(disputed.paths().into_iter().map(|path| Conflict { manager: shown.clone(), path }));
            entry.fields = entry.fields.difference(&disputed).difference(&difference.removed);
        }
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        // As the real server: who only joins in what is there already, or leaves it to others, has no new time.
        if !difference.changed.is_empty() || !difference.removed.is_empty() {
            managers.0[at].time = Some(writer.time.to_owned());
        }
        managers.0.retain(|entry| !entry.fields.is_empty());
        *self = managers;
        Ok(new)
    }

    /// Notes that `writer` has made `new` of `old` by any other write.
    pub(crate) fn update(&mut self, old: &Value, new: &Value, schema: Schema<'_>, writer: Writer<'_>) {
        let difference = difference(old, new, schema);
        let (changed, removed) = (owned(difference.changed, writer), owned(difference.removed, writer));
        if changed.is_empty() && removed.is_empty() {
            return;
        }
        for entry in &mut self.0 {
            entry.fields = entry.fields.difference(&changed).difference(&removed);
        }
        let at = self.entry(writer, false);
        self.0[at].fields.union(&changed);
        self.0[at].time = Some(writer.time.to_owned());
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Where the writer's entry is, made if it is not there.
    fn entry(&mut self, writer: Writer<'_>, applied: bool) -> usize {
        let is_own = |entry: &Entry| {
            entry.applied == applied
                && entry.manager == writer.manager
                && entry.subresource == writer.subresource
                && entry.api_version == writer.api_version
        };
        self.0.iter().position(is_own).unwrap_or_else(|| {
            self.0.push(Entry { time: None, ..Entry::new(writer, applied, FieldSet::default()) });
            self.0.len() - 1
        })
    }
}

impl Entry {
    fn new(writer: Writer<'_>, applied: bool, fields: FieldSet) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            applied,
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: Some(writer.time.to_owned()),
            fields,
        }
    }

    fn to_value(&self) -> Value {
        let mut entry = Map::new();
        let mut set = |name: &str, value: Value| drop(entry.insert(name.to_owned(), value));
        set("manager", json!(self.manager));
        set("operation", json!(if self.applied { "Apply" } else { "Update" }));
        set("apiVersion", json!(self.api_version));
        if let Some(time) = &self.time {
            set("time", json!(time));
        }
        set("fieldsType", json!("FieldsV1"));
        set("fieldsV1", self.fields.to_value());
        if !self.subresource.is_empty() {
            set("subresource", json!(self.subresource));
        }
        Value::Object(entry)
    }

    /// As messages show it.
    fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            shown += &format!(" with subresource {:?}", self.subresource);
        }
        if !self.applied {
            shown += &format!(" using {}", self.api_version);
        }
        shown
    }
}

/// The message of an apply that was refused, in the real server's words.
pub(crate) fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.path);
    }
    let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(&conflict.path);
    }
    let mut lines = Vec::new();
    for (manager, paths) in by_manager {
        lines.push(format!("conflicts with {manager}:"));
        lines.extend(paths.iter().map(|path| format!("- {path}")));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Of these fields those that a write there can own.
fn owned(mut fields: FieldSet, writer: Writer<'_>) -> FieldSet {
    fields.member = false;
    if writer.subresource == "status" {
        fields.retain("f:status");
        return fields;
    }
    fields.remove(&["f:apiVersion"]);
    fields.remove(&["f:kind"]);
    for name in NOBODYS {
        fields.remove(&["f:metadata", &format!("f:{name}")]);
    }
    if fields.child("f:metadata").is_some() {
        fields.child_mut("f:metadata".to_owned()).member = false;
    }
    if writer.status_apart {
        fields.remove(&["f:status"]);
    }
    fields
}
