//! What a reflector is doing and how it fares: to be read at any time.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use kubewire_listwatch::ErrorClass;
use parking_lot::Mutex;

use super::reflector_error::{ReflectorError, ReflectorErrorKind};

/// What a reflector is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReflectorPhase {
    /// Nothing was asked for yet.
    #[default]
    Starting,
    /// It lists, by pages or by a stream.
    Listing,
    /// A watch is open, or being opened.
    Watching,
    /// It waits before the next try.
    BackingOff,
    /// It has ended: stopped, dropped or panicked.
    Stopped,
}

/// Why a list or a watch was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RestartCause {
    /// The server ended a watch in good order: the usual one.
    Closed,
    /// The server ended a watch within a second, without an event.
    VeryShort,
    /// A streaming list had no end mark.
    NoEndMark,
    /// A streaming list did not work, an ordinary one takes its place.
    FallBackToList,
    /// The answer was older than asked.
    OlderAnswer,
    /// A request or a stream failed.
    Failed(ErrorClass),
}

impl RestartCause {
    pub(crate) fn of(kind: &ReflectorErrorKind) -> Self {
        match kind {
            ReflectorErrorKind::VeryShortWatch => Self::VeryShort,
            ReflectorErrorKind::NoEndMark => Self::NoEndMark,
            ReflectorErrorKind::OlderAnswer { .. } => Self::OlderAnswer,
            other => Self::Failed(other.class()),
        }
    }
}

impl fmt::Display for RestartCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::VeryShort => "very_short",
            Self::NoEndMark => "no_end_mark",
            Self::FallBackToList => "fall_back_to_list",
            Self::OlderAnswer => "older_answer",
            Self::Failed(class) => class.as_str(),
        })
    }
}

/// The last thing that went wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LastError {
    /// What.
    pub error: ReflectorError,
    /// When, by the reflector's clock.
    pub at: Instant,
}

/// How a reflector fares, at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it is doing.
    pub phase: ReflectorPhase,
    /// The version it has come to; empty before the first list.
    pub resource_version: String,
    /// When a list was last taken in.
    pub last_list: Option<Instant>,
    /// When the server was last heard of, by a list or an event. While a watch is open it may be long ago without
    /// anything being wrong, but not much longer than a minute where the server sends bookmarks.
    pub last_heard: Option<Instant>,
    /// The last failure of a list or a watch; it stays readable after a success.
    pub last_error: Option<LastError>,
    /// Failures since a list was last taken in or a watch last opened: zero means that all is well. What was tried
    /// again at once in another way, such as a streaming list that was refused, does not count.
    pub failures_in_a_row: u64,
    /// List requests made, pages counted one by one.
    pub list_requests: u64,
    /// Watch requests made, streaming lists among them.
    pub watch_requests: u64,
    /// How often lists and watches were over, by cause, in the order in which the causes first came up.
    pub restarts: Vec<(RestartCause, u64)>,
    /// Objects of lists and events that could not be decoded.
    pub undecodable: u64,
    /// Objects that the store did not take.
    pub not_taken: u64,
    /// Events of unknown types.
    pub unknown_events: u64,
    /// Panics of the error handler.
    pub handler_panics: u64,
}

impl ReflectorStatus {
    /// How often a list or a watch was over for this cause.
    pub fn restarts_by(&self, cause: RestartCause) -> u64 {
        self.restarts.iter().find(|(known, _)| *known == cause).map_or(0, |(_, count)| *count)
    }

    fn restart(&mut self, cause: RestartCause) {
        match self.restarts.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => self.restarts.push((cause, 1)),
        }
    }
}

/// Reads the status of a reflector, also after it has ended. Cloning counts a reference.
#[derive(Clone, Default)]
pub struct ReflectorMonitor {
    /// Held for a few moves of memory; nothing is called, awaited or dropped (but an older error) under it.
    status: Arc<Mutex<ReflectorStatus>>,
}

impl ReflectorMonitor {
    /// The status now.
    ///
    /// Cost: a short lock, and a clone of the status (a few small allocations).
    pub fn status(&self) -> ReflectorStatus {
        self.status.lock().clone()
    }

    /// The version that the reflector has come to; empty before the first list.
    ///
    /// Cost: a short lock and one allocation.
    pub fn resource_version(&self) -> String {
        self.status.lock().resource_version.clone()
    }

    /// What the reflector is doing. Cost: a short lock.
    pub fn phase(&self) -> ReflectorPhase {
        self.status.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: ReflectorPhase) {
        self.status.lock().phase = phase;
    }

    pub(crate) fn list_requested(&self) {
        self.status.lock().list_requests += 1;
    }

    pub(crate) fn watch_requested(&self) {
        self.status.lock().watch_requests += 1;
    }

    pub(crate) fn list_taken_in(&self, resource_version: &str, now: Instant) {
        let mut status = self.status.lock();
        status.last_list = Some(now);
        status.last_heard = Some(now);
        status.failures_in_a_row = 0;
        resource_version.clone_into(&mut status.resource_version);
    }

    pub(crate) fn watch_opened(&self, now: Instant) {
        let mut status = self.status.lock();
        status.last_heard = Some(now);
        status.failures_in_a_row = 0;
    }

    /// An event came; where it moved the version, to which one.
    pub(crate) fn heard(&self, moved_to: Option<&str>, now: Instant) {
        let mut status = self.status.lock();
        status.last_heard = Some(now);
        if let Some(version) = moved_to {
            version.clone_into(&mut status.resource_version);
        }
    }

    pub(crate) fn failed(&self, error: ReflectorError, counts: bool, now: Instant) {
        let last = Some(LastError { error, at: now });
        let former = {
            let mut status = self.status.lock();
            status.failures_in_a_row += u64::from(counts);
            std::mem::replace(&mut status.last_error, last)
        };
        drop(former);
    }

    /// One object or event was skipped.
    pub(crate) fn skipped(&self, kind: &ReflectorErrorKind) {
        let mut status = self.status.lock();
        match kind {
            ReflectorErrorKind::Item(_) => status.undecodable += 1,
            ReflectorErrorKind::UnknownEvent(_) => status.unknown_events += 1,
            _ => status.not_taken += 1,
        }
    }

    pub(crate) fn restarted(&self, cause: RestartCause) {
        self.status.lock().restart(cause);
    }

    /// Gives back how often it has.
    pub(crate) fn handler_panicked(&self) -> u64 {
        let mut status = self.status.lock();
        status.handler_panics += 1;
        status.handler_panics
    }
}

impl fmt::Debug for ReflectorMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.status.lock(), f)
    }
}
