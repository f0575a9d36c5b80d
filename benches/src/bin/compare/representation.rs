//! The forms in which objects are kept. Each is a type, and a line of the table.

use std::sync::Arc;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kubewire_indexer::{Meta, ObjectId};
use kubewire_listwatch::{Decode, Json, ListWatch, Packed, Represented, Zipped};
use serde::Deserialize;

use crate::flags::Flags;
use crate::{list_decode, memory, sync};

/// One form, with every case that depends on it.
pub(crate) struct Representation {
    pub(crate) name: &'static str,
    /// What the body is in.
    pub(crate) codec: &'static str,
    pub(crate) list_decode: list_decode::Case,
    pub(crate) memory: memory::Case,
    pub(crate) sync: sync::Case,
}

/// The peers have the first alone.
pub(crate) const ALL: &[Representation] = &[
    json::<Arc<Pod>>("typed"),
    json::<Arc<PodBrief>>("small"),
    json::<Packed<Pod>>("packed"),
    json::<Zipped<Pod>>("zipped"),
];

/// A form that is read from JSON.
const fn json<O: PodForm>(name: &'static str) -> Representation {
    Representation {
        name,
        codec: "json",
        list_decode: list_decode::case::<O>,
        memory: memory::case::<O>,
        sync: sync::case::<O>,
    }
}

/// The forms that the flag `as` names; `all` names each.
pub(crate) fn chosen(flags: &Flags) -> anyhow::Result<Vec<&'static Representation>> {
    match flags.text("as") {
        "all" => Ok(ALL.iter().collect()),
        name => {
            let known = || format!("-as {name}: there are {:?}", ALL.iter().map(|one| one.name).collect::<Vec<_>>());
            Ok(vec![ALL.iter().find(|one| one.name == name).with_context(known)?])
        }
    }
}

/// A pod in some form.
pub(crate) trait PodForm: Represented<Resource = Pod> + Decode<Json> + 'static {
    /// Waits for what goes on behind the scenes; told is one of the pods.
    fn settle(&self) {}
}

impl<T: Send + Sync + 'static> PodForm for Arc<T> where Self: Represented<Resource = Pod> + Decode<Json> {}

impl PodForm for Packed<Pod> {}

impl PodForm for Zipped<Pod> {
    fn settle(&self) {
        self.settle();
    }
}

/// What lists and watches all pods; `transform` leaves `managedFields` out.
pub(crate) fn list_watch<O: PodForm>(client: Client, transform: bool) -> ListWatch<O> {
    let pods = ListWatch::all(client);
    if transform { pods.drop_managed_fields() } else { pods }
}

/// What a controller reads that moves pods from node to node: six fields.
#[derive(Debug, Deserialize, Meta)]
#[kubewire(resource = Pod)]
pub(crate) struct PodBrief {
    metadata: ObjectId,
    #[serde(default)]
    #[expect(dead_code, reason = "kept, as by who would read it")]
    spec: Spec,
    #[serde(default)]
    #[expect(dead_code, reason = "kept, as by who would read it")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Box<str>,
}
