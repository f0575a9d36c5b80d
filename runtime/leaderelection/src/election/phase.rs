//! PURE. Where an election is.

use std::time::{Duration, Instant};

use crate::Record;

#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) record: Record,
    pub(super) version: String,
    /// When the record was first seen as it is, by the local clock.
    pub(super) since: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) until: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stopping {
    /// When the release is given up.
    pub(super) deadline: Instant,
    /// The next pause between two tries.
    pub(super) pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Rest(Instant),
    /// Update what was seen last, unread.
    Fast,
    Read,
    Create,
    Update,
    ReleaseRest(Instant),
    ReleaseRead,
    ReleaseWrite,
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct Awaited {
    pub(super) ticket: u64,
    /// The record of a write.
    pub(super) record: Option<Record>,
    pub(super) sent: Instant,
    pub(super) give_up_at: Instant,
}
