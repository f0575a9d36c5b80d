//! What one informer is to see of the server.

use std::collections::BTreeMap;

use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Indexer, Object, ObjectKey};
use serde_json::Value;

/// What there is: the state of each key, as [`state`] writes it.
pub(crate) type Contents = BTreeMap<ObjectKey, String>;

/// Some of the objects of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) resource: &'static str,
    pub(crate) namespace: Option<&'static str>,
    /// Name and value.
    pub(crate) label: Option<(&'static str, &'static str)>,
}

impl Scope {
    pub(crate) fn all(resource: &'static str) -> Self {
        Self { resource, namespace: None, label: None }
    }

    fn has(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        self.namespace.is_none_or(|namespace| meta["namespace"] == namespace)
            && self.label.is_none_or(|(name, value)| meta["labels"][name] == value)
    }

    /// What the server has.
    pub(crate) fn served(&self, server: &ApiServer) -> Contents {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entry = |object: Value| {
            let meta = &object["metadata"];
            let key = ObjectKey::new(&text(&meta["namespace"]), &text(&meta["name"]));
            (key, format!("{}@{}", text(&meta["uid"]), text(&meta["resourceVersion"])))
        };
        server.list(self.resource).into_iter().filter(|object| self.has(object)).map(entry).collect()
    }
}

/// Which state of which object it is: `uid@version`.
pub(crate) fn state<O: Object>(object: &O) -> String {
    let id = object.id();
    format!("{}@{}", id.uid, id.resource_version)
}

/// What a store has.
pub(crate) fn stored<O: Object>(indexer: &Indexer<O>) -> Contents {
    indexer.list().iter().map(|object| (object.key(), state(object))).collect()
}

pub(crate) fn differences(one: &Contents, other: &Contents) -> Vec<String> {
    let keys = one.keys().chain(other.keys()).collect::<std::collections::BTreeSet<_>>();
    let differing = keys.into_iter().filter(|key| one.get(key) != other.get(key));
    differing.map(|key| format!("{key}: {:?} and {:?}", one.get(key), other.get(key))).collect()
}
