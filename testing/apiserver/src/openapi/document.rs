//! The documents under `/openapi`.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::schema::{name, schemas};
use crate::patch::PatchType;
use crate::resource::{Registry, Resource};

const JSON: &str = "application/json";
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// An answer of the OpenAPI end points.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

/// What `path` answers to a client that sends this `Accept` header: `/openapi/v3` the index, `/openapi/v3/api/v1` and
/// `/openapi/v3/apis/G/V` the documents that it names, `/openapi/v2` a document that says nothing; `None`: there is none.
///
/// Made anew at each call; the largest (`api/v1`) is of 200 kB.
pub(crate) fn document(registry: &Registry, path: &str, accept: &str) -> Option<Document> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let body = match parts[..] {
        ["openapi", "v2"] => return Some(v2(accept)),
        ["openapi", "v3"] => index(registry),
        ["openapi", "v3", "api", version] => group_version(registry, "", version)?,
        ["openapi", "v3", "apis", group, version] if !group.is_empty() => group_version(registry, group, version)?,
        _ => return None,
    };
    Some(Document { content_type: JSON, body: body.to_string().into() })
}

/// Clients that know v3 ask for v2 only when that does not answer their question (whether the kind `List` can be
/// validated by the server, how to patch a custom resource). Without definitions they do what they do for any kind that
/// is not described: send the object and let the server check it.
fn v2(accept: &str) -> Document {
    // Older clients write `v2@v1.0`.
    if accept.replace('@', ".").split(',').any(|media_type| media_type.trim().starts_with(V2_PROTOBUF)) {
        // Of the message `openapi.v2.Document`: swagger (1) and info (2) with title (1) and version (2).
        let info = [protobuf_text(1, "Kubernetes"), protobuf_text(2, "unversioned")].concat();
        let body = [protobuf_text(1, "2.0"), protobuf_bytes(2, &info)].concat();
        return Document { content_type: V2_PROTOBUF, body: body.into() };
    }
    let info = json!({"title": "Kubernetes", "version": "unversioned"});
    let body = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
    Document { content_type: JSON, body: body.to_string().into() }
}

fn protobuf_text(field: u8, text: &str) -> Vec<u8> {
    protobuf_bytes(field, text.as_bytes())
}

/// A field of the wire type "length-delimited", shorter than 128 bytes.
fn protobuf_bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
    debug_assert!(bytes.len() < 128);
    [&[field << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn index(registry: &Registry) -> Value {
    let path = |(group, version): (&str, &str)| match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    };
    let paths = registry.group_versions().into_iter().map(|group_version| {
        let path = path(group_version);
        let url = format!("/openapi/v3/{path}");
        (path, json!({"serverRelativeURL": url}))
    });
    json!({"paths": paths.collect::<Map<_, _>>()})
}

fn group_version(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<&Resource> = registry.in_group_version(group, version).map(AsRef::as_ref).collect();
    if resources.is_empty() {
        return None;
    }
    let paths: Map<String, Value> = resources.iter().flat_map(|resource| paths(resource)).collect();
    let schemas: Map<String, Value> = schemas(resources.into_iter()).into_iter().collect();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The paths of one resource with their operations.
fn paths(resource: &Resource) -> Vec<(String, Value)> {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}/{}{namespace}/{}", resource.api_version(), resource.plural);
    let item = format!("{collection}/{{name}}");
    let has = |verb: &str| resource.verbs().contains(&verb);
    let verbs = [
        (&collection, "list", "get"),
        (&collection, "create", "post"),
        (&collection, "deletecollection", "delete"),
        (&item, "get", "get"),
        (&item, "update", "put"),
        (&item, "patch", "patch"),
        (&item, "delete", "delete"),
    ];
    let mut paths: Vec<(String, Value)> = Vec::new();
    for (path, verb, method) in verbs.into_iter().filter(|(_, verb, _)| has(verb)) {
        let operation = operation(resource, verb);
        match paths.iter_mut().find(|(known, _)| known == path) {
            Some((_, operations)) => operations[method] = operation,
            None => paths.push((path.clone(), json!({method: operation}))),
        }
    }
    for subresource in resource.subresources() {
        let operations = json!({"get": operation(resource, "get"), "put": operation(resource, "update"),
                                "patch": operation(resource, "patch")});
        paths.push((format!("{item}/{subresource}"), operations));
    }
    paths
}

fn operation(resource: &Resource, verb: &str) -> Value {
    let object = json!({"schema": {"$ref": format!("#/components/schemas/{}", name(resource))}});
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut operation = json!({
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": kind,
        "responses": {"200": {"description": "OK", "content": {JSON: object}}},
    });
    if ["create", "update", "patch"].contains(&verb) {
        let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
        operation["parameters"] = ["dryRun", "fieldManager", "fieldValidation"].map(parameter).to_vec().into();
        operation["requestBody"] = json!({"content": {JSON: object}});
    }
    if verb == "patch" {
        let patches = PatchType::accepted(!resource.custom).map(|t| (t.content_type().to_owned(), json!({})));
        operation["requestBody"] = json!({"content": patches.collect::<Map<_, _>>()});
    }
    operation
}
