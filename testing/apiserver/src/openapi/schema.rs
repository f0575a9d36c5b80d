//! The types as OpenAPI v3 schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::types::{Field, Shape, Type};
use crate::resource::Resource;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schemas of these resources and of all that they refer to, by name.
pub(super) fn schemas<'r>(resources: impl Iterator<Item = &'r Resource>) -> BTreeMap<String, Value> {
    let mut schemas = BTreeMap::new();
    for resource in resources {
        match type_of(resource) {
            Some(of) => add(of, &mut schemas),
            None => {
                schemas.insert(name(resource), custom(resource));
                Type::named(OBJECT_META).into_iter().for_each(|of| add(of, &mut schemas));
            }
        }
    }
    schemas
}

/// The name of the schema of a resource's objects: for a custom one the group backwards, the version and the kind.
pub(super) fn name(resource: &Resource) -> String {
    if let Some(of) = type_of(resource) {
        return of.name.clone();
    }
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn type_of(resource: &Resource) -> Option<&'static Type> {
    if resource.custom { None } else { Type::of_kind(&resource.group, &resource.version, &resource.kind) }
}

fn add(of: &Type, schemas: &mut BTreeMap<String, Value>) {
    if schemas.contains_key(&of.name) {
        return;
    }
    schemas.insert(of.name.clone(), Value::Null);
    for field in &of.fields {
        add_referred(&field.shape, schemas);
    }
    schemas.insert(of.name.clone(), schema(of));
}

fn add_referred(shape: &Shape, schemas: &mut BTreeMap<String, Value>) {
    match shape {
        Shape::Object(name) => Type::named(name).into_iter().for_each(|of| add(of, schemas)),
        Shape::List(of) | Shape::Map(of) => add_referred(of, schemas),
        _ => {}
    }
}

fn schema(of: &Type) -> Value {
    let properties = of.fields.iter().map(|field| (field.name.to_owned(), property(field)));
    let mut schema = json!({"type": "object", "properties": properties.collect::<Map<_, _>>()});
    let required: Vec<&str> = of.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if let Some((group, version, kind)) = of.kind {
        add_kind(&mut schema, group, version, kind);
    }
    schema
}

fn custom(resource: &Resource) -> Value {
    let mut schema = match &resource.schema {
        Some(given @ Value::Object(_)) => given.clone(),
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["metadata"] = reference(OBJECT_META);
    add_kind(&mut schema, &resource.group, &resource.version, &resource.kind);
    schema
}

fn add_kind(schema: &mut Value, group: &str, version: &str, kind: &str) {
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["x-kubernetes-group-version-kind"] = json!([{"group": group, "version": version, "kind": kind}]);
}

fn property(field: &Field) -> Value {
    let mut property = shape(&field.shape);
    if let Some(merge) = &field.merge {
        if property.get("$ref").is_some() {
            // What stands beside a reference does not count.
            property = json!({"allOf": [property]});
        }
        property["x-kubernetes-patch-strategy"] = merge.strategy.into();
        if let Some(key) = merge.key {
            property["x-kubernetes-patch-merge-key"] = key.into();
        }
    }
    property
}

fn shape(of: &Shape) -> Value {
    match of {
        Shape::Any => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Double => json!({"type": "number", "format": "double"}),
        Shape::String => json!({"type": "string"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
        Shape::IntOrString => json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Shape::Object(name) => reference(name),
        Shape::List(of) => json!({"type": "array", "items": shape(of)}),
        Shape::Map(of) => json!({"type": "object", "additionalProperties": shape(of)}),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
