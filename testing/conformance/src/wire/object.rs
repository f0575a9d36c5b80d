//! The objects of the notation, and the JSON that stands for them.

use std::fmt;

use serde_json::{Value, json};

/// One state of an object: `x@10`, `ns2/x#u2@10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// Its namespace; `ns1` where the notation has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; `u-NAME` where the notation has none.
    pub uid: String,
    /// Its version; empty where the notation has none.
    pub version: String,
}

impl Thing {
    /// Reads the notation.
    pub fn parse(text: &str) -> Self {
        let (name, version) = text.split_once('@').unwrap_or((text, ""));
        let (name, uid) = match name.split_once('#') {
            Some((name, uid)) => (name, Some(uid)),
            None => (name, None),
        };
        let (namespace, name) = name.split_once('/').unwrap_or(("ns1", name));
        let uid = uid.map_or_else(|| format!("u-{name}"), str::to_owned);
        Self { namespace: namespace.to_owned(), name: name.to_owned(), uid, version: version.to_owned() }
    }

    /// A pod; its label `uid` follows its uid, so that an index can tell two objects of one name apart.
    pub fn json(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name, "namespace": self.namespace, "uid": self.uid,
                "resourceVersion": self.version, "labels": {"uid": self.uid},
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    }

    /// What stays the same while the object lives under its name.
    pub(crate) fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// The version as a number, 0 where it is none.
    pub(crate) fn number(&self) -> u64 {
        self.version.parse().unwrap_or_default()
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace != "ns1" {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if self.uid != format!("u-{}", self.name) {
            write!(f, "#{}", self.uid)?;
        }
        write!(f, "@{}", self.version)
    }
}

/// A line of a watch: an event of this type with this object.
pub fn event_line(kind: &str, object: &Value) -> Vec<u8> {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into_bytes()
}

/// A bookmark, with the mark that ends the initial events or without.
pub(crate) fn bookmark(version: &str, end: bool) -> Value {
    let mut bookmark = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": version}});
    if end {
        bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    bookmark
}

/// A Status of failure; code 0 and an empty reason are left out.
pub(crate) fn status(code: u16, reason: &str) -> Value {
    let mut status =
        json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "as the script says"});
    if code != 0 {
        status["code"] = code.into();
    }
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    status
}
