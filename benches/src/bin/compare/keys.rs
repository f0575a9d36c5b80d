//! Keys and small pods, as the peers have them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kubewire_indexer::ObjectKey;

/// Distinct keys as a controller has them.
pub(crate) fn make_keys(count: usize) -> Vec<ObjectKey> {
    (0..count).map(|n| ObjectKey::new(&namespace(n), &format!("pod-name-{n}"))).collect()
}

/// Which of them it is.
pub(crate) fn number(key: &ObjectKey) -> usize {
    let number = key.name().rsplit('-').next().and_then(|number| number.parse().ok());
    number.expect("each key was made here")
}

/// A hundred objects a namespace.
pub(crate) fn namespace(number: usize) -> String {
    format!("namespace-{}", number / 100)
}

pub(crate) fn node(number: usize) -> String {
    format!("node-{:03}", number * 37 % 100)
}

/// A pod with what keys and indices need: the bookkeeping is measured, not the object.
pub(crate) fn light_pod(number: usize, version: usize, node: String) -> Arc<Pod> {
    let mut pod = Pod { spec: Some(PodSpec { node_name: Some(node), ..PodSpec::default() }), ..Pod::default() };
    pod.metadata.namespace = Some(namespace(number));
    pod.metadata.name = Some(format!("pod-name-{number}"));
    pod.metadata.resource_version = Some(version.to_string());
    Arc::new(pod)
}
