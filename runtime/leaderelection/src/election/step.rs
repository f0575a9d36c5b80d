//! PURE. What an election says, and what it is told.

use std::time::Instant;

use crate::{EndCause, Record, Versioned};

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an election does nothing by itself"]
pub enum Step {
    /// Send this request, now, and tell [`answer`](super::Election::answer) what came of it, with this ticket. A request
    /// that was sent before is given up: drop it.
    Send {
        /// Names the request.
        ticket: u64,
        /// What to ask the lock.
        request: Request,
        /// From then on no answer is heard.
        give_up_at: Instant,
    },
    /// Nothing to do before this moment, or an answer.
    Wait(Instant),
    /// It is over: see [`Notice::Ended`], if there was a term. [`contend`](super::Election::contend) begins anew.
    Done,
}

/// What is asked of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read it.
    Get,
    /// Make its object, with this record.
    Create(Record),
    /// Replace the record of this version, and of no other.
    Update(Versioned),
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was read.
    Found(Versioned),
    /// There is no such object.
    NotFound,
    /// It was written, and has this version now.
    Written(Versioned),
    /// It was not written: the version was another one, or the object was there already.
    Conflict,
    /// It failed, or nobody knows.
    Failed,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A term has begun.
    Started {
        /// Until when, without a renewal.
        until: Instant,
        /// The lease's count of holders.
        transitions: i32,
    },
    /// The term goes on.
    Renewed {
        /// Until when, without another renewal.
        until: Instant,
    },
    /// The term is over. At the latest at the end of its time: ask [`Election::is_leader`](super::Election::is_leader) for the moment.
    Ended(EndCause),
    /// The lease names another holder than before; empty when it was released.
    NewHolder(String),
    /// A renewal that did not read the lease before has failed, so it is read.
    SlowPath,
    /// The lease was written under our identity, but not by us.
    SharedIdentity,
    /// The lease was emptied by us.
    Released,
}
