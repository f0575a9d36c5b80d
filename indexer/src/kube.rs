//! Every `kube_core::Resource` is an object.

use kube_core::{ObjectMeta, Resource};

use crate::{Id, LabelMap, Meta, Metadata, Represents};

/// Typed objects of k8s-openapi, `DynamicObject`, `PartialObjectMeta`, and what `#[derive(CustomResource)]` makes.
impl<K: Resource> Meta for K {
    fn id(&self) -> Id<'_> {
        Metadata::id(self.meta())
    }

    fn label(&self, name: &str) -> Option<&str> {
        Metadata::label(self.meta(), name)
    }
}

/// Each of them is read from its own resource.
impl<K: Resource> Represents for K {
    type Resource = K;
}

/// For a user's own struct that wants the full metadata.
impl Metadata for ObjectMeta {
    fn id(&self) -> Id<'_> {
        Id::new(text(&self.namespace), text(&self.name))
            .uid(text(&self.uid))
            .resource_version(text(&self.resource_version))
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.label(name)
    }
}

fn text(part: &Option<String>) -> &str {
    part.as_deref().unwrap_or_default()
}
