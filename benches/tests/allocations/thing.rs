//! A small object with a key of its own, as a user's struct with an `ObjectId` is one.

use std::sync::Arc;

use kubewire_indexer::{Id, Meta, ObjectId, ObjectKey};

#[derive(Debug)]
pub(crate) struct Thing(ObjectId);

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        self.0.id()
    }

    fn key(&self) -> ObjectKey {
        self.0.key()
    }
}

/// A hundred things a namespace.
pub(crate) fn thing(number: usize, version: usize) -> Arc<Thing> {
    let (namespace, name, version) =
        (format!("namespace-{}", number / 100), format!("thing-{number}"), version.to_string());
    Arc::new(Thing(ObjectId::new(Id::new(&namespace, &name).uid("u").resource_version(&version))))
}

pub(crate) fn things(count: usize, version: usize) -> Vec<Arc<Thing>> {
    (0..count).map(|number| thing(number, version)).collect()
}
