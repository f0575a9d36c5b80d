//! Which kind has which columns, and those of the small kinds. They are headed as the API server heads them.

use super::column::{AGE, Column, NAME, text};
use super::{event, network, node, pod, volume, workload};

/// The columns of a kind; `None`: it has none of its own.
pub(super) fn columns(group: &str, kind: &str) -> Option<&'static [Column]> {
    Some(match (group, kind) {
        ("", "Pod") => pod::COLUMNS,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Secret") => SECRET,
        ("", "Service") => network::SERVICE,
        ("", "Endpoints") => network::ENDPOINTS,
        ("", "Node") => node::COLUMNS,
        ("", "Namespace") => NAMESPACE,
        ("" | "events.k8s.io", "Event") => event::COLUMNS,
        ("", "PersistentVolume") => volume::PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => volume::PERSISTENT_VOLUME_CLAIM,
        ("apps", "Deployment") => workload::DEPLOYMENT,
        ("apps", "ReplicaSet") => workload::REPLICA_SET,
        ("apps", "StatefulSet") => workload::STATEFUL_SET,
        ("apps", "DaemonSet") => workload::DAEMON_SET,
        ("batch", "Job") => workload::JOB,
        ("batch", "CronJob") => workload::CRON_JOB,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        _ => return None,
    })
}

const CONFIG_MAP: &[Column] = &[NAME, text("Data", |row| row.members(&["/data", "/binaryData"]).into()), AGE];

const SECRET: &[Column] = &[
    NAME,
    text("Type", |row| row.text_or("/type", "Opaque").into()),
    text("Data", |row| row.members(&["/data"]).into()),
    AGE,
];

const NAMESPACE: &[Column] = &[NAME, text("Status", |row| row.text("/status/phase").into()), AGE];

const LEASE: &[Column] = &[NAME, text("Holder", |row| row.text("/spec/holderIdentity").into()), AGE];
