//! The columns of what makes pods by a template.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::column::{AGE, Column, NAME, Row, boolean, integer, joined, list_at, or_none, pairs, text, text_at};
use super::duration;

pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", |row| ready(row, "/spec/replicas")),
    text("Up-to-date", |row| row.integer("/status/updatedReplicas").into()),
    text("Available", |row| row.integer("/status/availableReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    text("Selector", |row| selector(row, "/spec/selector").into()).wide(),
];

pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired", |row| row.integer("/spec/replicas").into()),
    integer("Current", |row| row.integer("/status/replicas").into()),
    integer("Ready", |row| row.integer("/status/readyReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const STATEFUL_SET: &[Column] =
    &[NAME, text("Ready", |row| ready(row, "/spec/replicas")), AGE, CONTAINERS, IMAGES];

pub(super) const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired", |row| row.integer("/status/desiredNumberScheduled").into()),
    integer("Current", |row| row.integer("/status/currentNumberScheduled").into()),
    integer("Ready", |row| row.integer("/status/numberReady").into()),
    integer("Up-to-date", |row| row.integer("/status/updatedNumberScheduled").into()),
    integer("Available", |row| row.integer("/status/numberAvailable").into()),
    text("Node Selector", |row| or_none(pairs(row.object.pointer("/spec/template/spec/nodeSelector"))).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const JOB: &[Column] = &[
    NAME,
    text("Status", |row| job_status(row).into()),
    text("Completions", |row| {
        let succeeded = row.integer("/status/succeeded");
        match (row.object.pointer("/spec/completions"), row.integer("/spec/parallelism")) {
            (Some(completions), _) => format!("{succeeded}/{completions}").into(),
            (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}").into(),
            (None, _) => format!("{succeeded}/1").into(),
        }
    }),
    text("Duration", |row| job_duration(row).map_or_else(String::new, duration::human).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", |row| row.text("/spec/schedule").into()),
    text("Timezone", |row| row.text_or("/spec/timeZone", "<none>").into()),
    boolean("Suspend", |row| match row.object.pointer("/spec/suspend") {
        Some(Value::Bool(true)) => "True".into(),
        Some(_) => "False".into(),
        None => "<unset>".into(),
    }),
    integer("Active", |row| row.list("/status/active").len().into()),
    text("Last Schedule", |row| match row.text("/status/lastScheduleTime") {
        "" => "<none>".into(),
        time => duration::since(Some(time), row.now).into(),
    }),
    AGE,
    text("Containers", |row| containers(row, JOB_TEMPLATE, "/name")).wide(),
    text("Images", |row| containers(row, JOB_TEMPLATE, "/image")).wide(),
    text("Selector", |row| or_none(selector(row, "/spec/jobTemplate/spec/selector")).into()).wide(),
];

const TEMPLATE: &str = "/spec/template";
const JOB_TEMPLATE: &str = "/spec/jobTemplate/spec/template";

const CONTAINERS: Column = text("Containers", |row| containers(row, TEMPLATE, "/name")).wide();
const IMAGES: Column = text("Images", |row| containers(row, TEMPLATE, "/image")).wide();
const SELECTOR: Column = text("Selector", |row| or_none(selector(row, "/spec/selector")).into()).wide();

/// What stands at `pointer` in each container of a pod template.
fn containers(row: &Row<'_>, template: &str, pointer: &str) -> Value {
    let containers = row.object.pointer(template).map(|template| list_at(template, "/spec/containers"));
    joined(containers.unwrap_or_default(), pointer).into()
}

fn ready(row: &Row<'_>, desired: &str) -> Value {
    format!("{}/{}", row.integer("/status/readyReplicas"), row.integer(desired)).into()
}

/// A label selector as it is typed: `a=1,b in (x,y),!c`, by label.
fn selector(row: &Row<'_>, pointer: &str) -> String {
    let Some(selector) = row.object.pointer(pointer) else { return String::new() };
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let mut terms: Vec<(&str, String)> =
        labels.map(|(name, value)| (name.as_str(), format!("{name}={}", value.as_str().unwrap_or_default()))).collect();
    for expression in list_at(selector, "/matchExpressions") {
        let label = text_at(expression, "/key");
        let mut values: Vec<_> = list_at(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        terms.push(match text_at(expression, "/operator") {
            "In" => (label, format!("{label} in ({values})")),
            "NotIn" => (label, format!("{label} notin ({values})")),
            "Exists" => (label, label.to_owned()),
            "DoesNotExist" => (label, format!("!{label}")),
            _ => return "<invalid>".to_owned(),
        });
    }
    terms.sort_by_key(|(label, _)| *label);
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

fn job_status(row: &Row<'_>) -> &'static str {
    let is_true = |type_: &str| {
        let mut conditions = row.list("/status/conditions").iter();
        conditions.find(|c| text_at(c, "/type") == type_).is_some_and(|c| text_at(c, "/status") == "True")
    };
    match () {
        () if is_true("Complete") => "Complete",
        () if is_true("Failed") => "Failed",
        () if row.is_terminating() => "Terminating",
        () if is_true("Suspended") => "Suspended",
        () if is_true("FailureTarget") => "FailureTarget",
        () if is_true("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_duration(row: &Row<'_>) -> Option<SignedDuration> {
    let time = |pointer: &str| row.text(pointer).parse::<Timestamp>().ok();
    let start = time("/status/startTime")?;
    Some(time("/status/completionTime").unwrap_or(row.now).duration_since(start))
}
