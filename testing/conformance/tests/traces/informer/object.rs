//! The objects of the informer's traces.

use std::sync::Arc;

use kubewire_indexer::{Id, Meta};
use serde::{Deserialize, Serialize};

/// An object as the traces write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Thing {
    key: String,
    version: String,
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        let (namespace, name) = self.key.split_once('/').unwrap_or(("", &self.key));
        Id::new(namespace, name).uid(&self.uid).resource_version(&self.version)
    }
}

impl Thing {
    /// The transform `mark`.
    pub(crate) fn marked(self: Arc<Self>) -> Result<Arc<Self>, &'static str> {
        if self.note == "poison" {
            return Err("a poisoned object");
        }
        Ok(Arc::new(Self { note: "marked".to_owned(), ..Arc::unwrap_or_clone(self) }))
    }
}
