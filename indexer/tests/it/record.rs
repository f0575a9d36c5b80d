//! What the tests' objects say, whatever they come as.

use std::fmt::Debug;
use std::sync::Arc;

use kubewire_indexer::{Id, Meta, Object};

/// What a test says of an object, and finds in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    /// The label `note`, and a field where the representation has others than metadata.
    pub(crate) note: String,
}

/// A representation of objects.
pub(crate) trait Form: Object + Clone + Debug {
    fn make(pod: &Pod) -> Self;

    fn read(&self) -> Pod;

    /// Whether both are handles of one object in memory.
    fn is_handle_of(&self, other: &Self) -> bool;
}

/// The object with something else in it.
pub(crate) fn edited<O: Form>(object: &O, edit: impl FnOnce(&mut Pod)) -> O {
    let mut pod = object.read();
    edit(&mut pod);
    O::make(&pod)
}

impl Meta for Pod {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.version)
    }

    fn label(&self, name: &str) -> Option<&str> {
        (name == "note").then_some(&self.note)
    }
}

impl Form for Arc<Pod> {
    fn make(pod: &Pod) -> Self {
        Self::new(pod.clone())
    }

    fn read(&self) -> Pod {
        Pod::clone(self)
    }

    fn is_handle_of(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}
