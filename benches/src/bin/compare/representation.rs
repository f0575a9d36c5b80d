//! The forms in which objects are kept. Each is a type, and a line of the table.

use std::sync::Arc;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::core::Resource;
use kubewire_indexer::{Id, Meta, Metadata, ObjectId};
use kubewire_listwatch::{Codec, Json, ListWatch, Packed, Pb, Protobuf, Represented, Zipped};
use serde::Deserialize;

use crate::flags::Flags;
use crate::{list_decode, memory, sync};

/// One form, with every case that depends on it.
pub(crate) struct Representation {
    pub(crate) name: &'static str,
    /// What it is read from.
    pub(crate) wire: Wire,
    pub(crate) list_decode: list_decode::Case,
    pub(crate) memory: memory::Case,
    pub(crate) sync: sync::Case,
}

/// The peers have the first of each codec alone.
pub(crate) const ALL: &[Representation] = &[
    form::<Arc<Pod>, Json>("typed"),
    form::<Arc<PodBrief>, Json>("small"),
    form::<Packed<Pod>, Json>("packed"),
    form::<Zipped<Pod>, Json>("zipped"),
    form::<Arc<Pb<k8s_pb::api::core::v1::Pod>>, Protobuf>("typed"),
    form::<Arc<PodTags>, Protobuf>("small"),
    form::<Packed<Pod>, Protobuf>("packed"),
];

const fn form<O: PodForm, C: Speaks<O>>(name: &'static str) -> Representation {
    Representation {
        name,
        wire: C::WIRE,
        list_decode: list_decode::case::<O, C>,
        memory: memory::case::<O, C>,
        sync: sync::case::<O, C>,
    }
}

/// The forms that the flag `as` names; `all` names each.
pub(crate) fn chosen(flags: &Flags, wire: Wire) -> anyhow::Result<Vec<&'static Representation>> {
    let mut forms: Vec<_> = ALL.iter().filter(|form| form.wire == wire).collect();
    let known: Vec<_> = forms.iter().map(|form| form.name).collect();
    let name = flags.text("as");
    forms.retain(|form| name == "all" || form.name == name);
    forms.first().with_context(|| format!("-as {name}: in {} there are {known:?}", wire.name()))?;
    Ok(forms)
}

/// What objects travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Json,
    Protobuf,
}

impl Wire {
    /// That of a file of the peers.
    pub(crate) fn of_file(file: &str) -> Self {
        if file.ends_with(".pb") { Self::Protobuf } else { Self::Json }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// A pod in some form.
pub(crate) trait PodForm: Represented<Resource: Resource<DynamicType = ()>> + 'static {
    /// Waits for what goes on behind the scenes; told is one of the pods.
    fn settle(&self) {}
}

impl<T: Send + Sync + 'static> PodForm for Arc<T> where Self: Represented<Resource: Resource<DynamicType = ()>> {}

impl PodForm for Packed<Pod> {}

impl PodForm for Zipped<Pod> {
    fn settle(&self) {
        self.settle();
    }
}

/// A codec of that form.
pub(crate) trait Speaks<O>: Codec<O> + Default {
    const WIRE: Wire;
}

impl<O> Speaks<O> for Json
where
    Self: Codec<O>,
{
    const WIRE: Wire = Wire::Json;
}

impl<O> Speaks<O> for Protobuf
where
    Self: Codec<O>,
{
    const WIRE: Wire = Wire::Protobuf;
}

/// What lists and watches all pods; `transform` leaves `managedFields` out.
pub(crate) fn list_watch<O: PodForm, C: Speaks<O>>(client: Client, transform: bool) -> ListWatch<O, C> {
    let pods = ListWatch::all(client).codec(C::default());
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

/// The same in protobuf.
#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = Pod)]
pub(crate) struct PodTags {
    #[prost(message, required, tag = "1")]
    metadata: IdTags,
    #[prost(message, optional, tag = "2")]
    spec: Option<SpecTags>,
    #[prost(message, optional, tag = "3")]
    status: Option<StatusTags>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct IdTags {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
}

impl Metadata for IdTags {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.resource_version)
    }

    fn label(&self, _: &str) -> Option<&str> {
        None
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct SpecTags {
    #[prost(string, tag = "10")]
    node_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusTags {
    #[prost(string, tag = "1")]
    phase: String,
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
