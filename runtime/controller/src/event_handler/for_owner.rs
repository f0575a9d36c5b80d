//! The owner of the object.

use std::fmt;

use kube_core::Resource;

use super::{EventHandler, add_distinct};
use crate::event::{AnyObject, Event};
use crate::request::Request;
use crate::request_queue::Enqueue;

/// The API group and the kind of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `ReplicaSet`
    pub kind: String,
}

impl GroupKind {
    /// A group and a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Those of a resource.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self::new(K::group(&()), K::kind(&()))
    }
}

/// `ReplicaSet.apps`, or `Pod` for the core group.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Asks for the owners of the object of the event, those of a kind: by default for the one that controls it. As
/// controller-runtime's `EnqueueRequestForOwner`.
///
/// Of an update both states count: what has lost its owner concerns both. The version of a reference does not count, nor
/// does its uid, and a reference that cannot be read harms no other. An owner is in the namespace of its object, or in none
/// if it is of cluster scope.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a handler does nothing until it is given to a watch"]
pub struct EnqueueRequestForOwner {
    owner: GroupKind,
    cluster_scoped: bool,
    any: bool,
}

impl EnqueueRequestForOwner {
    /// For owners of this kind, which live in namespaces, where they control the object.
    pub fn new(owner: GroupKind) -> Self {
        Self { owner, cluster_scoped: false, any: false }
    }

    /// For owners of the kind of a resource, where they control the object.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self
    where
        K::Scope: ScopeOfOwner,
    {
        Self { cluster_scoped: K::Scope::CLUSTER, ..Self::new(GroupKind::of::<K>()) }
    }

    /// The owners are of cluster scope, or not.
    pub fn cluster_scoped(self, cluster_scoped: bool) -> Self {
        Self { cluster_scoped, ..self }
    }

    /// Every owner of the kind counts, not only the one that controls the object.
    pub fn any_owner(self) -> Self {
        Self { any: true, ..self }
    }

    fn owners_of<O: AnyObject + ?Sized>(&self, object: &O, into: &mut Vec<Request>) {
        let owners = object.owners();
        // At most one controls; should there be more, the first counts, as in controller-runtime.
        let controller = owners.iter().position(|owner| owner.controller);
        for (n, owner) in owners.iter().enumerate() {
            let counts = self.any || controller == Some(n);
            if counts && owner.kind == self.owner.kind && owner.group() == Some(&*self.owner.group) {
                let namespace = if self.cluster_scoped { "" } else { object.id().namespace };
                into.push(Request::new(namespace, owner.name));
            }
        }
    }
}

/// What a scope says of where an owner lives.
pub trait ScopeOfOwner {
    /// In no namespace.
    const CLUSTER: bool;
}

impl ScopeOfOwner for kube_core::NamespaceResourceScope {
    const CLUSTER: bool = false;
}

impl ScopeOfOwner for kube_core::ClusterResourceScope {
    const CLUSTER: bool = true;
}

impl<O: AnyObject + ?Sized> EventHandler<O> for EnqueueRequestForOwner {
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, Request>) {
        let mut requests = Vec::new();
        for object in event.old().into_iter().chain(event.object()) {
            self.owners_of(object, &mut requests);
        }
        add_distinct(requests, queue);
    }
}
