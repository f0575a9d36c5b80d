//! PURE. The defaults that the server fills in where clients and printers count on them; not all of the real
//! server's.

use serde_json::{Value, json};

use crate::Resource;

/// Sets what an object of a built-in kind has at least once it was created. `keep_status`: leave a status that
/// came with it.
pub(super) fn fill(resource: &Resource, object: &mut Value, keep_status: bool) {
    fill_spec(resource, object);
    if resource.custom {
        return;
    }
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => pod_status(object, keep_status),
        ("", "namespaces") => {
            set(object, &["spec", "finalizers"], json!(["kubernetes"]));
            set(object, &["status", "phase"], json!("Active"));
            let name = object["metadata"]["name"].clone();
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
        ("", "services") => set(object, &["status", "loadBalancer"], json!({})),
        ("apps", "deployments") => set(object, &["status"], json!({})),
        ("apps", "replicasets" | "statefulsets") => set(object, &["status", "replicas"], json!(0)),
        _ => {}
    }
}

/// Sets what is wanted of an object at least, as the real server does whenever it reads one.
pub(super) fn fill_spec(resource: &Resource, object: &mut Value) {
    if resource.custom {
        return resource.schema.iter().for_each(|schema| by_schema(schema, object));
    }
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => {
            set(object, &["spec"], json!({}));
            object.get_mut("spec").map(pod_spec);
        }
        ("", "secrets") => set(object, &["type"], json!("Opaque")),
        ("", "services") => {
            set(object, &["spec", "type"], json!("ClusterIP"));
            set(object, &["spec", "sessionAffinity"], json!("None"));
            for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
                set(port, &["protocol"], json!("TCP"));
                let number = port["port"].clone();
                set(port, &["targetPort"], number);
            }
        }
        ("apps", "deployments") => {
            set(object, &["spec", "replicas"], json!(1));
            let rolling =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
            set(object, &["spec", "strategy"], rolling);
            set(object, &["spec", "revisionHistoryLimit"], json!(10));
            set(object, &["spec", "progressDeadlineSeconds"], json!(600));
        }
        ("apps", "replicasets" | "statefulsets") => set(object, &["spec", "replicas"], json!(1)),
        ("batch", "jobs") => {
            for field in ["parallelism", "completions"] {
                set(object, &["spec", field], json!(1));
            }
            set(object, &["spec", "backoffLimit"], json!(6));
        }
        _ => {}
    }
    if ["apps", "batch"].contains(&&*resource.group)
        && let Some(spec @ Value::Object(_)) = object.pointer_mut("/spec/template/spec")
    {
        pod_spec(spec);
    }
}

/// From the outside in: a default may have defaults within it.
fn by_schema(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let (Some(default), None) = (schema.get("default"), members.get(name)) {
                    members.insert(name.clone(), default.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    by_schema(schema, member);
                }
            }
            let of_others = &schema["additionalProperties"];
            let is_other = |name: &str| of_others.is_object() && schema["properties"].get(name).is_none();
            members.iter_mut().filter(|(name, _)| is_other(name)).for_each(|(_, value)| by_schema(of_others, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| by_schema(&schema["items"], item)),
        _ => {}
    }
}

fn pod_spec(spec: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        set(spec, &[field], value);
    }
    for container in spec.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
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
}

fn pod_status(object: &mut Value, keep_status: bool) {
    set(object, &["spec", "enableServiceLinks"], json!(true));
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
