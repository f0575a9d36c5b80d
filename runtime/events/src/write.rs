//! PURE: what is sent to the API server.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::EventsApi;
use crate::body::{Body, Identity};

/// One request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Write {
    /// Which of the two APIs.
    pub api: EventsApi,
    /// Where the event is kept: its object's namespace, or `default`.
    pub namespace: String,
    /// The event's name.
    pub name: String,
    /// What to do.
    pub verb: WriteVerb,
    /// The whole event, or the merge patch.
    pub body: Value,
}

/// What to do with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// Make it: POST.
    Create,
    /// Count it up, by a merge patch: PATCH.
    Patch,
}

/// Who reports: the same for all events of a recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reporter {
    pub(crate) controller: String,
    pub(crate) instance: String,
    pub(crate) host: String,
}

/// How often something was seen, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sightings {
    pub(crate) count: u32,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

fn reference(object: &Identity, version: &str) -> Value {
    let mut reference = json!({});
    for (name, value) in [
        ("apiVersion", object.api_version.as_str()),
        ("kind", &object.kind),
        ("namespace", &object.namespace),
        ("name", &object.name),
        ("uid", &object.uid),
        ("fieldPath", &object.field_path),
        ("resourceVersion", version),
    ] {
        if !value.is_empty() {
            reference[name] = json!(value);
        }
    }
    reference
}

impl Write {
    /// The whole event.
    pub(crate) fn create(
        api: EventsApi,
        name: &str,
        body: &Body,
        version: &str,
        seen: Sightings,
        reporter: &Reporter,
    ) -> Self {
        let namespace = body.regarding.event_namespace().to_owned();
        let regarding = reference(&body.regarding, version);
        let mut event = json!({
            "apiVersion": api.api_version(),
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "type": body.type_.as_str(),
            "reason": body.reason,
            "action": body.action,
            "reportingInstance": reporter.instance,
        });
        if let Some(related) = &body.related {
            event["related"] = reference(related, "");
        }
        match api {
            EventsApi::EventsV1 => {
                event["regarding"] = regarding;
                event["note"] = json!(body.note);
                event["reportingController"] = json!(reporter.controller);
                event["eventTime"] = json!(micros(seen.first));
                if seen.count > 1 {
                    event["series"] = series(seen);
                }
            }
            EventsApi::CoreV1 => {
                event["involvedObject"] = regarding;
                event["message"] = json!(body.note);
                event["reportingComponent"] = json!(reporter.controller);
                event["source"] = json!({"component": reporter.controller, "host": reporter.host});
                event["firstTimestamp"] = json!(seconds(seen.first));
                event["lastTimestamp"] = json!(seconds(seen.last));
                event["count"] = json!(seen.count);
                event["eventTime"] = Value::Null;
            }
        }
        Self { api, namespace, name: name.to_owned(), verb: WriteVerb::Create, body: event }
    }

    /// That it was seen again.
    pub(crate) fn patch(api: EventsApi, name: &str, body: &Body, seen: Sightings) -> Self {
        let patch = match api {
            EventsApi::EventsV1 => json!({"series": series(seen)}),
            EventsApi::CoreV1 => {
                json!({"count": seen.count, "lastTimestamp": seconds(seen.last), "message": body.note})
            }
        };
        let namespace = body.regarding.event_namespace().to_owned();
        Self { api, namespace, name: name.to_owned(), verb: WriteVerb::Patch, body: patch }
    }
}

fn series(seen: Sightings) -> Value {
    json!({"count": seen.count, "lastObservedTime": micros(seen.last)})
}
