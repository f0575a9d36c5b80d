//! An object for the tests of this crate.

use std::borrow::Cow;
use std::sync::Arc;

use kubewire_indexer::{Id, Meta, OwnerReference};

/// Nothing but metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) namespace: &'static str,
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) generation: Option<i64>,
    pub(crate) being_deleted: bool,
    pub(crate) labels: Vec<(&'static str, &'static str)>,
    pub(crate) annotations: Vec<(&'static str, &'static str)>,
    pub(crate) owners: Vec<OwnerReference<'static>>,
}

impl Thing {
    pub(crate) fn new(namespace: &'static str, name: &'static str) -> Self {
        Self { namespace, name, version: "1", ..Self::default() }
    }

    pub(crate) fn arc(self) -> Arc<Self> {
        Arc::new(self)
    }
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        Id::new(self.namespace, self.name).resource_version(self.version)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        self.owners.clone()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels.clone()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.annotations.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }
}
