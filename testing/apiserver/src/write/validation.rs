//! PURE. The rules of metadata, and of kinds that clients write by the second: leases and events. They are the real server's.

use serde_json::Value;

use super::names::is_qualified_name;
use super::{meta_text, object_meta};
use crate::status::Cause;
use crate::{Resource, Status};

const NOTE_LEN_MAX: usize = 1024;
const FIELD_LEN_MAX: usize = 128;

/// Checks a new object, or the new state of one.
pub(super) fn check(resource: &Resource, old: Option<&Value>, new: &Value) -> Result<(), Status> {
    let own = match (&*resource.group, &*resource.plural) {
        ("coordination.k8s.io", "leases") => lease(new),
        ("events.k8s.io", "events") => [event(new, "regarding", "note"), new_event(old, new)].concat(),
        // One of the old API says so by having no `eventTime`; then little is checked.
        ("", "events") if new["eventTime"].is_null() => event(new, "involvedObject", "message"),
        _ => Vec::new(),
    };
    let causes = [object_meta::check(&new["metadata"]), own].concat();
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(resource, meta_text(new, "name"), causes)) }
}

fn lease(lease: &Value) -> Vec<Cause> {
    let spec = &lease["spec"];
    let mut causes = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &seconds.to_string(), "must be greater than 0"));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|count| *count < 0) {
        causes.push(Cause::invalid("spec.leaseTransitions", &count.to_string(), "must be greater than or equal to 0"));
    }
    causes
}

/// An event lies where its object does.
fn event(event: &Value, object: &str, note: &str) -> Vec<Cause> {
    let (own, object_namespace) = (meta_text(event, "namespace"), event[object]["namespace"].as_str().unwrap_or(""));
    let mut causes = Vec::new();
    let fits =
        if object_namespace.is_empty() { ["default", "kube-system"].contains(&own) } else { own == object_namespace };
    if !fits {
        causes.push(Cause::invalid(&format!("{object}.namespace"), object_namespace, "does not match event.namespace"));
    }
    if note == "note" {
        too_long(event, note, NOTE_LEN_MAX, &mut causes);
    }
    causes
}

fn too_long(event: &Value, field: &str, max: usize, causes: &mut Vec<Cause>) {
    let text = event[field].as_str().unwrap_or_default();
    if text.len() > max {
        causes.push(Cause::invalid(field, text, &format!("can have at most {max} characters")));
    }
}

/// What `events.k8s.io/v1` wants on top.
fn new_event(old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["reason", "action", "reportingInstance"] {
        if new[field].as_str().unwrap_or_default().is_empty() {
            causes.push(Cause::required(field, ""));
        }
        too_long(new, field, FIELD_LEN_MAX, &mut causes);
    }
    let controller = new["reportingController"].as_str().unwrap_or_default();
    if !is_qualified_name(controller) {
        causes.push(Cause::invalid("reportingController", controller, "must be a qualified name"));
    }
    if new["eventTime"].as_str().is_none_or(|time| time.is_empty()) {
        causes.push(Cause::required("eventTime", ""));
    }
    let type_ = new["type"].as_str().unwrap_or_default();
    if !["Normal", "Warning"].contains(&type_) {
        causes.push(Cause::invalid("type", type_, "has invalid value"));
    }
    let series = &new["series"];
    if !series.is_null() && old.is_none_or(|old| old["series"] != *series) {
        if series["count"].as_i64().unwrap_or(0) < 2 {
            causes.push(Cause::invalid("series.count", &series["count"].to_string(), "should be at least 2"));
        }
        if series["lastObservedTime"].is_null() {
            causes.push(Cause::required("series.lastObservedTime", ""));
        }
    }
    let fixed = [
        "regarding",
        "related",
        "reason",
        "note",
        "type",
        "action",
        "reportingController",
        "reportingInstance",
        "eventTime",
    ];
    let changed = fixed.into_iter().filter(|field| old.is_some_and(|old| old[field] != new[field]));
    causes.extend(changed.map(|field| Cause::invalid(field, &new[field].to_string(), "field is immutable")));
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Registry;

    fn code(resource: &str, old: Option<&Value>, new: &Value) -> u16 {
        let registry = Registry::default();
        check(registry.get(&resource.into()).unwrap(), old, new).map_or_else(|status| status.code, |()| 200)
    }

    #[test]
    fn leases_say_how_long_they_hold() {
        for (spec, wanted) in [
            (json!({"leaseDurationSeconds": 15}), 200),
            (json!({}), 200),
            (json!({"leaseDurationSeconds": 0}), 422),
            (json!({"leaseTransitions": -1}), 422),
        ] {
            assert_eq!(code("coordination.k8s.io/v1/leases", None, &json!({"spec": spec})), wanted, "{spec}");
        }
    }

    #[test]
    fn events_lie_where_their_objects_do_and_keep_to_their_limits() {
        let good = json!({
            "metadata": {"namespace": "ns1"}, "regarding": {"namespace": "ns1"}, "note": "n", "type": "Normal",
            "reason": "R", "action": "A", "reportingController": "example.com/c", "reportingInstance": "i",
            "eventTime": "2026-01-01T00:00:00.000000Z",
        });
        let events = "events.k8s.io/v1/events";
        assert_eq!(code(events, None, &good), 200);
        for (field, value) in [
            ("note", json!("n".repeat(1025))),
            ("reason", json!("r".repeat(129))),
            ("action", json!("")),
            ("reportingInstance", json!("i".repeat(129))),
            ("reportingController", json!("c".repeat(64))),
            ("reportingController", json!("a b")),
            ("type", json!("Bad")),
            ("eventTime", Value::Null),
            ("regarding", json!({"namespace": "ns2"})),
            ("regarding", json!({"name": "a-node"})),
            ("series", json!({"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"})),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(code(events, None, &bad), 422, "{field}");
        }
        let mut series = good.clone();
        series["series"] = json!({"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"});
        assert_eq!(code(events, Some(&good), &series), 200);
        series["note"] = json!("other");
        assert_eq!(code(events, Some(&good), &series), 422, "the note does not change");
        let old = json!({"metadata": {"namespace": "default"}, "involvedObject": {"kind": "Node"}, "message": "m"});
        assert_eq!(code("events", None, &old), 200);
    }
}
