//! Every `kube_core::Resource` is an object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube_core::{ObjectMeta, Resource};

use crate::{Id, LabelMap, Meta, Metadata, OwnerReference, Represents};

/// Typed objects of k8s-openapi, `DynamicObject`, `PartialObjectMeta`, and what `#[derive(CustomResource)]` makes.
impl<K: Resource> Meta for K {
    fn id(&self) -> Id<'_> {
        Metadata::id(self.meta())
    }

    fn label(&self, name: &str) -> Option<&str> {
        Metadata::label(self.meta(), name)
    }

    fn generation(&self) -> Option<i64> {
        Metadata::generation(self.meta())
    }

    fn is_being_deleted(&self) -> bool {
        Metadata::is_being_deleted(self.meta())
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        Metadata::owners(self.meta())
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        Metadata::all_labels(self.meta())
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        Metadata::all_annotations(self.meta())
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

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        let owners = self.owner_references.iter().flatten();
        owners
            .map(|owner| {
                OwnerReference::new(&owner.api_version, &owner.kind, &owner.name)
                    .uid(&owner.uid)
                    .controller(owner.controller == Some(true))
            })
            .collect()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        pairs(&self.labels).collect()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        pairs(&self.annotations).map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value))).collect()
    }
}

fn pairs(map: &Option<BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    map.iter().flatten().map(|(name, value)| (&**name, &**value))
}

fn text(part: &Option<String>) -> &str {
    part.as_deref().unwrap_or_default()
}
