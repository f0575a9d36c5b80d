//! Tables: what an object looks like, and what its row shows.

use serde_json::json;

use super::*;
use crate::resource::Registry;

const NOW: &str = "2026-03-01T12:00:00Z";
/// Five minutes before [`NOW`].
const CREATED: &str = "2026-03-01T11:55:00Z";

fn resource(name: &str) -> Resource {
    let registry = Registry::default();
    registry.get(&name.into()).map(|resource| Resource::clone(resource)).unwrap_or_else(|| panic!("{name}"))
}

/// The cells of `object` by the titles of their columns, name and age left out: those are checked here.
fn cells(resource: &Resource, mut object: Value) -> Vec<(String, Value)> {
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = CREATED.into();
    let printer = Printer::new(resource);
    let titles = printer.definitions().into_iter().map(|column| column["name"].as_str().unwrap().to_owned());
    let row = printer.row(object, IncludeObject::None, NOW.parse().unwrap());
    let cells = row["cells"].as_array().unwrap().clone();
    let (known, others): (Vec<_>, Vec<_>) =
        titles.zip(cells).partition(|(title, _)| ["Name", "Age"].contains(&title.as_str()));
    for (title, cell) in known {
        assert_eq!(cell, if title == "Name" { "x" } else { "5m" });
    }
    others
}

/// The first cells of `object`, name and age left out, as text.
fn shown(name: &str, object: Value) -> String {
    let cells = cells(&resource(name), object);
    cells.into_iter().map(|(_, cell)| plain(&cell)).collect::<Vec<_>>().join(" | ")
}

/// Each row: what it is, the pod without metadata, `deleted`, and ready, status, restarts.
#[test]
fn the_status_of_a_pod_is_what_keeps_it_from_running() {
    let running = |ready: bool| json!({"ready": ready, "state": {"running": {}}, "restartCount": 0});
    let waiting = |reason: &str| json!({"state": {"waiting": {"reason": reason}}, "restartCount": 0});
    let ended = |code: i64, reason: &str| json!({"state": {"terminated": {"exitCode": code, "reason": reason}}});
    let two = json!([{"name": "a"}, {"name": "b"}]);
    let sidecar = json!([{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]);
    let pod = |phase: &str, init: &Value, inits: Value, statuses: Value| {
        json!({"spec": {"containers": two, "initContainers": init},
               "status": {"phase": phase, "initContainerStatuses": inits, "containerStatuses": statuses}})
    };
    let none = json!([]);
    let ready_condition = json!([{"type": "Ready", "status": "True"}]);
    let with = |mut pod: Value, member: &str, value: &Value| {
        pod["status"][member] = value.clone();
        pod
    };
    let gated = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
    let one_of_init = json!([{"name": "i", "state": {"running": {}}}]);
    let signal = json!([{"name": "i", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]);
    let code = json!([{"name": "i", "state": {"terminated": {"exitCode": 3}}}]);
    let done = json!({"name": "i", "state": {"terminated": {"exitCode": 0}}, "restartCount": 2});
    let side = json!({"name": "s", "ready": true, "started": true, "state": {"running": {}}, "restartCount": 1});
    let rows = [
        ("just created", json!({"spec": {"containers": two}, "status": {"phase": "Pending"}}), "0/2 | Pending | 0"),
        ("gated", with(pod("Pending", &none, json!([]), json!([])), "conditions", &gated), "0/2 | SchedulingGated | 0"),
        ("running", pod("Running", &none, json!([]), json!([running(true), running(true)])), "2/2 | Running | 0"),
        ("half ready", pod("Running", &none, json!([]), json!([running(true), running(false)])), "1/2 | Running | 0"),
        (
            "the first container counts most",
            pod("Running", &none, json!([]), json!([waiting("CrashLoopBackOff"), waiting("ImagePullBackOff")])),
            "0/2 | CrashLoopBackOff | 0",
        ),
        (
            "completed",
            pod("Succeeded", &none, json!([]), json!([ended(0, "Completed"), ended(0, "Completed")])),
            "0/2 | Completed | 0",
        ),
        (
            "one failed and one completed",
            pod("Failed", &none, json!([]), json!([ended(0, "Completed"), ended(1, "Error")])),
            "0/2 | Error | 0",
        ),
        (
            "one completed and one runs, not ready",
            pod("Running", &none, json!([]), json!([ended(0, "Completed"), running(true)])),
            "1/2 | NotReady | 0",
        ),
        (
            "one completed and one runs, ready",
            with(
                pod("Running", &none, json!([]), json!([ended(0, "Completed"), running(true)])),
                "conditions",
                &ready_condition,
            ),
            "1/2 | Running | 0",
        ),
        (
            "a reason of the pod",
            with(pod("Failed", &none, json!([]), json!([])), "reason", &json!("Evicted")),
            "0/2 | Evicted | 0",
        ),
        ("initializing", pod("Pending", &sidecar, one_of_init, json!([])), "0/3 | Init:0/2 | 0"),
        ("a signal", pod("Pending", &sidecar, signal, json!([])), "0/3 | Init:Signal:9 | 0"),
        ("an exit code", pod("Pending", &sidecar, code, json!([])), "0/3 | Init:ExitCode:3 | 0"),
        (
            "an init container crashes",
            pod("Pending", &sidecar, json!([waiting("CrashLoopBackOff")]), json!([])),
            "0/3 | Init:CrashLoopBackOff | 0",
        ),
        (
            "a sidecar is ready, and the restarts of the init containers are forgotten but its own",
            pod("Running", &sidecar, json!([done, side]), json!([running(true), running(true)])),
            "3/3 | Running | 1",
        ),
    ];
    for (what, object, expected) in rows {
        let row = shown("pods", object.clone());
        assert_eq!(row, format!("{expected} | <none> | <none> | <none> | <none>"), "{what}");

        let mut deleted = object;
        deleted["metadata"]["deletionTimestamp"] = NOW.into();
        let phase = deleted["status"]["phase"].as_str().unwrap();
        let is_over = phase == "Succeeded" || phase == "Failed";
        assert_eq!(shown("pods", deleted.clone()).contains("Terminating"), !is_over, "{what}");
        deleted["status"]["reason"] = "NodeLost".into();
        assert!(shown("pods", deleted).contains("Unknown"), "{what}");
    }
}

#[test]
fn a_pod_tells_its_restarts_where_it_runs_and_its_gates() {
    let last = |time: &str| json!({"terminated": {"finishedAt": time}});
    let object = json!({
        "spec": {"containers": [{}, {}], "nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2",
                   "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
                   "containerStatuses": [
                       {"ready": true, "state": {"running": {}}, "restartCount": 3, "lastState": last("2026-03-01T11:57:00Z")},
                       {"ready": true, "state": {"running": {}}, "restartCount": 1, "lastState": last("2026-03-01T11:50:00Z")}]},
    });
    assert_eq!(shown("pods", object), "2/2 | Running | 4 (3m ago) | 10.0.0.1 | n1 | n2 | 1/2");
}

#[test]
fn a_pod_that_is_done_has_a_condition_for_kubectl() {
    let printer = Printer::new(&resource("pods"));
    for (phase, condition) in [("Succeeded", Some("Succeeded")), ("Failed", Some("Failed")), ("Running", None)] {
        let row = printer.row(json!({"status": {"phase": phase}}), IncludeObject::None, NOW.parse().unwrap());
        assert_eq!(row.pointer("/conditions/0/reason").and_then(Value::as_str), condition);
    }
}

/// Each row: resource, object, and its cells less name and age.
#[test]
fn every_kind_shows_what_its_users_look_for() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}],
                                   "nodeSelector": {"disk": "ssd"}}});
    let selector = json!({"matchLabels": {"b": "2", "a": "1"},
                          "matchExpressions": [{"key": "c", "operator": "In", "values": ["y", "x"]},
                                               {"key": "d", "operator": "DoesNotExist"}]});
    let shown_selector = "a=1,b=2,c in (x,y),!d";
    let rows = [
        ("configmaps", json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}}), "3".to_owned()),
        ("configmaps", json!({}), "0".to_owned()),
        ("secrets", json!({"type": "Opaque", "data": {"a": ""}}), "Opaque | 1".to_owned()),
        ("serviceaccounts", json!({}), String::new()),
        ("namespaces", json!({"status": {"phase": "Active"}}), "Active".to_owned()),
        ("coordination.k8s.io/v1/leases", json!({"spec": {"holderIdentity": "me"}}), "me".to_owned()),
        (
            "services",
            json!({"spec": {"type": "NodePort", "clusterIPs": ["10.0.0.1"], "selector": {"b": "2", "a": "1"},
                            "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}),
            "NodePort | 10.0.0.1 | <none> | 80:30000/TCP,53/UDP | a=1,b=2".to_owned(),
        ),
        (
            "services",
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "None", "externalIPs": ["9.9.9.9"]},
                   "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.1.1.1"}]}}}),
            "LoadBalancer | None | 1.1.1.1,h,9.9.9.9 | <none> | <none>".to_owned(),
        ),
        ("services", json!({"spec": {"type": "LoadBalancer"}}), "LoadBalancer | <none> | <pending> | <none> | <none>".to_owned()),
        (
            "endpoints",
            json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 81}]}]}),
            "1.1.1.1:80,[::1]:80,1.1.1.1:81 + 1 more...".to_owned(),
        ),
        (
            "discovery.k8s.io/v1/endpointslices",
            json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}, {}], "endpoints": [{"addresses": ["1.1.1.1"]}]}),
            "IPv4 | 80,x,* | 1.1.1.1".to_owned(),
        ),
        (
            "nodes",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": ""}},
                   "spec": {"unschedulable": true},
                   "status": {"conditions": [{"type": "Ready", "status": "True"}],
                              "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
                              "nodeInfo": {"kubeletVersion": "v1.37.2", "kernelVersion": "6.1", "architecture": "amd64"}}}),
            "Ready,SchedulingDisabled | infra,worker | v1.37.2 | 10.0.0.1 | <none> | <unknown> | 6.1 (amd64) | <unknown>"
                .to_owned(),
        ),
        (
            "nodes",
            json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
            "NotReady | <none> |  | <none> | <none> | <unknown> | <unknown> | <unknown>".to_owned(),
        ),
        (
            "events",
            json!({"type": "Warning", "reason": "Failed", "message": "it broke\n", "count": 4,
                   "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                   "firstTimestamp": "2026-03-01T10:00:00Z", "lastTimestamp": "2026-03-01T11:59:30Z",
                   "source": {"component": "kubelet", "host": "n1"}}),
            "30s | Warning | Failed | pod/p | spec | kubelet, n1 | it broke | 120m | 4".to_owned(),
        ),
        (
            "events.k8s.io/v1/events",
            json!({"type": "Normal", "reason": "Done", "note": "done", "regarding": {"kind": "Node", "name": "n"},
                   "eventTime": "2026-03-01T11:59:00.000000Z", "reportingController": "c", "reportingInstance": "i",
                   "series": {"count": 7, "lastObservedTime": "2026-03-01T11:59:50.000000Z"}}),
            "10s | Normal | Done | node/n |  | c, i | done | 60s | 7".to_owned(),
        ),
        (
            "persistentvolumeclaims",
            json!({"spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Filesystem"},
                   "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]}}),
            "Bound | v | 1Gi | RWO,RWX | fast | <unset> | Filesystem".to_owned(),
        ),
        (
            "persistentvolumes",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "storageClassName": "fast",
                            "persistentVolumeReclaimPolicy": "Delete", "claimRef": {"namespace": "ns", "name": "c"}},
                   "status": {"phase": "Bound"}}),
            "1Gi | ROX | Delete | Bound | ns/c | fast | <unset> |  | <unset>".to_owned(),
        ),
        (
            "apps/v1/deployments",
            json!({"spec": {"replicas": 3, "template": template, "selector": selector},
                   "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}}),
            format!("2/3 | 3 | 1 | a,b | x:1,y | {shown_selector}"),
        ),
        (
            "apps/v1/replicasets",
            json!({"spec": {"replicas": 3, "template": template}, "status": {"replicas": 2, "readyReplicas": 1}}),
            "3 | 2 | 1 | a,b | x:1,y | <none>".to_owned(),
        ),
        (
            "apps/v1/statefulsets",
            json!({"spec": {"replicas": 3, "template": template}, "status": {"readyReplicas": 1}}),
            "1/3 | a,b | x:1,y".to_owned(),
        ),
        (
            "apps/v1/daemonsets",
            json!({"spec": {"template": template, "selector": selector},
                   "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                              "updatedNumberScheduled": 2, "numberAvailable": 1}}),
            format!("5 | 4 | 3 | 2 | 1 | disk=ssd | a,b | x:1,y | {shown_selector}"),
        ),
        (
            "batch/v1/jobs",
            json!({"spec": {"completions": 2, "template": template},
                   "status": {"succeeded": 2, "startTime": "2026-03-01T11:50:00Z", "completionTime": "2026-03-01T11:51:05Z",
                              "conditions": [{"type": "Complete", "status": "True"}]}}),
            "Complete | 2/2 | 65s | a,b | x:1,y | <none>".to_owned(),
        ),
        (
            "batch/v1/jobs",
            json!({"spec": {"parallelism": 3}, "status": {"startTime": "2026-03-01T11:58:00Z"}}),
            "Running | 0/1 of 3 | 2m |  |  | <none>".to_owned(),
        ),
        (
            "batch/v1/cronjobs",
            json!({"spec": {"schedule": "* * * * *", "suspend": false, "jobTemplate": {"spec": {"template": template}}},
                   "status": {"active": [{}], "lastScheduleTime": "2026-03-01T11:59:00Z"}}),
            "* * * * * | <none> | False | 1 | 60s | a,b | x:1,y | <none>".to_owned(),
        ),
    ];
    for (name, object, expected) in rows {
        assert_eq!(shown(name, object), expected, "{name}");
    }
}

#[test]
fn no_kind_panics_on_an_object_that_lacks_everything_or_is_of_other_types() {
    let odd = json!({"metadata": 1, "spec": [], "status": {"conditions": {}, "phase": 7}, "data": "x", "subsets": [1]});
    for resource in Registry::default().iter() {
        let printer = Printer::new(resource);
        for object in [json!({}), odd.clone()] {
            let row = printer.row(object, IncludeObject::Metadata, NOW.parse().unwrap());
            assert_eq!(row["cells"].as_array().map(Vec::len), Some(printer.definitions().len()), "{}", resource.kind);
        }
    }
}

#[test]
fn a_custom_resource_shows_its_own_columns_or_name_and_age() {
    let object = json!({"spec": {"size": 3, "ratio": 0.5, "on": true, "text": "t", "map": {"a": 1}, "since": "2026-03-01T11:00:00Z"}});
    let foo = Resource::custom("example.com", "v1", "Foo", "foos");
    assert_eq!(cells(&foo, object.clone()), vec![]);
    let mut wide = PrinterColumn::new("Wide", "string", ".spec.text");
    wide.priority = 1;
    let foo = foo.with_columns([
        PrinterColumn::new("Size", "integer", ".spec.size"),
        PrinterColumn::new("Ratio", "number", ".spec.ratio"),
        PrinterColumn::new("On", "boolean", ".spec.on"),
        PrinterColumn::new("Map", "string", ".spec.map"),
        PrinterColumn::new("Since", "date", ".spec.since"),
        PrinterColumn::new("Missing", "string", ".spec.none"),
        PrinterColumn::new("Mistyped", "integer", ".spec.text"),
        PrinterColumn::new("Malformed", "string", "spec"),
        wide,
    ]);
    let expected = [
        json!(3),
        json!(0.5),
        json!(true),
        json!(r#"{"a":1}"#),
        json!("60m"),
        json!(null),
        json!(null),
        json!(null),
        json!("t"),
    ];
    assert_eq!(cells(&foo, object).into_iter().map(|(_, cell)| cell).collect::<Vec<_>>(), expected);
    let definitions = Printer::new(&foo).definitions();
    assert_eq!(
        definitions[0],
        json!({"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0})
    );
    assert_eq!(definitions[9]["priority"], 1);
}

#[test]
fn a_row_includes_as_much_of_the_object_as_was_asked_for() {
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {}});
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}});
    let printer = Printer::new(&resource("configmaps"));
    for (include, expected) in [("", &partial), ("Metadata", &partial), ("Object", &object), ("None", &Value::Null)] {
        let include = IncludeObject::parse(include).unwrap();
        let row = printer.row(object.clone(), include, NOW.parse().unwrap());
        assert_eq!(&row["object"], expected);
    }
    let error = IncludeObject::parse("All").unwrap_err();
    assert_eq!(error, "unrecognized includeObject value: \"All\"; use None, Metadata or Object");
}

#[test]
fn a_table_has_columns_unless_an_earlier_one_of_the_watch_had_them() {
    let printer = Printer::new(&resource("configmaps"));
    let table = printer.table(json!({"resourceVersion": "7"}), true);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["metadata"]["resourceVersion"], "7");
    assert_eq!(table["columnDefinitions"].as_array().map(Vec::len), Some(3));
    assert_eq!(printer.table(json!({}), false)["columnDefinitions"], Value::Null);
}
