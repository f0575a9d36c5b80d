//! The programs of a control plane.

use std::fmt;

/// A program of a control plane, to be killed, stopped and started by tests of what then happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
        })
    }
}
