//! PURE. Realistic pods of about 9 kB, cheap to make in great numbers, the same in each run.

use std::fmt::Write;
use std::sync::OnceLock;

use jiff::Timestamp;
use kubewire_indexer::ObjectKey;
use serde_json::{Value, json};

use crate::rng::{NAME_CHARACTERS, Rng};
use crate::stored::{self, Draft};
use crate::{Registry, Resource, fields};

/// A pod with `<NAMES>` of what differs from pod to pod.
const TEMPLATE: &str = include_str!("pods/pod.json");

/// 2026-03-01T08:00:00Z: when the first pod was created; each next one a second later.
const EPOCH_SECONDS: i64 = 1_772_352_000;

pub(crate) const NODES: usize = 100;
const PODS_A_NAMESPACE: usize = 100;
const APPS: [&str; 10] =
    ["accounts", "basket", "catalogue", "delivery", "forecast", "invoices", "ledger", "mailer", "search", "tickets"];
const TIERS: [&str; 4] = ["web", "api", "worker", "cache"];

/// The namespace of a pod.
pub(crate) fn namespace(index: usize) -> String {
    format!("namespace-{}", index / PODS_A_NAMESPACE)
}

/// The template, encoded as the store does it, cut at what differs: text and name in turn, beginning with text.
fn template() -> &'static [&'static str] {
    static CUT: OnceLock<Vec<&'static str>> = OnceLock::new();
    CUT.get_or_init(|| {
        // The template is a file of this crate; a test reads it.
        let pod: Value = serde_json::from_str(TEMPLATE).unwrap_or_default();
        let encoded = String::from_utf8(stored::encode_rest(&pod)).unwrap_or_default();
        String::leak(encoded).split(['<', '>']).collect()
    })
}

/// A pod that waits for its version.
pub(crate) fn draft(pods: &Resource, index: usize) -> Draft {
    let values = values(index);
    let value = |name: &str| values.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value);
    let mut text = String::with_capacity(10_000);
    for (place, part) in template().iter().enumerate() {
        text.push_str(if place % 2 == 0 { part } else { value(part) });
    }
    let (app, version) = (value("APP"), value("VERSION"));
    let [instance, release, team, cell] = [
        format!("{app}-prod"),
        format!("r{}", value("RELEASE")),
        format!("team-{}", value("TEAM")),
        format!("cell-{}", value("CELL")),
    ];
    let labels = [
        ("app", app),
        ("component", value("TIER")),
        ("instance", &instance),
        ("release", &release),
        ("version", version),
        ("environment", "production"),
        ("team", &team),
        ("cell", &cell),
        ("managed-by", "helm"),
        ("pod-template-hash", value("HASH")),
    ];
    // No parser: only these fields may be named by selectors.
    let spec = json!({
        "spec": {
            "nodeName": value("NODE"), "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "serviceAccountName": app,
        },
        "status": {"phase": "Running", "podIP": value("IP")},
    });
    let key = ObjectKey::new(value("NAMESPACE"), value("NAME"));
    Draft::from_parts(key, value("UID"), labels.into_iter().collect(), fields::of(pods, &spec), text.into_bytes())
}

/// What differs from pod to pod. Ten pods in a row belong to one replica set.
fn values(index: usize) -> Vec<(&'static str, String)> {
    let set = index / 10;
    let (mut own, mut of_set) = (Rng::new(index as u64), Rng::new(set as u64 ^ 0x5e7));
    let app = APPS[of_set.below(APPS.len() as u64) as usize];
    let tier = TIERS[of_set.below(TIERS.len() as u64) as usize];
    let hash = of_set.suffix(9);
    let owner = format!("{app}-{tier}-{hash}");
    let node = index * 37 % NODES;
    let time = |seconds: i64| {
        let at = Timestamp::from_second(EPOCH_SECONDS + index as i64 + seconds).unwrap_or_default();
        at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    let version = format!("v{}.{}.{}", 1 + of_set.below(3), of_set.below(20), of_set.below(10));
    vec![
        ("NAMESPACE", namespace(index)),
        ("NAME", format!("{owner}-{}", numbered(index, 5))),
        ("OWNER", owner),
        ("APP", app.to_owned()),
        ("TIER", tier.to_owned()),
        ("HASH", hash),
        ("RELEASE", (set % 20).to_string()),
        ("IMAGE", format!("registry.example.com/{app}:{version}")),
        ("VERSION", version),
        ("TEAM", format!("{:02}", set % 40)),
        ("CELL", (node % 4).to_string()),
        ("TIMEOUT", (5 + set % 10).to_string()),
        ("CHECKSUM", digest(&mut of_set)),
        ("OWNER-UID", of_set.uid()),
        ("UID", own.uid()),
        ("TOKEN", format!("kube-api-access-{}", own.suffix(5))),
        ("DIGEST-1", digest(&mut own)),
        ("DIGEST-2", digest(&mut own)),
        ("DIGEST-3", digest(&mut own)),
        ("DIGEST-4", digest(&mut own)),
        ("NODE", node_name(node)),
        ("HOST-IP", host_ip(node)),
        ("IP", format!("10.{}.{}.{}", 64 + (index >> 16), index >> 8 & 255, index & 255)),
        ("CREATED", time(0)),
        ("STARTED", time(3)),
        ("READY", time(14)),
    ]
}

fn digest(rng: &mut Rng) -> String {
    (0..4).fold(String::with_capacity(64), |mut text, _| {
        // Writing to a string does not fail.
        let _ = write!(text, "{:016x}", rng.next());
        text
    })
}

/// A number in the characters of generated names, so that no two are the same.
fn numbered(mut number: usize, len: usize) -> String {
    let mut text = vec![NAME_CHARACTERS[0]; len];
    for place in text.iter_mut().rev() {
        *place = NAME_CHARACTERS[number % NAME_CHARACTERS.len()];
        number /= NAME_CHARACTERS.len();
    }
    text.into_iter().map(char::from).collect()
}

fn node_name(node: usize) -> String {
    format!("node-{node:03}")
}

fn host_ip(node: usize) -> String {
    format!("10.0.{}.{}", node / 50, 10 + node % 50)
}

/// A node on which the pods run.
pub(crate) fn node(node: usize) -> Value {
    let name = node_name(node);
    let capacity = json!({"cpu": "16", "memory": "65536Mi", "pods": "110"});
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": format!("zone-{}", node % 3),
            },
        },
        "spec": {"podCIDR": format!("10.128.{node}.0/24")},
        "status": {
            "capacity": capacity, "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": host_ip(node)}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "kubeletVersion": "v1.37.0", "osImage": "Linux", "kernelVersion": "6.12", "containerRuntimeVersion": "containerd://2.1",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

/// A pod as JSON, for tests and for files: number `index` of the pods that
/// [`Builder::pods`](crate::Builder::pods) begins with. About 9 kB, without a version.
pub fn pod(index: usize) -> Value {
    let registry = Registry::default();
    let Some(pods) = registry.get(&"pods".into()) else { return Value::Null };
    let mut pod = draft(pods, index).commit(pods, crate::watch_event::EventKind::Added, 1).to_value();
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.shift_remove("resourceVersion");
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch_event::EventKind;

    #[test]
    fn a_generated_pod_is_stored_as_the_same_pod_sent_by_a_client_would_be() {
        let registry = Registry::default();
        let pods = registry.get(&"pods".into()).unwrap();
        for index in [0, 1, 12_345] {
            let generated = draft(pods, index).commit(pods, EventKind::Added, 7);
            let value = generated.to_value();
            assert!(value["metadata"]["managedFields"][1]["fieldsV1"]["f:status"].is_object());
            let sent = Draft::new(pods, &value).commit(pods, EventKind::Added, 7);
            assert_eq!(sent.object(), generated.object());
            assert_eq!(
                (&sent.key, &sent.uid, &sent.labels, &sent.fields),
                (&generated.key, &generated.uid, &generated.labels, &generated.fields)
            );
            let len = generated.object().len();
            let size = generated.size();
            assert!(size < len + 1000, "{size} bytes held for {len}: 100,000 pods must stay under 1.5 GB");
            assert!((8_500..10_000).contains(&len), "{len} bytes");
            assert!(!value.to_string().contains(['<', '>']), "a place of the template was not filled");
            let unknown =
                crate::openapi::decode(crate::openapi::Type::of_kind("", "v1", "Pod").unwrap(), &mut value.clone());
            assert_eq!(unknown, Ok(Vec::new()));
        }
    }

    #[test]
    fn no_two_pods_have_the_same_name_or_uid() {
        let keys: std::collections::HashSet<String> = (0..3000).map(|index| values(index)[1].1.clone()).collect();
        assert_eq!(keys.len(), 3000);
        let uids: std::collections::HashSet<String> = (0..3000).map(|index| values(index)[14].1.clone()).collect();
        assert_eq!(uids.len(), 3000);
    }
}
