//! What a list ends with, and what a watch is made of.

use crate::ItemError;

/// What a list says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListMeta {
    /// The version of the list. An empty one is an error for the reflector: no watch can begin there.
    pub resource_version: String,
    /// The token of the next page; `None` where this was the last (an empty token is none).
    pub continue_token: Option<String>,
    /// How many items the server says are left, if it says.
    pub remaining_item_count: Option<u64>,
}

impl ListMeta {
    /// The meta of a complete list at this version.
    pub fn new(resource_version: impl Into<String>) -> Self {
        Self { resource_version: resource_version.into(), ..Self::default() }
    }

    /// With a token for the next page.
    #[must_use]
    pub fn continued(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}

/// One event of a watch. The server's `ERROR` events are not among them: they come as the stream's error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WatchEvent<O> {
    /// `ADDED`
    Added(O),
    /// `ADDED`, before the end mark of a streaming list, of an object whose very state was held already: the held
    /// handle. Only [`streaming_relist`](crate::ListerWatcher::streaming_relist) gives it.
    Unchanged(O),
    /// `MODIFIED`
    Modified(O),
    /// `DELETED`, with the last state.
    Deleted(O),
    /// `BOOKMARK`: nothing before this version will come any more.
    Bookmark {
        /// The version.
        resource_version: String,
        /// Whether the annotation `k8s.io/initial-events-end` is `"true"`: the streaming list is complete.
        initial_events_end: bool,
    },
    /// A change of an object that cannot be decoded. The error names the object and its version where they
    /// could be read; a bad delete still tells which key is gone.
    Undecodable {
        /// What happened to the object.
        kind: EventKind,
        /// Which object, and what is wrong.
        error: ItemError,
    },
    /// An event of a type that is not known: reported and skipped.
    Unknown {
        /// The type as it came, cut to a bounded length.
        kind: String,
    },
}
