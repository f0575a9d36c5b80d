//! PURE. The defaults that the server fills in where clients and printers count on them; not all of the real
//! server's.

use serde_json::{Value, json};

use crate::Resource;

/// Sets what an object of a built-in kind has at least once it was created. `keep_status`: leave a status that
/// came with it.
pub(super) fn fill(resource: &Resource, object: &mut Value, keep_status: bool) {
    if resource.custom {
        return;
    }
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => pod(object, keep_status),
        ("", "namespaces") => {
            set(object, &["spec", "finalizers"], json!(["kubernetes"]));
            set(object, &["status", "phase"], json!("Active"));
            let name = object["metadata"]["name"].clone();
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
        ("", "secrets") => set(object, &["type"], json!("Opaque")),
        ("", "services") => {
            set(object, &["spec", "type"], json!("ClusterIP"));
            set(object, &["spec", "sessionAffinity"], json!("None"));
            set(object, &["status", "loadBalancer"], json!({}));
        }
        ("apps", "deployments") => {
            set(object, &["spec", "replicas"], json!(1));
            let rolling =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
            set(object, &["spec", "strategy"], rolling);
            set(object, &["spec", "revisionHistoryLimit"], json!(10));
            set(object, &["spec", "progressDeadlineSeconds"], json!(600));
        }
        ("apps", "replicasets" | "statefulsets") => {
            set(object, &["spec", "replicas"], json!(1));
            set(object, &["status", "replicas"], json!(0));
        }
        ("batch", "jobs") => {
            for field in ["parallelism", "completions"] {
                set(object, &["spec", field], json!(1));
            }
            set(object, &["spec", "backoffLimit"], json!(6));
        }
        _ => {}
    }
}

fn pod(object: &mut Value, keep_status: bool) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
    ] {
        set(object, &["spec", field], value);
    }
    for container in object["spec"].get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
        set(container, &["resources"], json!({}));
        set(container, &["terminationMessagePath"], json!("/dev/termination-log"));
        set(container, &["terminationMessagePolicy"], json!("File"));
        let latest =
            container["image"].as_str().is_some_and(|image| !image.contains(':') || image.ends_with(":latest"));
        set(container, &["imagePullPolicy"], json!(if latest { "Always" } else { "IfNotPresent" }));
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            set(port, &["protocol"], json!("TCP"));
        }
    }
    if !keep_status {
        object["status"] = json!({});
    }
    set(object, &["status", "phase"], json!("Pending"));
    set(object, &["status", "qosClass"], json!("BestEffort"));
}

/// Sets the value at the path where there is none; leaves the object alone where something on the way is no object.
fn set(object: &mut Value, path: &[&str], value: Value) {
    let Value::Object(members) = object else { return };
    match path {
        [] => {}
        [last] => {
            members.entry(*last).or_insert(value);
        }
        [first, rest @ ..] => set(members.entry(*first).or_insert_with(|| json!({})), rest, value),
    }
}
