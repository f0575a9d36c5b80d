//! The columns of nodes.

use serde_json::{Map, Value};

use super::column::{AGE, Column, NAME, Row, or_none, text, text_at};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Status", |row| status(row).into()),
    text("Roles", |row| or_none(roles(row)).into()),
    AGE,
    text("Version", |row| row.text("/status/nodeInfo/kubeletVersion").into()),
    text("Internal-IP", |row| address(row, "InternalIP").into()).wide(),
    text("External-IP", |row| address(row, "ExternalIP").into()).wide(),
    text("OS-Image", |row| row.text_or("/status/nodeInfo/osImage", "<unknown>").into()).wide(),
    text("Kernel-Version", |row| {
        let kernel = row.text_or("/status/nodeInfo/kernelVersion", "<unknown>");
        match row.text("/status/nodeInfo/architecture") {
            "" => kernel.into(),
            architecture => format!("{kernel} ({architecture})").into(),
        }
    })
    .wide(),
    text("Container-Runtime", |row| row.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>").into()).wide(),
];

fn status(row: &Row<'_>) -> String {
    let mut conditions = row.list("/status/conditions").iter();
    let ready = conditions.find(|condition| text_at(condition, "/type") == "Ready");
    let status = match ready.map(|condition| text_at(condition, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if row.object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        return format!("{status},SchedulingDisabled");
    }
    status.to_owned()
}

fn roles(row: &Row<'_>) -> String {
    let labels = row.object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let mut roles: Vec<_> = labels
        .filter_map(|(label, value)| match label.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if label == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles.join(",")
}

fn address<'v>(row: &Row<'v>, type_: &str) -> &'v str {
    let mut addresses = row.list("/status/addresses").iter();
    addresses.find(|address| text_at(address, "/type") == type_).map_or("<none>", |a| text_at(a, "/address"))
}
