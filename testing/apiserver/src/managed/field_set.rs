//! A set of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A set of paths into an object, as a tree. An element of a path is written as in `fieldsV1`: `f:name` for a member,
/// `k:{"name":"a"}` for an item of a list by its keys, `v:"a"` for an item of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(FieldSet::is_empty)
    }

    pub(super) fn child(&self, element: &str) -> Option<&FieldSet> {
        self.children.get(element)
    }

    /// What is below this element, made if it is not there.
    pub(super) fn child_mut(&mut self, element: String) -> &mut FieldSet {
        self.children.entry(element).or_default()
    }

    /// Takes out all that begins with this path.
    pub(super) fn remove(&mut self, path: &[&str]) {
        match path {
            [] => *self = Self::default(),
            [last] => drop(self.children.remove(*last)),
            [first, rest @ ..] => {
                if let Some(child) = self.children.get_mut(*first) {
                    child.remove(rest);
                }
            }
        }
    }

    /// Leaves only what begins with this element.
    pub(super) fn retain(&mut self, element: &str) {
        self.children.retain(|e, _| e == element);
    }

    pub(super) fn union(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, child) in &other.children {
            self.child_mut(element.clone()).union(child);
        }
    }

    pub(super) fn difference(&self, other: &FieldSet) -> FieldSet {
        let nothing = FieldSet::default();
        self.combined(
            other.member,
            |element| Some(other.child(element).unwrap_or(&nothing)),
            FieldSet::difference,
            |own, others| own && !others,
        )
    }

    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.combined(other.member, |element| other.child(element), FieldSet::intersection, |own, others| own && others)
    }

    fn combined<'o>(
        &self,
        other_member: bool,
        other: impl Fn(&str) -> Option<&'o FieldSet>,
        deeper: fn(&FieldSet, &FieldSet) -> FieldSet,
        member: fn(bool, bool) -> bool,
    ) -> FieldSet {
        let children = self.children.iter().filter_map(|(element, child)| {
            let combined = deeper(child, other(element)?);
            (!combined.is_empty()).then(|| (element.clone(), combined))
        });
        FieldSet { member: member(self.member, other_member), children: children.collect() }
    }

    /// The paths as messages show them, such as `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(String::new(), &mut paths);
        paths
    }

    fn collect(&self, path: String, paths: &mut Vec<String>) {
        for (element, child) in &self.children {
            child.collect(format!("{path}{}", shown(element)), paths);
        }
        if self.member {
            paths.push(path);
        }
    }

    /// As `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut members = Map::new();
        if self.member && !self.children.is_empty() {
            members.insert(".".to_owned(), json!({}));
        }
        for (element, child) in self.children.iter().filter(|(_, child)| !child.is_empty()) {
            members.insert(element.clone(), child.to_value());
        }
        Value::Object(members)
    }

    /// Reads `fieldsV1`. `None`: it is none.
    pub(super) fn parse(value: &Value) -> Option<FieldSet> {
        let mut set = Self::parse_below(value)?;
        set.member = false;
        Some(set)
    }

    fn parse_below(value: &Value) -> Option<FieldSet> {
        let members = value.as_object()?;
        let mut set = FieldSet { member: members.is_empty() || members.contains_key("."), ..FieldSet::default() };
        for (element, child) in members.iter().filter(|(element, _)| *element != ".") {
            let element = match element.split_once(':')? {
                ("f" | "i", _) => element.clone(),
                ("v", text) => format!("v:{}", serde_json::from_str::<Value>(text).ok()?),
                ("k", text) => {
                    let keys: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
                    key_element(&keys)
                }
                _ => return None,
            };
            set.children.insert(element, Self::parse_below(child)?);
        }
        Some(set)
    }
}

/// The element of an item with these keys.
pub(super) fn key_element(keys: &BTreeMap<String, Value>) -> String {
    format!("k:{}", json!(keys))
}

/// An element as messages show it.
pub(super) fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("v", value)) => format!("[={value}]"),
        Some(("k", keys)) => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        _ => format!("[{element}]"),
    }
}
