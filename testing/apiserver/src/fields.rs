//! PURE. Which fields a field selector may name, and where they are in an object.

use serde_json::Value;

use crate::Resource;
use crate::pairs::Pairs;

/// The selectable fields of a kind besides `metadata.name` and `metadata.namespace`: the selector's name and the
/// path in the object.
const BY_KIND: &[(&str, &str, &[&str])] = &[
    (
        "",
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "",
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("", "nodes", &["spec.unschedulable"]),
    ("", "namespaces", &["status.phase"]),
    ("", "secrets", &["type"]),
    ("", "services", &["spec.clusterIP", "spec.type"]),
    ("apps", "replicasets", &["status.replicas"]),
    ("batch", "jobs", &["status.successful"]),
];

fn selectable(resource: &Resource) -> &'static [&'static str] {
    let found = BY_KIND.iter().find(|(group, plural, _)| resource.group == *group && resource.plural == *plural);
    found.map_or(&[], |(_, _, fields)| fields)
}

/// Whether a field selector may name this field.
pub(crate) fn is_selectable(resource: &Resource, field: &str) -> bool {
    field == "metadata.name"
        || (field == "metadata.namespace" && resource.namespaced)
        || selectable(resource).contains(&field)
}

/// The values of an object's selectable fields; absent and empty ones are left out.
pub(crate) fn of(resource: &Resource, object: &Value) -> Pairs {
    let values: Vec<(&str, String)> = selectable(resource)
        .iter()
        .map(|field| (*field, value(object, field)))
        .filter(|(_, v)| !v.is_empty())
        .collect();
    values.iter().map(|(field, value)| (*field, value.as_str())).collect()
}

fn value(object: &Value, field: &str) -> String {
    let path = match field {
        // As the real server: where an event came from, in two generations of names.
        "source" => "source.component",
        // The name is the API's, the field is another.
        "status.successful" => "status.succeeded",
        _ => field,
    };
    let mut at = Some(object);
    for step in path.split('.') {
        at = at.and_then(|at| at.get(step));
    }
    match (at, field) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Null) | None, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        (Some(Value::Null) | None, "status.replicas" | "status.successful") => "0".to_owned(),
        (Some(Value::Null) | None, _) => String::new(),
        (Some(other), _) => other.to_string(),
    }
}
