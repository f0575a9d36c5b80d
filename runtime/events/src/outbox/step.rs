//! PURE. What an outbox says, and what it is told.

use std::time::Instant;

use crate::Write;

/// What to do next.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Send {
        ticket: u64,
        write: Write,
    },
    /// Until an answer, a new event, or this moment.
    Wait(Option<Instant>),
    /// Closed, and nothing is left to do.
    Drained,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    NotFound,
    AlreadyExists,
    Refused,
    Failed,
}
