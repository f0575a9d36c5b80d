//! PURE. What an outbox knows of the events that are one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crate::body::{Body, SeriesKey};
use crate::write::Sightings;

/// Events that are one.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) body: Arc<Body>,
    /// The object's version when it was first seen.
    pub(super) version: String,
    /// Empty until it is to be written.
    pub(super) name: String,
    pub(super) seen: Sightings,
    pub(super) last_seen: Instant,
    /// The count that the server knows; 0: it has no such event.
    pub(super) written: u32,
    pub(super) written_at: Instant,
    pub(super) state: State,
    pub(super) tries: u32,
    /// A create of its present name has failed, and may have been done nevertheless.
    pub(super) may_exist: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The server knows all, or nobody is to be told.
    Idle,
    Ready,
    /// To be written at a later moment, as a try again.
    Retry((Instant, u64)),
    /// To be looked at at a later moment: there may be something to count up, or it is over.
    Heartbeat((Instant, u64)),
    InFlight,
}

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) key: SeriesKey,
    pub(super) count: u32,
    pub(super) is_create: bool,
}

/// Notes of events that are alike but for them.
#[derive(Debug)]
pub(super) struct Similar {
    pub(super) notes: HashSet<String>,
    pub(super) last_seen: Instant,
}
