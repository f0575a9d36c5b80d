//! The id of an object, owned: what a user's own struct has as its `metadata`.

use std::borrow::Cow;
use std::fmt;

use crate::{Id, LabelMap, Labels, ObjectKey, OwnerReference};

/// What a field can be that serves a struct as its Kubernetes `metadata`: it knows the id, and maybe the labels.
///
/// `#[derive(Meta)]` asks it. [`ObjectId`] has the id alone, [`LabeledId`] the labels too, [`DetailedId`] what a controller
/// asks beside (owners, generation, …); with the feature `kube`
/// the full `ObjectMeta` will do as well.
pub trait Metadata {
    /// What identifies the object.
    fn id(&self) -> Id<'_>;

    /// The value of one label. Without an implementation there are none.
    fn label(&self, name: &str) -> Option<&str> {
        let _ = name;
        None
    }

    /// The object's key. To be written only where it is at hand.
    fn key(&self) -> ObjectKey {
        self.id().key()
    }

    /// `metadata.generation`: the number of the desired state. Without an implementation there is none.
    fn generation(&self) -> Option<i64> {
        None
    }

    /// Whether the object is marked for deletion and waits for its finalizers. Without an implementation it is not.
    fn is_being_deleted(&self) -> bool {
        false
    }

    /// The owners, in the order in which they stand. Without an implementation there are none.
    fn owners(&self) -> Vec<OwnerReference<'_>> {
        Vec::new()
    }

    /// All labels, in no order. Without an implementation there are none.
    fn all_labels(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// All annotations, in no order. Without an implementation there are none.
    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        Vec::new()
    }
}

/// Namespace, name, uid and version of an object, owned.
///
/// With the feature `serde` it is read from a Kubernetes `metadata`: whatever else stands there is skipped,
/// missing parts and `null` are empty, and of a part that comes twice the later one counts (as with
/// k8s-openapi's types).
///
/// Cost: 88 bytes and one allocation; [`key`](Self::key) makes none.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectId {
    key: ObjectKey,
    /// The uid, then the version.
    rest: Box<str>,
    uid_len: usize,
}

impl ObjectId {
    /// The id of these parts.
    ///
    /// ```
    /// use kubewire_indexer::{Id, ObjectId};
    ///
    /// let id = ObjectId::new(Id::new("default", "web").resource_version("7"));
    /// assert_eq!(id.key().to_string(), "default/web");
    /// assert_eq!(id.id().resource_version, "7");
    /// ```
    pub fn new(id: Id<'_>) -> Self {
        let mut rest = String::with_capacity(id.uid.len() + id.resource_version.len());
        rest.push_str(id.uid);
        rest.push_str(id.resource_version);
        Self { key: id.key(), rest: rest.into_boxed_str(), uid_len: id.uid.len() }
    }

    /// The parts.
    pub fn id(&self) -> Id<'_> {
        let (uid, resource_version) = self.rest.split_at(self.uid_len);
        Id::new(self.key.namespace(), self.key.name()).uid(uid).resource_version(resource_version)
    }

    /// The key. Cost: that of a clone of it.
    pub fn key(&self) -> ObjectKey {
        self.key.clone()
    }
}

impl Default for ObjectId {
    fn default() -> Self {
        Self::new(Id::default())
    }
}

impl From<Id<'_>> for ObjectId {
    fn from(id: Id<'_>) -> Self {
        Self::new(id)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.id(), f)
    }
}

impl Metadata for ObjectId {
    fn id(&self) -> Id<'_> {
        self.id()
    }

    fn key(&self) -> ObjectKey {
        self.key()
    }
}

/// An [`ObjectId`] with the labels: for a struct that shall be selected by label.
///
/// With the feature `serde` it is read as an `ObjectId` is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabeledId {
    /// The id.
    pub id: ObjectId,
    /// The labels.
    pub labels: Labels,
}

impl Metadata for LabeledId {
    fn id(&self) -> Id<'_> {
        self.id.id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.label(name)
    }

    fn key(&self) -> ObjectKey {
        self.id.key()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels.iter().collect()
    }
}

/// An [`ObjectId`] with what a controller asks of an object beside it: for a struct of a few fields that is watched for its
/// generation, its labels and annotations, or for its owner's sake.
///
/// With the feature `serde` it is read as an `ObjectId` is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DetailedId {
    /// The id.
    pub id: ObjectId,
    /// The labels.
    pub labels: Labels,
    /// The annotations.
    pub annotations: Labels,
    /// The number of the desired state, where it is counted.
    pub generation: Option<i64>,
    /// Whether the object is marked for deletion.
    pub being_deleted: bool,
    /// The owners, in the order in which they stand.
    pub owners: Box<[Owner]>,
}

/// An [`OwnerReference`], owned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(::serde::Deserialize), serde(rename_all = "camelCase", default))]
pub struct Owner {
    /// `apps/v1`
    pub api_version: Box<str>,
    /// `ReplicaSet`
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's uid.
    pub uid: Box<str>,
    /// Whether it controls the object; absent is no.
    pub controller: Option<bool>,
}

impl Metadata for DetailedId {
    fn id(&self) -> Id<'_> {
        self.id.id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.label(name)
    }

    fn key(&self) -> ObjectKey {
        self.id.key()
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        let owners = self.owners.iter();
        owners
            .map(|owner| {
                OwnerReference::new(&owner.api_version, &owner.kind, &owner.name)
                    .uid(&owner.uid)
                    .controller(owner.controller == Some(true))
            })
            .collect()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels.iter().collect()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.annotations.iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value))).collect()
    }
}
