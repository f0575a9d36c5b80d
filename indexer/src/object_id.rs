//! The id of an object, owned: what a user's own struct has as its `metadata`.

use std::fmt;

use crate::{Id, LabelMap, Labels, ObjectKey};

/// What a field can be that serves a struct as its Kubernetes `metadata`: it knows the id, and maybe the labels.
///
/// `#[derive(Meta)]` asks it. [`ObjectId`] has the id alone, [`LabeledId`] the labels too; with the feature `kube`
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
}
