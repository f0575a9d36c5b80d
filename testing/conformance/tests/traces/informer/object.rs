//! The objects of the informer's traces.

use serde::{Deserialize, Serialize};

use crate::record::{Form, Pod, edited};

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

impl Thing {
    pub(crate) fn made<O: Form>(&self) -> O {
        let (namespace, name) = self.key.split_once('/').unwrap_or(("", &self.key));
        O::make(&Pod {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: self.uid.clone(),
            version: self.version.clone(),
            note: self.note.clone(),
        })
    }

    pub(crate) fn of<O: Form>(object: &O) -> Self {
        let Pod { uid, version, note, .. } = object.read();
        Self { key: object.key().to_string(), version, uid, note }
    }
}

/// The transform `mark`.
pub(crate) fn marked<O: Form>(object: O) -> Result<O, &'static str> {
    if object.read().note == "poison" {
        return Err("a poisoned object");
    }
    Ok(edited(&object, |pod| pod.note = "marked".to_owned()))
}
