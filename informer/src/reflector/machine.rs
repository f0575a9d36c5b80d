//! PURE: what a reflector asks for next, what an answer means, and when to wait: client-go's `Reflector` without
//! its requests, its store, its locks and its clock.
//!
//! Answers go in as method calls with the present time; the next [`Step`] comes out. While a step is under way
//! (a request, a read, a sleep) the driver minds [`alarm`](Machine::alarm). What is worth telling people
//! collects in [`notes`](Machine::take_notes).
//!
//! Invariants (checked by `validate` in tests):
//! 1. The position is that of the last list taken in, or of a later event; an empty version never replaces it.
//! 2. The resync timer runs exactly from the moment a list was taken in until the cycle ends.
//! 3. Between two steps that go out without a sleep, either something new was learnt (a page, a list, an open
//!    stream) or a bounded counter grew: no circle of requests goes round without a pause.
//! 4. `version_unavailable` holds from the moment a version was refused until a list succeeds.

use std::time::{Duration, Instant};

use kubewire_listwatch::{ListOptions, WatchOptions};
use kubewire_ratelimit::Random;

use super::failure_delay::FailureDelay;
use super::page_walk::PageWalk;
use super::position::Position;
use super::reflector_error::ReflectorErrorKind;
use super::reflector_status::RestartCause;
use super::retry_window::RetryWindow;
use super::rules::{MAX_RETRY_AFTER, Rules};
use super::watch_pace::WatchPace;

mod listing;
mod streaming;
mod watching;

#[cfg(test)]
mod tests;

pub(crate) use watching::{Change, Heard};

/// What the driver has to do next. The open stream, if there is one, is dropped before any step but
/// [`Read`](Self::Read) and [`Replace`](Self::Replace).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make this list request and answer with `listed`.
    List {
        /// What to ask for.
        options: ListOptions,
        /// Forget what has been gathered: this is the first page of a new list.
        anew: bool,
    },
    /// Open this watch and answer with `opened`. Where it is a streaming list, what has been gathered is to be
    /// forgotten.
    Watch(WatchOptions),
    /// Read the open stream and answer with `event` or `closed`.
    Read,
    /// Hand what has been gathered to the store, as a list at this version, and answer with `replaced`.
    Replace {
        /// The version of the list.
        resource_version: String,
    },
    /// Do nothing until the alarm rings.
    Sleep,
}

/// What the ring of an alarm means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rang {
    /// It was not yet time.
    Nothing,
    /// A resync check is due. What is under way goes on.
    Resync,
    /// What is under way (a sleep, or a read that waits for the end of the initial events) ends here.
    Step(Step),
}

/// Something to tell people.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// Something failed.
    Failed {
        /// What.
        kind: ReflectorErrorKind,
        /// How much it matters.
        weight: Weight,
    },
    /// A list or a watch is over, and why.
    Restart(RestartCause),
}

/// How much a failure matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A try has failed: the error handler is told, and the status counts a failure.
    Told,
    /// A watch that had worked ended by it: it is logged, and the status counts a failure.
    Logged,
    /// Something else is tried at once, and may well succeed: it is logged.
    Bypassed,
}

/// What the machine is doing, for the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    New,
    Listing,
    Watching,
    BackingOff,
}

pub(crate) struct Machine {
    rules: Rules,
    random: Random,
    delay: FailureDelay,
    pace: WatchPace,
    internal_errors: RetryWindow,

    /// Invariant 1.
    position: Position,
    /// Invariant 4.
    version_unavailable: bool,
    /// The version that the last list was asked for, if that was in pages and it answered with just that one; else empty.
    exact_version: String,
    /// The first list, at version 0, came in pages: this server answers it without a watch cache.
    paginated_result: bool,
    /// Lists in a row that failed by the version that was asked for: the answer was older, or the server does not
    /// understand it.
    version_failures: u32,
    /// Requests of this cycle's streaming list that were made again without a pause. Invariant 3.
    quick_streams: u32,
    /// Watches in a row whose connection died before the answer.
    broken_opens: u32,
    /// No streaming list before this moment: one did not come to its end.
    no_streaming_before: Option<Instant>,

    /// Invariant 2.
    resync_due: Option<Instant>,
    state: State,
    notes: Vec<Note>,
}

enum State {
    New,
    Listing(Listing),
    Opening(Attempt),
    Reading(Attempt),
    Replacing { resource_version: String, then: AfterReplace },
    Sleeping { until: Instant, then: Wake },
}

/// A list under way, retry at the empty version included.
struct Listing {
    walk: PageWalk,
    /// Whether the first try asked for version 0.
    from_zero: bool,
    /// Whether this is the retry without a version.
    retry: bool,
}

/// A watch that was asked for.
struct Attempt {
    kind: AttemptKind,
    /// The version asked for.
    version: String,
    /// When. A continued streaming list counts from the moment its list was taken in.
    asked_at: Instant,
    /// When the stream was opened, if it was.
    opened_at: Option<Instant>,
    /// When a streaming list without its end mark is given up.
    deadline: Option<Instant>,
    /// Events since it was asked for, bookmarks included.
    events: u64,
    /// Events with an object since then.
    objects: u64,
    /// Whether `ADDED` moves the version: not while a watch from nowhere sends the present objects, whose order
    /// means nothing.
    adds_count: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptKind {
    Watch,
    /// A streaming list before its end mark.
    StreamingList,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterReplace {
    OpenWatch,
    KeepStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Cycle,
    Watch,
    StreamingList,
}

/// An internal error that comes after so long without one opens a new window for retries.
const INTERNAL_ERROR_QUIET: Duration = Duration::from_secs(60);

impl Machine {
    pub(crate) fn new(rules: Rules, random: Random) -> Self {
        Self {
            delay: FailureDelay::new(rules.backoff),
            pace: WatchPace::default(),
            internal_errors: RetryWindow::new(rules.max_internal_error_retry, INTERNAL_ERROR_QUIET),
            rules,
            random,
            position: Position::default(),
            version_unavailable: false,
            exact_version: String::new(),
            paginated_result: false,
            version_failures: 0,
            quick_streams: 0,
            broken_opens: 0,
            no_streaming_before: None,
            resync_due: None,
            state: State::New,
            notes: Vec::new(),
        }
    }

    /// The first step. To be called once.
    pub(crate) fn start(&mut self, now: Instant) -> Step {
        self.begin_cycle(now)
    }

    /// The version that the reflector has come to; empty before the first list.
    pub(crate) fn last_version(&self) -> &str {
        self.position.last()
    }

    /// What was to be told since the last call. Does not allocate where there is nothing.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn activity(&self) -> Activity {
        match &self.state {
            State::New => Activity::New,
            State::Listing(_) | State::Replacing { .. } => Activity::Listing,
            State::Opening(attempt) | State::Reading(attempt) => match attempt.kind {
                AttemptKind::Watch => Activity::Watching,
                AttemptKind::StreamingList => Activity::Listing,
            },
            State::Sleeping { .. } => Activity::BackingOff,
        }
    }

    /// The next moment at which [`rang`](Self::rang) is to be called, whatever is under way then.
    pub(crate) fn alarm(&self) -> Option<Instant> {
        [self.resync_due, self.deadline()].into_iter().flatten().min()
    }

    /// The alarm may be due.
    pub(crate) fn rang(&mut self, now: Instant) -> Rang {
        let Some(due) = self.alarm().filter(|due| *due <= now) else { return Rang::Nothing };
        if self.resync_due == Some(due) {
            self.resync_due = self.next_resync(now);
            return Rang::Resync;
        }
        Rang::Step(match &self.state {
            State::Sleeping { then: Wake::Cycle, .. } => self.begin_cycle(now),
            State::Sleeping { then: Wake::Watch, .. } => self.open_watch(now),
            State::Sleeping { then: Wake::StreamingList, .. } => self.open_streaming_list(now),
            _ => self.no_end_mark(now),
        })
    }

    /// When the sleep is over, or the streaming list is to be given up.
    fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Sleeping { until, .. } => Some(*until),
            State::Reading(attempt) => attempt.deadline,
            _ => None,
        }
    }

    fn next_resync(&self, now: Instant) -> Option<Instant> {
        if self.rules.resync_period.is_zero() { None } else { now.checked_add(self.rules.resync_period) }
    }

    fn begin_cycle(&mut self, now: Instant) -> Step {
        self.quick_streams = 0;
        if self.rules.watch_list && self.no_streaming_before.is_none_or(|moment| moment <= now) {
            self.open_streaming_list(now)
        } else {
            self.begin_list()
        }
    }

    /// The cycle ends here: a new one after a back-off delay, not sooner than the server asked for.
    fn end_cycle(&mut self, now: Instant, retry_after: Option<Duration>) -> Step {
        self.resync_due = None;
        self.back_off(now, retry_after, Wake::Cycle)
    }

    fn back_off(&mut self, now: Instant, retry_after: Option<Duration>, then: Wake) -> Step {
        let own = self.delay.failed(now, self.random.fraction());
        let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        self.sleep(now, own.max(asked), then)
    }

    fn sleep(&mut self, now: Instant, delay: Duration, then: Wake) -> Step {
        // A delay beyond the end of time is as good as a very long one.
        let until = now.checked_add(delay).unwrap_or(now + MAX_RETRY_AFTER);
        self.state = State::Sleeping { until, then };
        Step::Sleep
    }

    fn note_failure(&mut self, kind: ReflectorErrorKind, weight: Weight) {
        self.notes.push(Note::Restart(RestartCause::of(&kind)));
        self.notes.push(Note::Failed { kind, weight });
    }
}
