//! PURE: the rules of a watch.

use std::time::{Duration, Instant};

use kubewire_listwatch::{ErrorClass, RequestError, WatchOptions};

use super::{Attempt, AttemptKind, Machine, Note, State, Step, Wake, Weight};
use crate::reflector::reflector_error::ReflectorErrorKind;
use crate::reflector::reflector_status::RestartCause;
use crate::reflector::rules::watch_timeout;
use crate::reflector::watch_pace::{Pace, SHORT_WATCH};

/// So many watches in a row whose connection died before the answer are asked for again as they were.
const BROKEN_OPENS_MAX: u32 = 3;

/// The kind of an event, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `ADDED`.
    Added,
    /// `MODIFIED` or `DELETED`.
    Other,
    /// `BOOKMARK`.
    Bookmark {
        /// With the mark that ends the initial events.
        initial_events_end: bool,
    },
    /// No change that is known: it is skipped.
    Nothing,
}

/// What to do with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It belongs to a list that is not complete yet: gather it.
    Gather,
    /// Pass it on to the store.
    PassOn {
        /// Whether it has moved the version.
        moved: bool,
    },
    /// The streaming list ends here.
    Complete(Step),
}

impl Machine {
    pub(super) fn watch_timeout(&mut self) -> Duration {
        watch_timeout(self.rules.min_watch_timeout, self.random.fraction())
    }

    pub(super) fn attempt(kind: AttemptKind, version: String, now: Instant) -> Attempt {
        let adds_count = !matches!(version.as_str(), "" | "0");
        Attempt { kind, version, asked_at: now, opened_at: None, deadline: None, events: 0, objects: 0, adds_count }
    }

    pub(super) fn open_watch(&mut self, now: Instant) -> Step {
        let (version, timeout) = (self.position.last().to_owned(), self.watch_timeout());
        let options = WatchOptions::from_version(version.clone(), timeout);
        self.state = State::Opening(Self::attempt(AttemptKind::Watch, version, now));
        Step::Watch(options)
    }

    /// The watch request was answered.
    pub(crate) fn opened(&mut self, now: Instant, answer: Result<(), &RequestError>) -> Step {
        let State::Opening(attempt) = &mut self.state else { return self.out_of_turn(now) };
        match (answer, attempt.kind) {
            (Ok(()), AttemptKind::Watch) => {
                self.delay.healthy(now);
                self.broken_opens = 0;
                self.read(now)
            }
            (Ok(()), AttemptKind::StreamingList) => self.streaming_list_opened(now),
            (Err(error), AttemptKind::Watch) => self.watch_refused(now, error),
            (Err(error), AttemptKind::StreamingList) => self.streaming_list_failed(now, error, true),
        }
    }

    /// From opening to reading.
    pub(super) fn read(&mut self, now: Instant) -> Step {
        match std::mem::replace(&mut self.state, State::New) {
            State::Opening(attempt) => {
                self.state = State::Reading(Attempt { opened_at: Some(now), ..attempt });
                Step::Read
            }
            _ => self.out_of_turn(now),
        }
    }

    /// Nobody there, too busy, or a connection that died before the answer: everything seen so far is still right, so
    /// the same watch is asked for again. Anything else: a new list; also where no connection lives long enough for a
    /// few watches in a row, as lists may still get through.
    fn watch_refused(&mut self, now: Instant, error: &RequestError) -> Step {
        self.note_failure(ReflectorErrorKind::Watch(error.clone()), Weight::Told);
        if is_like_an_end(error) {
            self.broken_opens += 1;
        }
        let is_broken = is_like_an_end(error) && self.broken_opens <= BROKEN_OPENS_MAX;
        if is_broken || is_retried_as_it_is(error) {
            self.back_off(now, error.retry_after(), Wake::Watch)
        } else {
            self.broken_opens = 0;
            self.version_expired(error);
            self.end_cycle(now, error.retry_after())
        }
    }

    /// An event came, of an object (or a bookmark) at this version, empty where it is not known.
    pub(crate) fn event(&mut self, now: Instant, change: Change, version: &str) -> Heard {
        let State::Reading(attempt) = &mut self.state else { return Heard::PassOn { moved: false } };
        match change {
            Change::Added | Change::Other => {
                attempt.events += 1;
                attempt.objects += 1;
            }
            Change::Bookmark { .. } => attempt.events += 1,
            Change::Nothing => {}
        }
        if attempt.kind == AttemptKind::StreamingList {
            return self.gathered(now, change, version);
        }
        attempt.adds_count |= matches!(change, Change::Other | Change::Bookmark { .. });
        let moved = change != Change::Nothing && attempt.adds_count && !version.is_empty();
        if moved {
            self.position.event(version);
        }
        Heard::PassOn { moved }
    }

    /// The stream is over, by itself or by an error.
    pub(crate) fn closed(&mut self, now: Instant, error: Option<&RequestError>) -> Step {
        let State::Reading(attempt) = &self.state else { return self.out_of_turn(now) };
        let streaming = attempt.kind == AttemptKind::StreamingList;
        match (error.filter(|error| !is_like_an_end(error)), streaming) {
            (None, false) => self.watch_ended(now, error),
            (None, true) => self.streaming_list_ended(now, error),
            (Some(error), false) => self.watch_failed(now, error),
            (Some(error), true) => self.streaming_list_failed(now, error, false),
        }
    }

    fn watch_ended(&mut self, now: Instant, error: Option<&RequestError>) -> Step {
        let State::Reading(attempt) = &self.state else { return self.out_of_turn(now) };
        let (age, events, objects) = (now.duration_since(attempt.asked_at), attempt.events, attempt.objects);
        match error {
            Some(error) => self.note_failure(ReflectorErrorKind::Stream(error.clone()), Weight::Bypassed),
            None => self.notes.push(Note::Restart(RestartCause::Closed)),
        }
        if age < SHORT_WATCH && events == 0 {
            self.note_failure(ReflectorErrorKind::VeryShortWatch, Weight::Logged);
            return self.end_cycle(now, None);
        }
        self.watch_again(now, age, objects)
    }

    /// The next watch, from where the last one has come to, soon but not too soon.
    fn watch_again(&mut self, now: Instant, age: Duration, objects: u64) -> Step {
        let pace = self.pace.ended(age, objects);
        match if self.rules.pace_short_streams { pace } else { Pace::Now } {
            Pace::Now => self.open_watch(now),
            Pace::After(gap) => self.sleep(now, gap, Wake::Watch),
            Pace::BackOff => self.back_off(now, None, Wake::Watch),
        }
    }

    fn watch_failed(&mut self, now: Instant, error: &RequestError) -> Step {
        let State::Reading(attempt) = &self.state else { return self.out_of_turn(now) };
        let (age, objects) = (now.duration_since(attempt.asked_at), attempt.objects);
        let internal = error.class() == ErrorClass::Internal;
        if internal {
            self.internal_errors.error(now);
        }
        self.note_failure(ReflectorErrorKind::Stream(error.clone()), Weight::Logged);
        if error.class() == ErrorClass::Throttled {
            self.back_off(now, error.retry_after(), Wake::Watch)
        } else if internal && self.internal_errors.may_retry(now) {
            self.watch_again(now, age, objects)
        } else {
            self.version_expired(error);
            self.end_cycle(now, error.retry_after())
        }
    }
}

/// Whether the same request may be right a little later.
pub(super) fn is_retried_as_it_is(error: &RequestError) -> bool {
    matches!(error.class(), ErrorClass::ConnectionRefused | ErrorClass::Throttled)
}

/// Whether a stream that broke so has lost nothing but itself: what it brought so far was right, and the next one
/// begins there.
pub(super) fn is_like_an_end(error: &RequestError) -> bool {
    matches!(error.class(), ErrorClass::Truncated | ErrorClass::Transport | ErrorClass::TimedOut)
}
