//! PURE: the rules of a streaming list: a watch that sends the present objects first, and a mark at their end.

use std::time::{Duration, Instant};

use kubewire_listwatch::{RequestError, WatchOptions};

use super::listing::is_unavailable_version;
use super::watching::{Change, Heard, is_retried_as_it_is};
use super::{AfterReplace, AttemptKind, Machine, Note, State, Step, Wake, Weight};
use crate::reflector::reflector_error::ReflectorErrorKind;
use crate::reflector::reflector_status::RestartCause;
use crate::reflector::watch_pace::SHORT_WATCH;

/// How often in a row, within one cycle, a streaming list is asked for again without a pause.
const MAX_QUICK_STREAMS: u32 = 5;

/// For how long no streaming list is asked for after one that did not come to its end.
const STREAMING_PAUSE: Duration = Duration::from_secs(10 * 60);

impl Machine {
    pub(super) fn open_streaming_list(&mut self, now: Instant) -> Step {
        let version = if self.version_unavailable { String::new() } else { self.floor().to_owned() };
        let options = WatchOptions::streaming_list(version.clone(), self.watch_timeout());
        self.state = State::Opening(Self::attempt(AttemptKind::StreamingList, version, now));
        Step::Watch(options)
    }

    pub(super) fn streaming_list_opened(&mut self, now: Instant) -> Step {
        let deadline = self.end_mark_deadline(now);
        if let State::Opening(attempt) = &mut self.state {
            attempt.deadline = deadline;
        }
        self.read(now)
    }

    fn end_mark_deadline(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.rules.initial_events_timeout)
    }

    /// An event before the end mark. An object that is added is progress, and moves the deadline.
    pub(super) fn gathered(&mut self, now: Instant, change: Change, version: &str) -> Heard {
        let deadline = self.end_mark_deadline(now);
        let State::Reading(attempt) = &mut self.state else { return Heard::Gather };
        match change {
            Change::Added => attempt.deadline = deadline,
            Change::Bookmark { initial_events_end: true } => {
                let asked = std::mem::take(&mut attempt.version);
                return Heard::Complete(self.end_mark(now, &asked, version));
            }
            Change::Other | Change::Bookmark { .. } | Change::Nothing => {}
        }
        Heard::Gather
    }

    fn end_mark(&mut self, now: Instant, asked: &str, version: &str) -> Step {
        if version.is_empty() {
            return self.fall_back(now, ReflectorErrorKind::NoListVersion, false);
        }
        if let Some(kind) = self.refuse_older(Some(asked), version) {
            self.note_failure(kind, Weight::Told);
            return self.end_cycle(now, None);
        }
        self.take_in(version.to_owned(), AfterReplace::KeepStream)
    }

    /// The same stream goes on as the watch.
    pub(super) fn keep_stream(&mut self, now: Instant) -> Step {
        self.delay.healthy(now);
        self.state = State::Reading(Self::attempt(AttemptKind::Watch, self.position.last().to_owned(), now));
        Step::Read
    }

    /// The streaming list was refused, or ended by an error before its mark.
    pub(super) fn streaming_list_failed(&mut self, now: Instant, error: &RequestError, at_start: bool) -> Step {
        let kind = if at_start { ReflectorErrorKind::Watch } else { ReflectorErrorKind::Stream };
        let kind = kind(error.clone());
        if is_retried_as_it_is(error) {
            self.quick_streams = 0;
            self.note_failure(kind, if at_start { Weight::Told } else { Weight::Logged });
            return self.back_off(now, error.retry_after(), Wake::StreamingList);
        }
        if is_unavailable_version(error) {
            self.version_unavailable = true;
            return self.stream_again(now, kind);
        }
        self.fall_back(now, kind, false)
    }

    /// The stream ended before its mark. What it brought is worth nothing.
    pub(super) fn streaming_list_ended(&mut self, now: Instant, error: Option<&RequestError>) -> Step {
        let State::Reading(attempt) = &self.state else { return self.out_of_turn(now) };
        if now.duration_since(attempt.asked_at) < SHORT_WATCH && attempt.events == 0 {
            return self.fall_back(now, ReflectorErrorKind::VeryShortWatch, false);
        }
        let open = attempt.opened_at.map_or(Duration::ZERO, |opened_at| now.duration_since(opened_at));
        if open > self.rules.initial_events_timeout {
            return self.fall_back(now, ReflectorErrorKind::NoEndMark, true);
        }
        match error {
            Some(error) => self.stream_again(now, ReflectorErrorKind::Stream(error.clone())),
            None => self.stream_again(now, ReflectorErrorKind::NoEndMark),
        }
    }

    /// The time for the end mark is over.
    pub(super) fn no_end_mark(&mut self, now: Instant) -> Step {
        self.fall_back(now, ReflectorErrorKind::NoEndMark, true)
    }

    /// The same again, at once, but not for ever (unless that is wished).
    fn stream_again(&mut self, now: Instant, kind: ReflectorErrorKind) -> Step {
        if self.rules.pace_short_streams {
            if self.quick_streams >= MAX_QUICK_STREAMS {
                return self.fall_back(now, kind, true);
            }
            self.quick_streams += 1;
        }
        self.note_failure(kind, Weight::Bypassed);
        self.open_streaming_list(now)
    }

    /// An ordinary list, at once. A refusal counts for this time only, as in client-go: the next cycle tries a
    /// streaming list again. A stream that did not come to its end is `remembered` for a while.
    fn fall_back(&mut self, now: Instant, kind: ReflectorErrorKind, remembered: bool) -> Step {
        if remembered {
            self.no_streaming_before = now.checked_add(STREAMING_PAUSE);
        }
        self.note_failure(kind, Weight::Bypassed);
        self.notes.push(Note::Restart(RestartCause::FallBackToList));
        self.begin_list()
    }
}
