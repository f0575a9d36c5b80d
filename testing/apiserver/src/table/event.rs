//! The columns of events.

use serde_json::Value;

use super::column::{Column, NAME, Row, text};
use super::duration;

/// Of both groups: what one calls `involvedObject`, `message` and `source`, the other calls `regarding`, `note` and
/// `deprecatedSource`.
pub(super) const COLUMNS: &[Column] = &[
    text("Last Seen", |row| last_seen(row).into()),
    text("Type", |row| row.text("/type").into()),
    text("Reason", |row| row.text("/reason").into()),
    text("Object", |row| {
        let kind = either(row, ["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
        match either(row, ["/involvedObject/name", "/regarding/name"]) {
            "" => kind.into(),
            name => format!("{kind}/{name}").into(),
        }
    }),
    text("Subobject", |row| either(row, ["/involvedObject/fieldPath", "/regarding/fieldPath"]).into()).wide(),
    text("Source", |row| source(row).into()).wide(),
    text("Message", |row| either(row, ["/message", "/note"]).trim().into()),
    text("First Seen", |row| first_seen(row).into()).wide(),
    text("Count", |row| {
        let counts = ["/series/count", "/count", "/deprecatedCount"];
        counts.iter().map(|pointer| row.integer(pointer)).find(|count| *count != 0).unwrap_or(1).into()
    })
    .wide(),
    NAME.wide(),
];

/// Of two fields, the one that has a text.
fn either<'v>(row: &Row<'v>, pointers: [&str; 2]) -> &'v str {
    pointers.into_iter().map(|pointer| row.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn first_seen(row: &Row<'_>) -> String {
    match either(row, ["/firstTimestamp", "/deprecatedFirstTimestamp"]) {
        "" => row.since("/eventTime"),
        time => duration::since(Some(time), row.now),
    }
}

fn last_seen(row: &Row<'_>) -> String {
    if row.object.get("series").is_some_and(Value::is_object) {
        return row.since("/series/lastObservedTime");
    }
    match either(row, ["/lastTimestamp", "/deprecatedLastTimestamp"]) {
        "" => first_seen(row),
        time => duration::since(Some(time), row.now),
    }
}

fn source(row: &Row<'_>) -> String {
    let first = |pointers: [&str; 4]| {
        pointers.into_iter().map(|pointer| row.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component =
        first(["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"]);
    let instance = first(["/source/host", "/deprecatedSource/host", "/reportingInstance", ""]);
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
