//! Messages to build one's own from: the metadata of an object, in protobuf (feature `prost`).
//!
//! A struct of one's own names the fields it reads by their numbers, which stand in the `generated.proto` of each API
//! group; a field that is not named is skipped. The metadata are field 1 of every object, and field 1 of a list's.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewire_indexer::Meta;
//! use kubewire_listwatch::{ListWatch, Protobuf, messages};
//!
//! /// Where a pod runs.
//! #[derive(Clone, PartialEq, prost::Message, Meta)]
//! #[kubewire(resource = Pod)]
//! struct PodOnNode {
//!     #[prost(message, required, tag = "1")]
//!     metadata: messages::LabeledId,
//!     #[prost(message, optional, tag = "2")]
//!     spec: Option<Spec>,
//! }
//!
//! #[derive(Clone, PartialEq, prost::Message)]
//! struct Spec {
//!     #[prost(string, tag = "10")]
//!     node_name: String,
//! }
//!
//! # fn pods(client: kube_client::Client) -> ListWatch<Arc<PodOnNode>, Protobuf> {
//! ListWatch::<Arc<PodOnNode>>::all(client).codec(Protobuf)
//! # }
//! ```
//!
//! A struct that holds [`ObjectMeta`] alone is the metadata of an object; with
//! [`metadata_only`](crate::ListWatch::metadata_only) the server sends no more.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kubewire_indexer::{self as indexer, Id, LabelMap, Metadata};

/// What identifies an object, and its labels.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LabeledId {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The namespace; empty for objects of cluster scope.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The uid.
    #[prost(string, tag = "5")]
    pub uid: String,
    /// The version.
    #[prost(string, tag = "6")]
    pub resource_version: String,
    /// The labels.
    #[prost(btree_map = "string, string", tag = "11")]
    pub labels: BTreeMap<String, String>,
}

/// The metadata of an object, but for what no controller reads (`managedFields`, `selfLink`).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ObjectMeta {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What the server made the name from.
    #[prost(string, tag = "2")]
    pub generate_name: String,
    /// The namespace; empty for objects of cluster scope.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// The uid.
    #[prost(string, tag = "5")]
    pub uid: String,
    /// The version.
    #[prost(string, tag = "6")]
    pub resource_version: String,
    /// The number of the present desired state; 0 where the resource counts none.
    #[prost(int64, tag = "7")]
    pub generation: i64,
    /// When the object was made.
    #[prost(message, optional, tag = "8")]
    pub creation_timestamp: Option<Time>,
    /// When the object is to be gone, once its deletion was asked for.
    #[prost(message, optional, tag = "9")]
    pub deletion_timestamp: Option<Time>,
    /// The labels.
    #[prost(btree_map = "string, string", tag = "11")]
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    #[prost(btree_map = "string, string", tag = "12")]
    pub annotations: BTreeMap<String, String>,
    /// What the object belongs to.
    #[prost(message, repeated, tag = "13")]
    pub owner_references: Vec<OwnerReference>,
    /// What must be done before the object goes.
    #[prost(string, repeated, tag = "14")]
    pub finalizers: Vec<String>,
}

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Time {
    /// Seconds since 1970.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Billionths of a second more.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// One owner of an object.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OwnerReference {
    /// `ReplicaSet`
    #[prost(string, tag = "1")]
    pub kind: String,
    /// The owner's name; its namespace is the object's, or none.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The owner's uid.
    #[prost(string, tag = "4")]
    pub uid: String,
    /// `apps/v1`
    #[prost(string, tag = "5")]
    pub api_version: String,
    /// Whether this is the one that controls the object.
    #[prost(bool, tag = "6")]
    pub controller: bool,
    /// Whether the owner stays as long as the object does.
    #[prost(bool, tag = "7")]
    pub block_owner_deletion: bool,
}

impl Metadata for LabeledId {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.resource_version)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.label(name)
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels.all()
    }
}

impl Metadata for ObjectMeta {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.resource_version)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.label(name)
    }

    fn generation(&self) -> Option<i64> {
        // Where JSON has none, there is a zero.
        Some(self.generation).filter(|generation| *generation != 0)
    }

    fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn owners(&self) -> Vec<indexer::OwnerReference<'_>> {
        let owners = self.owner_references.iter();
        owners
            .map(|owner| {
                indexer::OwnerReference::new(&owner.api_version, &owner.kind, &owner.name)
                    .uid(&owner.uid)
                    .controller(owner.controller)
            })
            .collect()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels.all()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.annotations.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}
