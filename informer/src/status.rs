//! How an informer and its handlers are doing.

use std::fmt;
use std::time::{Duration, Instant};

use crate::reflector::{LastError, ReflectorPhase, ReflectorStatus};

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

/// How an informer is doing, at one moment. It prints as one line for a log:
///
/// ```text
/// pods: backing off, failing 3 in a row; synced; 120 objects at 4711; heard 12s ago; listed 340s ago; restarts closed=2 unavailable=3;
/// last error 1s ago (unavailable): pods: cannot list: …; handlers: web backlog=7 busy=45s
/// ```
///
/// What is zero is left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// What is listed and watched.
    pub resource: String,
    /// When this was, by the informer's clock: what the [`Instant`]s in here are to be compared with.
    pub at: Instant,
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
    /// The last failure of a list or a watch, also after it has been overcome: its class, its text, and when it was.
    pub fn last_error(&self) -> Option<&LastError> {
        self.reflector.last_error.as_ref()
    }

    /// How long ago a list was last taken in. `None` before the first one.
    pub fn since_last_sync(&self) -> Option<Duration> {
        self.reflector.last_list.map(|last| self.at.saturating_duration_since(last))
    }

    fn fmt_phase(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.phase, self.reflector.phase, self.reflector.failures_in_a_row) {
            (InformerPhase::New, ..) => f.write_str("not started"),
            (InformerPhase::Stopped, ..) => f.write_str("stopped"),
            (InformerPhase::Running, phase, 0) => write!(f, "{phase}"),
            (InformerPhase::Running, phase, failures) => write!(f, "{phase}, failing {failures} in a row"),
        }
    }

    fn fmt_reflector(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reflector = &self.reflector;
        if !reflector.restarts.is_empty() {
            f.write_str("; restarts")?;
            reflector.restarts.iter().try_for_each(|(cause, count)| write!(f, " {cause}={count}"))?;
        }
        let skipped = [
            ("undecodable", reflector.undecodable),
            ("not taken", reflector.not_taken),
            ("unknown events", reflector.unknown_events),
            ("error handler panics", reflector.handler_panics),
        ];
        for (what, count) in skipped.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "; {count} {what}")?;
        }
        if let Some(LastError { error, at }) = &reflector.last_error {
            let ago = self.at.saturating_duration_since(*at).as_secs();
            write!(f, "; last error {ago}s ago ({}): {error}", error.class())?;
        }
        Ok(())
    }
}

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.resource)?;
        self.fmt_phase(f)?;
        f.write_str(if self.synced { "; synced" } else { "; not synced" })?;
        write!(f, "; {} objects", self.objects)?;
        if !self.applied_version.is_empty() {
            write!(f, " at {}", self.applied_version)?;
        }
        if self.pending > 0 {
            write!(f, ", {} pending", self.pending)?;
        }
        for (what, ago) in [("heard", self.staleness), ("listed", self.since_last_sync())] {
            if let Some(ago) = ago {
                write!(f, "; {what} {}s ago", ago.as_secs())?;
            }
        }
        self.fmt_reflector(f)?;
        if let Some(panic) = &self.panic {
            write!(f, "; {panic}")?;
        }
        for (place, handler) in self.handlers.iter().enumerate() {
            f.write_str(if place == 0 { "; handlers: " } else { ", " })?;
            write!(f, "{handler}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ReflectorPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Listing => "listing",
            Self::Watching => "watching",
            Self::BackingOff => "backing off",
            Self::Stopped => "stopped",
        })
    }
}

/// How one handler or subscription is doing, at one moment. It prints as part of a line: `web backlog=7 busy=45s`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its name: as given, else its type without paths; with a number where another handler has it already.
    pub name: String,
    /// How many notifications wait for it, or for how many keys where they are coalesced. Each is a few words and one
    /// or two handles of objects.
    pub backlog: usize,
    /// For how long it has been at one notification: of a handler, how long its present call has been running; of a
    /// subscription, how long ago it took the last one and did not come back. Where it has begun with nothing, for how
    /// long something waits. `None`: it has nothing to do.
    pub busy_for: Option<Duration>,
    /// How many calls have returned.
    pub told: u64,
    /// How many notifications were merged into others that waited.
    pub coalesced: u64,
    /// How many calls have panicked.
    pub panics: u64,
    /// Whether it is synced, see [`Registration::has_synced`](crate::Registration::has_synced).
    pub synced: bool,
}

impl fmt::Display for HandlerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} backlog={}", self.name, self.backlog)?;
        if let Some(busy) = self.busy_for {
            write!(f, " busy={}s", busy.as_secs())?;
        }
        for (what, count) in [("coalesced", self.coalesced), ("panics", self.panics)] {
            if count > 0 {
                write!(f, " {what}={count}")?;
            }
        }
        f.write_str(if self.synced { "" } else { " (not synced)" })
    }
}
