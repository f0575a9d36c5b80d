//! PURE: the rules of an election. What to ask the lock next, what an answer means, when leadership ends.
//!
//! Each moment comes in as `now`, by the local clock; the wall clock is only written down. The shell is
//! [`Elector`](crate::Elector).

mod answers;
mod claim;
mod phase;
mod step;
mod validate;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::clock::after;
use kubewire_ratelimit::{Random, with_jitter};

use self::claim::released;
use self::phase::{Awaited, Observed, Phase, Stopping, Term};
use crate::settings::JITTER;
use crate::{EndCause, Record, Settings, SettingsError, Versioned};

pub use self::step::{Notice, Outcome, Request, Step};

/// So many renewals may be under way without a known outcome until the oldest is no longer known as ours.
const DOUBTS_MAX: usize = 32;

/// The first pause of a release that meets conflicts; it doubles.
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// One candidate's side of an election, for one lock: a plain value that says what to do and is told what came of it.
///
/// Ask [`next`](Self::next), do what it says, tell [`answer`](Self::answer), and ask again: also when a moment has come
/// that it named. [`take_notices`](Self::take_notices) says what has happened. No clock is read, so a test moves time
/// as it likes.
///
/// 1. A lease that somebody else holds is over when this candidate has seen it unchanged for as long as the lease says,
///    by its own clock. Nobody's times are compared with it.
/// 2. A term lasts until [`renew_deadline`](Settings::renew_deadline) after the moment *before* its last renewal was
///    sent. Whoever saw the renewal counts from later, and for longer.
/// 3. Every write names the version that it replaces, and a request is answered once or given up: what comes late or
///    twice is not heard.
/// 4. A lease is this candidate's if it wrote what the lease says (or found its own name there when it began).
///
/// ```
/// use k8s_openapi::jiff::Timestamp;
/// use kubewire_leaderelection::{Election, Outcome, Request, Settings, Step, Versioned};
/// use std::time::{Duration, Instant};
///
/// let mut election = Election::new("a", Settings::default(), 7)?;
/// let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
/// let Step::Send { ticket, request: Request::Get, .. } = election.next(now, wall) else { unreachable!() };
/// election.answer(ticket, Outcome::NotFound, now);
/// let Step::Send { ticket, request: Request::Create(record), .. } = election.next(now, wall) else { unreachable!() };
/// election.answer(ticket, Outcome::Written(Versioned { record, version: "1".into() }), now);
/// assert!(election.is_leader(now + Duration::from_millis(9_999)));
/// assert!(!election.is_leader(now + Duration::from_secs(10)), "not without a renewal");
/// # Ok::<_, kubewire_leaderelection::SettingsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    settings: Settings,
    random: Random,
    /// What the lock said last.
    observed: Option<Observed>,
    /// The renew times of the writes of ours that the lease may show, oldest first.
    wrote: VecDeque<Option<Timestamp>>,
    /// Whether nothing was seen yet: then our own name in the lease is that of a process before us.
    is_new: bool,
    /// Whether a write of ours had no known outcome, and nothing was read since.
    in_doubt: bool,
    term: Option<Term>,
    phase: Phase,
    awaited: Option<Awaited>,
    next_ticket: u64,
    /// What the wall clock showed when something was last written, and the time that was written then.
    stamped: Option<(Timestamp, Timestamp)>,
    stopping: Option<Stopping>,
    /// The holder that was told last.
    told: String,
    notices: Vec<Notice>,
}

impl Election {
    /// A candidate of this name. The seed is for the jitter of its tries.
    ///
    /// # Errors
    /// The settings are not [valid](Settings::validate), or the identity is empty.
    pub fn new(identity: impl Into<String>, settings: Settings, seed: u64) -> Result<Self, SettingsError> {
        let identity = identity.into();
        settings.validate()?;
        if identity.is_empty() {
            return Err(SettingsError::NoIdentity);
        }
        Ok(Self {
            identity,
            settings,
            random: Random::seeded(seed),
            observed: None,
            wrote: VecDeque::new(),
            is_new: true,
            in_doubt: false,
            term: None,
            phase: Phase::Read,
            awaited: None,
            next_ticket: 0,
            stamped: None,
            stopping: None,
            told: String::new(),
            notices: Vec::new(),
        })
    }

    /// Whether it may act at this moment.
    pub fn is_leader(&self, now: Instant) -> bool {
        self.term.is_some_and(|term| now < term.until)
    }

    /// Who holds the lease, as far as it was seen; empty where nobody does.
    pub fn holder(&self) -> &str {
        self.observed.as_ref().map_or("", |observed| &observed.record.holder)
    }

    /// The name that it writes into the lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The ticket of the request whose answer would be heard.
    pub fn awaits(&self) -> Option<u64> {
        self.awaited.as_ref().map(|awaited| awaited.ticket)
    }

    /// What has happened since the last call, in order.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Begins anew after it is [done](Step::Done), at once. What was seen of the lease still counts.
    pub fn contend(&mut self) {
        self.in_doubt |= self.awaited.take().is_some_and(|awaited| awaited.record.is_some());
        self.term = None;
        self.stopping = None;
        self.notices.clear();
        self.phase = Phase::Read;
    }

    /// Ends the term, if there is one, and with it the election. With `release` the lease is emptied first where
    /// [that is wanted](Settings::release_on_stop) and it is ours; without it others wait until it is over.
    pub fn stop(&mut self, now: Instant, release: bool) {
        if self.stopping.is_some() || self.phase == Phase::Done {
            return;
        }
        let led = self.end(EndCause::Stopped);
        let deadline = after(now, self.settings.renew_deadline);
        self.stopping = Some(Stopping { deadline, pause: Duration::ZERO });
        if !(release && self.settings.release_on_stop) {
            return self.finish();
        }
        if let Some(taking) = self.awaited.as_mut().filter(|awaited| awaited.record.is_some() && !led) {
            // It may be ours in a moment: its answer decides.
            taking.give_up_at = taking.give_up_at.min(deadline);
            self.phase = Phase::ReleaseRest(deadline);
        } else if led || self.in_doubt {
            self.awaited = None;
            self.phase = Phase::ReleaseRead;
        } else {
            self.finish();
        }
    }

    /// What to do now. `wall` is what is written down as the time.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> Step {
        loop {
            if self.term.is_some_and(|term| now >= term.until) {
                self.lose(EndCause::RenewDeadline);
            }
            if let Some(awaited) = &self.awaited {
                if now < awaited.give_up_at {
                    return self.wait(awaited.give_up_at);
                }
                let ticket = awaited.ticket;
                self.answer(ticket, Outcome::Failed, now);
                continue;
            }
            if self.stopping.is_some_and(|stopping| now >= stopping.deadline) {
                self.finish();
            }
            let writes = matches!(self.phase, Phase::Create | Phase::Fast | Phase::Update);
            let time = if writes { self.stamp(wall) } else { wall };
            let (request, record) = match self.phase {
                Phase::Done => return Step::Done,
                Phase::Rest(until) | Phase::ReleaseRest(until) if now < until => return self.wait(until),
                Phase::Rest(_) => {
                    self.phase = if self.may_go_fast() { Phase::Fast } else { Phase::Read };
                    continue;
                }
                Phase::ReleaseRest(_) => {
                    self.phase = Phase::ReleaseRead;
                    continue;
                }
                Phase::Read | Phase::ReleaseRead => (Request::Get, None),
                Phase::Create => {
                    // One that was deleted goes on counting, as far as it was seen.
                    let record = self.claim(self.observed.as_ref().map(|observed| &observed.record), time);
                    (Request::Create(record.clone()), Some(record))
                }
                Phase::Fast | Phase::Update | Phase::ReleaseWrite => {
                    // Each of these comes after something was seen.
                    let Some(Observed { record, version, .. }) = &self.observed else {
                        self.phase = Phase::Read;
                        continue;
                    };
                    let version = version.clone();
                    let record = match self.phase {
                        Phase::ReleaseWrite => released(record, wall),
                        _ => self.claim(Some(record), time),
                    };
                    (Request::Update(Versioned { record: record.clone(), version }), Some(record))
                }
            };
            return self.send(request, record, now);
        }
    }

    fn may_go_fast(&self) -> bool {
        let wanted = self.observed.as_ref().is_some_and(|observed| !observed.record.preferred_holder.is_empty());
        self.term.is_some() && !(self.settings.coordinated && wanted)
    }

    fn send(&mut self, request: Request, record: Option<Record>, now: Instant) -> Step {
        if let Some(record) = &record {
            if self.wrote.len() == DOUBTS_MAX {
                // The first is the one that was confirmed.
                self.wrote.remove(1);
            }
            self.wrote.push_back(record.renew_time);
        }
        let longest = self.settings.request_timeout().min(self.settings.renew_deadline);
        let mut give_up_at = after(now, longest);
        if let Some(stopping) = self.stopping {
            give_up_at = give_up_at.min(stopping.deadline);
        }
        if let Some(term) = self.term {
            give_up_at = give_up_at.min(term.until);
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.awaited = Some(Awaited { ticket, record, sent: now, give_up_at });
        Step::Send { ticket, request, give_up_at }
    }

    fn wait(&self, until: Instant) -> Step {
        Step::Wait(self.term.map_or(until, |term| until.min(term.until)))
    }

    fn rest(&mut self, now: Instant) {
        let period = self.settings.retry_period;
        let until = match self.term {
            Some(_) => after(now, period),
            None => {
                let until = after(now, with_jitter(period, JITTER, self.random.fraction()));
                self.lease_end().filter(|end| now < *end).map_or(until, |end| until.min(end))
            }
        };
        self.phase = Phase::Rest(until);
    }

    /// When the lease that was seen last may be taken, unless it changes.
    fn lease_end(&self) -> Option<Instant> {
        let seen = self.observed.as_ref().filter(|_| !self.settings.coordinated)?;
        Some(after(seen.since, self.duration_of(&seen.record)))
    }

    /// Ends the term, and the election with it.
    fn lose(&mut self, cause: EndCause) {
        self.end(cause);
        self.finish();
    }

    /// Ends the term; whether there was one.
    fn end(&mut self, cause: EndCause) -> bool {
        let led = self.term.take().is_some();
        if led {
            self.notices.push(Notice::Ended(cause));
        }
        led
    }

    fn finish(&mut self) {
        self.awaited = None;
        self.phase = Phase::Done;
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
