//! The types of the built-in kinds, one truth for five uses: the merge keys of the strategic merge patch, the schemas
//! of the OpenAPI documents, the check for unknown fields, the reading and the writing of protobuf.
//!
//! `types.txt` (written by `types.py`) has a line for each type, in three forms:
//!
//! ```text
//! package io.k8s.api.core.v1 core v1             the types that follow are of this package; its group and version
//! kind Pod metadata#1:meta.ObjectMeta spec#2:PodSpec   a type with apiVersion and kind, which stand for themselves
//! type PodSpec containers#2:[]Container!@merge=name nodeName#10:string hostUsers#37:*bool
//! type Volume name#1:*string! emptyDir#2.2:EmptyDirVolumeSource
//! ```
//!
//! A field is `name#number:shape`, then `!` if it is required, then `@strategies=merge key` as the Kubernetes API states
//! them. The number is protobuf's; `2.2` stands for field 2 of the message that is field 2, where JSON has one object.
//! A shape is a scalar (`*` before it: a zero differs from no value), a type (of the same package; `meta.` and `core.` for
//! those two; else in full), `[]shape` or `{}shape`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The facts, parsed once (about 500 types, a millisecond).
static TYPES: LazyLock<Types> = LazyLock::new(|| Types::parse(include_str!("types.txt")));

/// Where the types are that all groups have in common.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

#[derive(Default)]
struct Types {
    /// Sorted by package and name, as the file is.
    all: Vec<Type>,
    by_name: HashMap<String, usize>,
    /// Group, version, kind.
    by_kind: HashMap<(&'static str, &'static str, &'static str), usize>,
}

/// One struct of the Kubernetes API.
#[derive(Debug)]
pub(crate) struct Type {
    /// `io.k8s.api.core.v1.PodSpec`.
    pub(crate) name: String,
    /// Group, version, kind, if objects of this type stand by themselves.
    pub(crate) kind: Option<(&'static str, &'static str, &'static str)>,
    /// Without `apiVersion` and `kind` where `kind` is set. Sorted by name.
    pub(crate) fields: Vec<Field>,
    /// The indices of `fields` in the order of their numbers.
    by_number: Vec<usize>,
}

/// One field of a [`Type`].
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The protobuf number, in the message and in those within it that JSON does not show.
    pub(crate) number: Vec<u32>,
    pub(crate) shape: Shape,
    /// Whether a zero (empty text, false, 0) differs from no value: protobuf writes it in both cases.
    pub(crate) keeps_zero: bool,
    pub(crate) required: bool,
    pub(crate) merge: Option<Merge>,
}

/// What a value looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Anything, not looked into.
    Any,
    Bool,
    Int32,
    Int64,
    Double,
    String,
    /// Base64 text.
    Bytes,
    Time,
    MicroTime,
    IntOrString,
    Quantity,
    /// The full name of a type.
    Object(String),
    List(Box<Shape>),
    Map(Box<Shape>),
}

/// How a strategic merge patch treats a field: the words of the API's own annotations.
#[derive(Debug)]
pub(crate) struct Merge {
    /// `merge`, `replace`, `retainKeys` or `merge,retainKeys`.
    pub(crate) strategy: &'static str,
    /// The field that tells the elements of a merged list apart. `None`: a set of scalars.
    pub(crate) key: Option<&'static str>,
}

impl Merge {
    /// Whether a list's elements are merged, rather than the list replaced.
    pub(crate) fn merges(&self) -> bool {
        self.strategy.split(',').any(|s| s == "merge")
    }

    /// Whether an object is replaced as a whole.
    pub(crate) fn replaces(&self) -> bool {
        self.strategy == "replace"
    }
}

impl Type {
    /// The type of a built-in kind. The group of `v1` is the empty string. `None` for all that the Kubernetes API itself
    /// does not define (custom resources), and for versions that are not generally available.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Type> {
        TYPES.by_kind.get(&(group, version, kind)).map(|&i| &TYPES.all[i])
    }

    /// The type of that full name.
    pub(crate) fn named(name: &str) -> Option<&'static Type> {
        TYPES.by_name.get(name).map(|&i| &TYPES.all[i])
    }

    /// The type of objects that say so of themselves.
    pub(crate) fn of_object(api_version: &str, kind: &str) -> Option<&'static Type> {
        // These stand in every group.
        if ["DeleteOptions", "Status"].contains(&kind) {
            return Type::named(&format!("{META}.{kind}"));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Type::of_kind(group, version, kind)
    }

    /// What stands for any object of which only the metadata are wanted.
    pub(crate) fn metadata_only() -> Option<&'static Type> {
        Type::named(&format!("{META}.PartialObjectMetadata"))
    }

    /// The metadata of an object.
    pub(crate) fn object_meta() -> Option<&'static Type> {
        Type::named(&format!("{META}.ObjectMeta"))
    }

    /// The metadata of a list.
    pub(crate) fn list_meta() -> Option<&'static Type> {
        Type::named(&format!("{META}.ListMeta"))
    }

    /// The fields in the order of their protobuf numbers.
    pub(crate) fn fields_by_number(&self) -> Vec<&Field> {
        self.by_number.iter().map(|&at| &self.fields[at]).collect()
    }

    /// The field of that name, in O(log n).
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|f| f.name.cmp(name)).ok().map(|i| &self.fields[i])
    }
}

impl Shape {
    /// The type of the objects found here: of the value itself, or of the elements of a list.
    pub(crate) fn element(&self) -> Option<&'static Type> {
        match self {
            Shape::Object(name) => Type::named(name),
            Shape::List(of) => of.element(),
            _ => None,
        }
    }

    fn parse(text: &str, package: &str) -> Shape {
        if let Some(of) = text.strip_prefix("[]") {
            return Shape::List(Box::new(Shape::parse(of, package)));
        }
        if let Some(of) = text.strip_prefix("{}") {
            return Shape::Map(Box::new(Shape::parse(of, package)));
        }
        match text {
            "any" => Shape::Any,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "double" => Shape::Double,
            "string" => Shape::String,
            "bytes" => Shape::Bytes,
            "time" => Shape::Time,
            "micro-time" => Shape::MicroTime,
            "int-or-string" => Shape::IntOrString,
            "quantity" => Shape::Quantity,
            name => Shape::Object(match name.split_once('.') {
                None => format!("{package}.{name}"),
                Some(("meta", short)) => format!("{META}.{short}"),
                Some(("core", short)) => format!("io.k8s.api.core.v1.{short}"),
                Some(_) => name.to_owned(),
            }),
        }
    }
}

impl Field {
    fn parse(text: &'static str, package: &str) -> Field {
        let (name, rest) = text.split_once(':').unwrap_or((text, "any"));
        let (rest, merge) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, merge)) => {
                let (strategy, key) = merge.split_once('=').map_or((merge, None), |(s, k)| (s, Some(k)));
                (rest, Some(Merge { strategy, key }))
            }
        };
        let (shape, required) = rest.strip_suffix('!').map_or((rest, false), |shape| (shape, true));
        let (shape, keeps_zero) = shape.strip_prefix('*').map_or((shape, false), |shape| (shape, true));
        let (name, number) = name.split_once('#').unwrap_or((name, ""));
        let number = number.split('.').filter_map(|number| number.parse().ok()).collect();
        Field { name, number, shape: Shape::parse(shape, package), keeps_zero, required, merge }
    }
}

impl Types {
    fn parse(text: &'static str) -> Types {
        let mut types = Types::default();
        let (mut package, mut group, mut version) = ("", "", "");
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("package"), Some(name)) => {
                    package = name;
                    group = words.next().filter(|group| *group != "core").unwrap_or_default();
                    version = words.next().unwrap_or_default();
                }
                (Some(word @ ("kind" | "type")), Some(short)) => {
                    let kind = (word == "kind").then_some((group, version, short));
                    let name = format!("{package}.{short}");
                    let mut fields: Vec<_> = words.map(|field| Field::parse(field, package)).collect();
                    fields.sort_by_key(|field| field.name);
                    types.by_name.insert(name.clone(), types.all.len());
                    types.by_kind.extend(kind.map(|kind| (kind, types.all.len())));
                    let mut by_number: Vec<usize> = (0..fields.len()).collect();
                    by_number.sort_by_key(|&at| &fields[at].number);
                    types.all.push(Type { name, kind, fields, by_number });
                }
                _ => {}
            }
        }
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(shape: &Shape, into: &mut Vec<String>) {
        match shape {
            Shape::Object(name) => into.push(name.clone()),
            Shape::List(of) | Shape::Map(of) => references(of, into),
            _ => {}
        }
    }

    #[test]
    fn every_type_that_is_referred_to_is_defined() {
        let mut names = Vec::new();
        TYPES.all.iter().flat_map(|t| &t.fields).for_each(|f| references(&f.shape, &mut names));
        assert!(names.len() > 500);
        for name in names {
            assert!(Type::named(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_field_has_a_number_of_its_own() {
        for of in &TYPES.all {
            let numbers: std::collections::BTreeSet<_> = of.fields.iter().map(|field| &field.number).collect();
            assert_eq!(numbers.len(), of.fields.len(), "{}", of.name);
            assert!(numbers.iter().all(|number| !number.is_empty()), "{}", of.name);
        }
    }

    #[test]
    fn a_merge_key_is_a_field_of_the_elements_and_its_absence_means_scalars() {
        for (of, field) in TYPES.all.iter().flat_map(|t| t.fields.iter().map(move |f| (&t.name, f))) {
            let Some(merge) = &field.merge else { continue };
            match (merge.key, field.shape.element()) {
                (Some(key), Some(element)) => assert!(element.field(key).is_some(), "{of}.{}", field.name),
                (Some(_), None) => panic!("{of}.{} has a merge key but no objects", field.name),
                (None, element) => assert_eq!(element.is_none(), merge.merges(), "{of}.{}", field.name),
            }
        }
    }

    #[test]
    fn the_kinds_of_the_issue_are_there_with_their_metadata() {
        let kinds = [
            ("", "Pod"),
            ("", "ConfigMap"),
            ("", "Node"),
            ("", "Namespace"),
            ("", "Event"),
            ("", "Secret"),
            ("", "Service"),
            ("", "ServiceAccount"),
            ("apps", "Deployment"),
            ("apps", "ReplicaSet"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
            ("batch", "Job"),
            ("batch", "CronJob"),
            ("coordination.k8s.io", "Lease"),
            ("events.k8s.io", "Event"),
        ];
        for (group, kind) in kinds {
            let of = Type::of_kind(group, "v1", kind).unwrap_or_else(|| panic!("{group} {kind}"));
            assert!(
                of.field("metadata")
                    .and_then(|f| f.shape.element())
                    .is_some_and(|m| m.field("ownerReferences").is_some())
            );
        }
        assert!(Type::of_kind("example.com", "v1", "Pod").is_none());
    }
}
