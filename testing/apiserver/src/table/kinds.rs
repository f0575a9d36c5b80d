//! The columns of the built-in kinds: a table for each, headed as the API server heads it.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::column::{AGE, Column, NAME, Row, boolean, integer, list_at, text, text_at};
use super::{duration, pod};

/// The columns of a kind; `None`: it has none of its own.
pub(super) fn columns(group: &str, kind: &str) -> Option<&'static [Column]> {
    Some(match (group, kind) {
        ("", "Pod") => pod::COLUMNS,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Secret") => SECRET,
        ("", "Service") => SERVICE,
        ("", "Endpoints") => ENDPOINTS,
        ("", "Node") => NODE,
        ("", "Namespace") => NAMESPACE,
        ("" | "events.k8s.io", "Event") => EVENT,
        ("", "PersistentVolume") => PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => PERSISTENT_VOLUME_CLAIM,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => REPLICA_SET,
        ("apps", "StatefulSet") => STATEFUL_SET,
        ("apps", "DaemonSet") => DAEMON_SET,
        ("batch", "Job") => JOB,
        ("batch", "CronJob") => CRON_JOB,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("discovery.k8s.io", "EndpointSlice") => ENDPOINT_SLICE,
        _ => return None,
    })
}

const TEMPLATE: &str = "/spec/template";

const CONTAINERS: Column = text("Containers", |row| pod::containers(row, TEMPLATE, "/name")).wide();
const IMAGES: Column = text("Images", |row| pod::containers(row, TEMPLATE, "/image")).wide();
const SELECTOR: Column = text("Selector", |row| or_none(selector(row, "/spec/selector")).into()).wide();

const CONFIG_MAP: &[Column] = &[NAME, text("Data", |row| row.members(&["/data", "/binaryData"]).into()), AGE];

const SECRET: &[Column] = &[
    NAME,
    text("Type", |row| row.text_or("/type", "Opaque").into()),
    text("Data", |row| row.members(&["/data"]).into()),
    AGE,
];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", |row| row.text_or("/spec/type", "ClusterIP").into()),
    text("Cluster-IP", |row| row.text_or("/spec/clusterIPs/0", row.text_or("/spec/clusterIP", "<none>")).into()),
    text("External-IP", |row| external_ip(row).into()),
    text("Port(s)", |row| or_none(service_ports(row)).into()),
    AGE,
    text("Selector", |row| or_none(pairs(row.object.pointer("/spec/selector"))).into()).wide(),
];

const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", |row| or_none(endpoints(row)).into()), AGE];

const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", |row| row.text("/addressType").into()),
    text("Ports", |row| {
        let ports = row.list("/ports").iter();
        let number = |port: &Value| port["port"].as_i64().map(|number| number.to_string());
        let name = |port: &Value| port["name"].as_str().map_or("*".to_owned(), str::to_owned);
        let ports: Vec<_> = ports.map(|port| number(port).unwrap_or_else(|| name(port))).collect();
        or(first_three(&ports), "<unset>").into()
    }),
    text("Endpoints", |row| {
        let endpoints = row.list("/endpoints").iter().flat_map(|endpoint| list_at(endpoint, "/addresses"));
        let addresses: Vec<_> = endpoints.filter_map(Value::as_str).map(str::to_owned).collect();
        or(first_three(&addresses), "<unset>").into()
    }),
    AGE,
];

const NODE: &[Column] = &[
    NAME,
    text("Status", |row| node_status(row).into()),
    text("Roles", |row| or_none(node_roles(row)).into()),
    AGE,
    text("Version", |row| row.text("/status/nodeInfo/kubeletVersion").into()),
    text("Internal-IP", |row| node_address(row, "InternalIP").into()).wide(),
    text("External-IP", |row| node_address(row, "ExternalIP").into()).wide(),
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

const NAMESPACE: &[Column] = &[NAME, text("Status", |row| row.text("/status/phase").into()), AGE];

/// Of both groups: what one calls `involvedObject`, `message` and `source`, the other calls `regarding`, `note` and
/// `deprecatedSource`.
const EVENT: &[Column] = &[
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
    text("Source", |row| event_source(row).into()).wide(),
    text("Message", |row| either(row, ["/message", "/note"]).trim().into()),
    text("First Seen", |row| first_seen(row).into()).wide(),
    text("Count", |row| {
        let counts = ["/series/count", "/count", "/deprecatedCount"];
        counts.iter().map(|pointer| row.integer(pointer)).find(|count| *count != 0).unwrap_or(1).into()
    })
    .wide(),
    NAME.wide(),
];

const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity", |row| row.text("/spec/capacity/storage").into()),
    text("Access Modes", |row| access_modes(row.list("/spec/accessModes")).into()),
    text("Reclaim Policy", |row| row.text("/spec/persistentVolumeReclaimPolicy").into()),
    text("Status", phase),
    text("Claim", |row| match row.object.pointer("/spec/claimRef") {
        Some(claim) => format!("{}/{}", text_at(claim, "/namespace"), text_at(claim, "/name")).into(),
        None => "".into(),
    }),
    text("StorageClass", |row| row.text("/spec/storageClassName").into()),
    text("VolumeAttributesClass", |row| row.text_or("/spec/volumeAttributesClassName", "<unset>").into()),
    text("Reason", |row| row.text("/status/reason").into()),
    AGE,
    text("VolumeMode", |row| row.text_or("/spec/volumeMode", "<unset>").into()).wide(),
];

const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", phase),
    text("Volume", |row| row.text("/spec/volumeName").into()),
    text("Capacity", |row| if_bound(row, row.text("/status/capacity/storage")).into()),
    text("Access Modes", |row| if_bound(row, &access_modes(row.list("/status/accessModes"))).into()),
    text("StorageClass", |row| row.text("/spec/storageClassName").into()),
    text("VolumeAttributesClass", |row| row.text_or("/spec/volumeAttributesClassName", "<unset>").into()),
    AGE,
    text("VolumeMode", |row| row.text_or("/spec/volumeMode", "<unset>").into()).wide(),
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", |row| ready(row, "/spec/replicas")),
    text("Up-to-date", |row| row.integer("/status/updatedReplicas").into()),
    text("Available", |row| row.integer("/status/availableReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    text("Selector", |row| selector(row, "/spec/selector").into()).wide(),
];

const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired", |row| row.integer("/spec/replicas").into()),
    integer("Current", |row| row.integer("/status/replicas").into()),
    integer("Ready", |row| row.integer("/status/readyReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SET: &[Column] = &[NAME, text("Ready", |row| ready(row, "/spec/replicas")), AGE, CONTAINERS, IMAGES];

const DAEMON_SET: &[Column] = &[
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

const JOB: &[Column] = &[
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

const JOB_TEMPLATE: &str = "/spec/jobTemplate/spec/template";

const CRON_JOB: &[Column] = &[
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
    text("Containers", |row| pod::containers(row, JOB_TEMPLATE, "/name")).wide(),
    text("Images", |row| pod::containers(row, JOB_TEMPLATE, "/image")).wide(),
    text("Selector", |row| or_none(selector(row, "/spec/jobTemplate/spec/selector")).into()).wide(),
];

const LEASE: &[Column] = &[NAME, text("Holder", |row| row.text("/spec/holderIdentity").into()), AGE];

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text }
}

fn or_none(text: String) -> String {
    or(text, "<none>")
}

/// Of two fields, the one that has a text.
fn either<'v>(row: &Row<'v>, pointers: [&str; 2]) -> &'v str {
    pointers.into_iter().map(|pointer| row.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn phase(row: &Row<'_>) -> Value {
    if row.is_terminating() { "Terminating".into() } else { row.text("/status/phase").into() }
}

fn if_bound(row: &Row<'_>, text: &str) -> String {
    if row.text("/spec/volumeName").is_empty() { String::new() } else { text.to_owned() }
}

fn ready(row: &Row<'_>, desired: &str) -> Value {
    format!("{}/{}", row.integer("/status/readyReplicas"), row.integer(desired)).into()
}

/// `a=1,b=2`, by name.
fn pairs(object: Option<&Value>) -> String {
    let mut pairs: Vec<_> = object
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    pairs.join(",")
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

fn access_modes(modes: &[Value]) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    known
        .iter()
        .filter(|(mode, _)| modes.iter().any(|m| m == mode))
        .map(|(_, short)| *short)
        .collect::<Vec<_>>()
        .join(",")
}

fn external_ip(row: &Row<'_>) -> String {
    let external = row.list("/spec/externalIPs").iter().filter_map(Value::as_str);
    match row.text_or("/spec/type", "ClusterIP") {
        "ClusterIP" | "NodePort" => or_none(external.collect::<Vec<_>>().join(",")),
        "LoadBalancer" => {
            let ingress = row.list("/status/loadBalancer/ingress").iter();
            let mut addresses: Vec<_> = ingress
                .filter_map(|ingress| {
                    ["/ip", "/hostname"].into_iter().map(|p| text_at(ingress, p)).find(|address| !address.is_empty())
                })
                .collect();
            addresses.sort_unstable();
            addresses.dedup();
            addresses.extend(external);
            or(addresses.join(","), "<pending>")
        }
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(row: &Row<'_>) -> String {
    let port = |port: &Value| {
        let number = port["port"].as_i64().unwrap_or_default();
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node_port @ 1..) => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    row.list("/spec/ports").iter().map(port).collect::<Vec<_>>().join(",")
}

fn endpoints(row: &Row<'_>) -> String {
    let mut all = Vec::new();
    for subset in row.list("/subsets") {
        let addresses = || list_at(subset, "/addresses").iter().map(|address| text_at(address, "/ip"));
        let ports = list_at(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports.iter().map(|port| port["port"].as_i64().unwrap_or_default()) {
            let join = |ip: &str| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
            all.extend(addresses().map(join));
        }
    }
    first_three(&all)
}

fn first_three(all: &[String]) -> String {
    match all.split_at_checked(3) {
        Some((first, rest)) if !rest.is_empty() => format!("{} + {} more...", first.join(","), rest.len()),
        _ => all.join(","),
    }
}

fn node_status(row: &Row<'_>) -> String {
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

fn node_roles(row: &Row<'_>) -> String {
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

fn node_address<'v>(row: &Row<'v>, type_: &str) -> &'v str {
    let mut addresses = row.list("/status/addresses").iter();
    addresses.find(|address| text_at(address, "/type") == type_).map_or("<none>", |a| text_at(a, "/address"))
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

fn event_source(row: &Row<'_>) -> String {
    let first = |pointers: [&str; 4]| {
        pointers.into_iter().map(|pointer| row.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component =
        first(["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"]);
    let instance = first(["/source/host", "/deprecatedSource/host", "/reportingInstance", ""]);
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
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
