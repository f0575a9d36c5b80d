//! How values fall into fields.

use serde_json::{Value, json};

use super::field_set::key_element;
use crate::Resource;
use crate::openapi::{Field, Shape, Type};

/// What is known of the place where a value stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schema<'a> {
    /// A struct of the Kubernetes API.
    Struct(&'static Type),
    /// A field or an item of the Kubernetes API that is no struct; `list` tells what the list in it is.
    Shape { shape: &'static Shape, atomic: bool, list: BuiltInList },
    /// A custom resource, and its schema if it has one.
    Custom(Option<&'a Value>),
    /// A part of a custom resource, by its OpenAPI schema.
    OpenApi(&'a Value),
    /// Nothing: objects fall into their members, lists are one field.
    Unknown,
}

/// The list of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BuiltInList {
    Atomic,
    Set,
    Keys(&'static [&'static str]),
    Key(&'static str),
}

/// How the items of a list are told apart.
#[derive(Debug)]
pub(super) enum Items {
    /// Not at all: the list is one field.
    Atomic,
    /// By their values.
    Set,
    /// By the values of these members; a member that is not there has the second value, if there is one.
    Keys(Vec<(String, Option<Value>)>),
}

/// Lists whose keys differ from the merge key of the strategic merge patch, or that have none there.
const LISTS: &[(&str, &str, BuiltInList)] = &[
    ("Container", "ports", BuiltInList::Keys(&["containerPort", "protocol"])),
    ("EphemeralContainer", "ports", BuiltInList::Keys(&["containerPort", "protocol"])),
    ("ServiceSpec", "ports", BuiltInList::Keys(&["port", "protocol"])),
    ("PodSpec", "topologySpreadConstraints", BuiltInList::Keys(&["topologyKey", "whenUnsatisfiable"])),
    ("ResourceRequirements", "claims", BuiltInList::Key("name")),
    ("JobStatus", "conditions", BuiltInList::Atomic),
    ("UncountedTerminatedPods", "succeeded", BuiltInList::Set),
    ("UncountedTerminatedPods", "failed", BuiltInList::Set),
    ("ValidatingAdmissionPolicyStatus", "conditions", BuiltInList::Key("type")),
];

/// Structs that are one field.
const ATOMIC_STRUCTS: &[&str] = &[
    "ConfigMapKeySelector",
    "FileKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "OwnerReference",
    "ResourceFieldSelector",
    "ScopeSelector",
    "SecretKeySelector",
    "SecretReference",
    "TypedLocalObjectReference",
];

/// Maps that are one field.
const ATOMIC_MAPS: &[(&str, &str)] =
    &[("PodSpec", "nodeSelector"), ("ServiceSpec", "selector"), ("ReplicationControllerSpec", "selector")];

/// Fields that hold their struct by value in the real server, so that nobody owns the struct itself.
const VALUES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "strategy",
    "updateStrategy",
    "jobTemplate",
    "loadBalancer",
    "nodeInfo",
    "daemonEndpoints",
    "kubeletEndpoint",
    "resources",
    // A list, which is null in an empty object.
    "containers",
];

impl<'a> Schema<'a> {
    /// Of the objects of a resource.
    pub(crate) fn of(resource: &'a Resource) -> Schema<'a> {
        match Type::of_kind(&resource.group, &resource.version, &resource.kind) {
            Some(of) if !resource.custom => Self::Struct(of),
            _ => Self::Custom(resource.schema.as_ref()),
        }
    }

    /// The member of an object, and whether the schema declares it by name.
    pub(super) fn member(self, name: &str) -> (Schema<'a>, bool) {
        match self {
            Self::Struct(of) => match of.field(name) {
                Some(field) => (Self::field(of, field), true),
                None => (Self::Unknown, ["apiVersion", "kind"].contains(&name)),
            },
            Self::Shape { shape: Shape::Map(of), .. } => (Self::shape(of), false),
            Self::Custom(schema) => match name {
                "apiVersion" | "kind" => (Self::Unknown, true),
                "metadata" => (Type::object_meta().map_or(Self::Unknown, Self::Struct), true),
                _ => schema.map_or((Self::Unknown, false), |schema| Self::OpenApi(schema).member(name)),
            },
            Self::OpenApi(schema) => match (&schema["properties"][name], &schema["additionalProperties"]) {
                (property @ Value::Object(_), _) => (Self::OpenApi(property), true),
                (_, of @ Value::Object(_)) => (Self::OpenApi(of), false),
                _ => (Self::Unknown, false),
            },
            _ => (Self::Unknown, false),
        }
    }

    fn field(of: &'static Type, field: &'static Field) -> Schema<'a> {
        if let Shape::Object(name) = &field.shape {
            return Type::named(name).map_or(Self::Unknown, Self::Struct);
        }
        let short = short_name(of);
        let known = LISTS.iter().find(|(of, name, _)| *of == short && *name == field.name).map(|(_, _, list)| *list);
        let list = known.unwrap_or(match field.merge.as_ref().filter(|merge| merge.merges()) {
            Some(merge) => merge.key.map_or(BuiltInList::Set, BuiltInList::Key),
            None => BuiltInList::Atomic,
        });
        let atomic = ATOMIC_MAPS.contains(&(short, field.name));
        Self::Shape { shape: &field.shape, atomic, list }
    }

    fn shape(shape: &'static Shape) -> Schema<'a> {
        match shape {
            Shape::Object(name) => Type::named(name).map_or(Self::Unknown, Self::Struct),
            shape => Self::Shape { shape, atomic: false, list: BuiltInList::Atomic },
        }
    }

    /// Whether a member of this name may be there. What is not known is allowed.
    pub(super) fn allows(self, name: &str) -> bool {
        let schema = match self {
            Self::OpenApi(schema) => schema,
            Self::Custom(Some(schema)) if !["apiVersion", "kind", "metadata"].contains(&name) => schema,
            _ => return true,
        };
        let Some(properties) = schema["properties"].as_object() else { return true };
        properties.contains_key(name)
            || ["additionalProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"]
                .iter()
                .any(|open| !matches!(schema[*open], Value::Null | Value::Bool(false)))
    }

    /// The items of a list.
    pub(super) fn item(self) -> Schema<'a> {
        match self {
            Self::Shape { shape: Shape::List(of), .. } => Self::shape(of),
            Self::OpenApi(schema) => Self::OpenApi(&schema["items"]),
            _ => Self::Unknown,
        }
    }

    /// Whether an object here is one field.
    pub(super) fn is_atomic(self) -> bool {
        match self {
            Self::Struct(of) => ATOMIC_STRUCTS.contains(&short_name(of)),
            Self::Shape { atomic, .. } => atomic,
            Self::OpenApi(schema) => schema["x-kubernetes-map-type"] == "atomic",
            _ => false,
        }
    }

    /// How the items of a list here are told apart.
    pub(super) fn items(self) -> Items {
        let keys = |names: &[&str]| {
            let default = |name: &str| (name == "protocol").then(|| json!("TCP"));
            Items::Keys(names.iter().map(|name| ((*name).to_owned(), default(name))).collect())
        };
        match self {
            Self::Shape { list: BuiltInList::Set, .. } => Items::Set,
            Self::Shape { list: BuiltInList::Keys(names), .. } => keys(names),
            Self::Shape { list: BuiltInList::Key(name), .. } => keys(&[name]),
            Self::OpenApi(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => Items::Set,
                Some("map") => {
                    let names = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                    let default = |name: &str| schema["items"]["properties"][name].get("default").cloned();
                    Items::Keys(names.filter_map(Value::as_str).map(|name| (name.to_owned(), default(name))).collect())
                }
                _ => Items::Atomic,
            },
            _ => Items::Atomic,
        }
    }

    /// Whether the object itself is nobody's when this member of it is made.
    pub(super) fn is_value(self, element: &str) -> bool {
        matches!(self, Self::Struct(_)) && VALUES.iter().any(|name| element.strip_prefix("f:") == Some(name))
    }
}

impl Items {
    /// The element of a path that stands for this item.
    pub(super) fn element(&self, item: &Value) -> String {
        match self {
            Self::Atomic | Self::Set => format!("v:{item}"),
            Self::Keys(keys) => {
                let value = |name: &str, default: &Option<Value>| {
                    // A key that is missing is as one that is empty; `keyless` finds it.
                    let value = item.get(name).filter(|value| !value.is_null()).or(default.as_ref());
                    value.cloned().unwrap_or_else(|| json!(""))
                };
                key_element(&keys.iter().map(|(name, default)| (name.clone(), value(name, default))).collect())
            }
        }
    }

    /// The keys that an item lacks.
    pub(super) fn missing<'k>(&'k self, item: &Value) -> Vec<&'k str> {
        let Self::Keys(keys) = self else { return Vec::new() };
        let is_missing = |name: &str| item.get(name).is_none_or(|value| value.is_null() || value == "");
        keys.iter()
            .filter(|(name, default)| default.is_none() && is_missing(name))
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

fn short_name(of: &Type) -> &str {
    of.name.rsplit('.').next().unwrap_or_default()
}
