//! How an informer and its handlers are doing.

use std::time::Duration;

use crate::reflector::{LastError, ReflectorStatus};

/// Where an informer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InformerPhase {
    /// Not started yet.
    New,
    /// Started. Whether it lists, watches or waits says [`ReflectorStatus::phase`].
    Running,
    /// Stopped, for ever.
    Stopped,
}

/// How an informer is doing, at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// What is listed and watched.
    pub resource: String,
    /// Where it is in its life.
    pub phase: InformerPhase,
    /// Whether the first list is in the store.
    pub synced: bool,
    /// How its requests are doing: the phase, the last error, the time of the last list, counters.
    pub reflector: ReflectorStatus,
    /// How long ago the server was last heard of, by a list, an event or a bookmark. What is in the store may be
    /// older than the truth by that much. `None` before the first list.
    pub staleness: Option<Duration>,
    /// The number of objects in the store.
    pub objects: usize,
    /// The number of entries between the reflector and the store.
    pub pending: usize,
    /// The version up to which the store has taken in what the server sent; empty before the first list.
    pub applied_version: String,
    /// Its handlers and subscriptions, in no order.
    pub handlers: Vec<HandlerStatus>,
    /// Why it stopped though nobody asked for it.
    pub panic: Option<String>,
}

impl InformerStatus {
    /// The last failure of a list or a watch, also after it has been overcome.
    pub fn last_error(&self) -> Option<&LastError> {
        self.reflector.last_error.as_ref()
    }
}

/// How one handler or subscription is doing, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its name: as given, else its type.
    pub name: String,
    /// How many notifications wait for it, or for how many keys where they are coalesced.
    pub backlog: usize,
    /// How many calls have returned.
    pub told: u64,
    /// How many notifications were merged into others that waited.
    pub coalesced: u64,
    /// How many calls have panicked.
    pub panics: u64,
    /// Whether it is synced, see [`Registration::has_synced`](crate::Registration::has_synced).
    pub synced: bool,
}
