//! PURE: the rules of an election. What to ask the lock next, what an answer means, when leadership ends.
//!
//! Each moment comes in as `now`, by the local clock; the wall clock is only written down. The shell is
//! [`Elector`](crate::Elector).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::clock::after;
use kubewire_ratelimit::{Random, with_jitter};

use crate::record::whole_micros;
use crate::settings::JITTER;
use crate::{EndCause, Record, Settings, SettingsError, Versioned};

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
    /// What the wall clock showed when something was last written, and how often in a row.
    stamped: Option<Timestamp>,
    repeats: u64,
    stopping: Option<Stopping>,
    /// The holder that was told last.
    told: String,
    notices: Vec<Notice>,
}

#[derive(Clone, Debug)]
struct Observed {
    record: Record,
    version: String,
    /// When the record was first seen as it is, by the local clock.
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Term {
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Stopping {
    /// When the release is given up.
    deadline: Instant,
    /// The next pause between two tries.
    pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
struct Awaited {
    ticket: u64,
    /// The record of a write.
    record: Option<Record>,
    sent: Instant,
    give_up_at: Instant,
}

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an election does nothing by itself"]
pub enum Step {
    /// Send this request, now, and tell [`answer`](Election::answer) what came of it, with this ticket. A request
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
    /// It is over: see [`Notice::Ended`], if there was a term. [`contend`](Election::contend) begins anew.
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
    /// The term is over. At the latest at the end of its time: ask [`Election::is_leader`] for the moment.
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
            repeats: 0,
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

    /// What came of a request. One that is not awaited any more, or was answered before, is not heard.
    pub fn answer(&mut self, ticket: u64, outcome: Outcome, now: Instant) {
        let Some(awaited) = self.awaited.take_if(|awaited| awaited.ticket == ticket) else { return };
        // A process that stood still for a while hears of a success that is too old to count.
        let outcome = if now >= awaited.give_up_at { Outcome::Failed } else { outcome };
        if awaited.record.is_some() && outcome == Outcome::Failed {
            self.in_doubt = true;
        }
        match (outcome, awaited.record) {
            (Outcome::Found(found), None) => {
                self.observe(found, now);
                self.found(now);
            }
            (Outcome::NotFound, None) => self.not_found(now),
            (Outcome::Written(Versioned { version, .. }), Some(record)) => {
                self.written(record, version, awaited.sent, now);
            }
            (_, record) => self.failed(record.is_some(), now),
        }
    }

    /// The lock was read.
    fn found(&mut self, now: Instant) {
        let Some(Observed { record, since, .. }) = &self.observed else { return };
        let (is_mine, is_free) = (self.is_mine(record), record.holder.is_empty());
        if self.stopping.is_some() {
            if is_mine {
                self.phase = Phase::ReleaseWrite;
            } else {
                self.finish();
            }
            return;
        }
        let is_over = now >= after(*since, self.duration_of(record));
        let may_take = if self.settings.coordinated {
            is_mine && record.preferred_holder.is_empty() && !is_over
        } else {
            is_mine || is_free || is_over
        };
        let is_shared = record.holder == self.identity && !is_mine;
        let cause = match record.holder.as_str() {
            "" => EndCause::Emptied,
            _ if is_shared => EndCause::SharedIdentity,
            by => EndCause::Taken { by: by.to_owned() },
        };
        if is_shared {
            self.notices.push(Notice::SharedIdentity);
        }
        if self.term.is_some() && !is_mine {
            self.lose(cause);
        } else if may_take {
            self.phase = Phase::Update;
        } else {
            self.rest(now);
        }
    }

    /// There is no lock.
    fn not_found(&mut self, now: Instant) {
        self.in_doubt = false;
        if self.stopping.is_some() {
            self.finish();
        } else if self.settings.coordinated {
            self.rest(now);
        } else {
            self.phase = Phase::Create;
        }
    }

    /// A write of ours was taken.
    fn written(&mut self, record: Record, version: String, sent: Instant, now: Instant) {
        let (transitions, time) = (record.transitions, record.renew_time);
        // What is under way from before would replace a version that is gone.
        self.wrote.clear();
        self.wrote.push_back(time);
        self.observe(Versioned { record, version }, now);
        if self.phase == Phase::ReleaseWrite {
            self.notices.push(Notice::Released);
            return self.finish();
        }
        if self.stopping.is_some() {
            self.phase = Phase::ReleaseWrite;
            return;
        }
        let until = after(sent, self.settings.renew_deadline);
        let notice = match self.term {
            Some(_) => Notice::Renewed { until },
            None => Notice::Started { until, transitions },
        };
        self.notices.push(notice);
        self.term = Some(Term { until });
        self.rest(now);
    }

    /// A request came to nothing, or nobody knows.
    fn failed(&mut self, was_write: bool, now: Instant) {
        if let Some(stopping) = &mut self.stopping {
            // The first conflict costs no time: somebody changed a label.
            let pause = if was_write { stopping.pause } else { stopping.pause.max(RELEASE_PAUSE) };
            stopping.pause = (pause * 2).clamp(RELEASE_PAUSE, self.settings.retry_period);
            self.phase = Phase::ReleaseRest(after(now, pause).min(stopping.deadline));
        } else if self.phase == Phase::Fast {
            self.notices.push(Notice::SlowPath);
            self.phase = Phase::Read;
        } else {
            self.rest(now);
        }
    }

    /// Notes what the lock says, and since when: a change of the object around the record is none.
    fn observe(&mut self, seen: Versioned, now: Instant) {
        let Versioned { record, version } = seen;
        if std::mem::take(&mut self.is_new) && record.holder == self.identity {
            self.wrote.push_back(record.renew_time);
        }
        if self.told != record.holder {
            self.told.clone_from(&record.holder);
            self.notices.push(Notice::NewHolder(record.holder.clone()));
        }
        let since = match &self.observed {
            Some(before) if before.record == record => before.since,
            _ => now,
        };
        self.observed = Some(Observed { record, version, since });
        self.in_doubt = false;
    }

    /// Whether the lease says what this candidate wrote. (In a coordinated election others write our name.)
    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity && (self.settings.coordinated || self.wrote.contains(&record.renew_time))
    }

    fn duration_of(&self, record: &Record) -> Duration {
        match u64::try_from(record.lease_duration_seconds) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds),
            _ => self.settings.lease_duration,
        }
    }

    fn may_go_fast(&self) -> bool {
        let wanted = self.observed.as_ref().is_some_and(|observed| !observed.record.preferred_holder.is_empty());
        self.term.is_some() && !(self.settings.coordinated && wanted)
    }

    /// The time to write: another one each time, also while the wall clock stands still. Else a renewal would change
    /// nothing, and nobody would see it.
    fn stamp(&mut self, wall: Timestamp) -> Timestamp {
        let wall = whole_micros(wall);
        self.repeats = if self.stamped == Some(wall) { self.repeats + 1 } else { 0 };
        self.stamped = Some(wall);
        wall + Duration::from_micros(self.repeats)
    }

    /// The record that makes us the holder, or keeps us so.
    fn claim(&self, before: Option<&Record>, time: Timestamp) -> Record {
        let time = Some(time);
        let (acquire_time, transitions) = match before {
            Some(before) if self.is_mine(before) => (before.acquire_time, before.transitions),
            Some(before) => (time, before.transitions.saturating_add(1)),
            None => (time, 0),
        };
        Record {
            holder: self.identity.clone(),
            lease_duration_seconds: self.settings.lease_duration_seconds(),
            acquire_time,
            renew_time: time,
            transitions,
            preferred_holder: before.map(|before| before.preferred_holder.clone()).unwrap_or_default(),
        }
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
        let pause = if self.term.is_some() { period } else { with_jitter(period, JITTER, self.random.fraction()) };
        self.phase = Phase::Rest(after(now, pause));
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

    /// Panics where one of these does not hold:
    ///
    /// 1. A term is there only while the lease that was seen last is ours, and nobody stops.
    /// 2. What is done awaits nothing and has no term.
    /// 3. Tickets rise.
    /// 4. What is remembered of writes is bounded.
    #[doc(hidden)]
    pub fn validate(&self) {
        if self.term.is_some() {
            assert!(self.stopping.is_none(), "1: a term while stopping");
            let seen = self.observed.as_ref().expect("1: a term without a lease");
            assert!(self.is_mine(&seen.record), "1: a term with the lease of {:?}", seen.record);
        }
        if self.phase == Phase::Done {
            assert!(self.awaited.is_none() && self.term.is_none(), "2: done, and not done");
        }
        assert!(
            self.awaited.as_ref().is_none_or(|awaited| awaited.ticket < self.next_ticket),
            "3: a ticket of the future"
        );
        assert!(self.wrote.len() <= DOUBTS_MAX + 1, "4: {} writes", self.wrote.len());
    }
}

/// The lease that anybody may take at once. A duration of 0 would be refused by the API server.
fn released(record: &Record, wall: Timestamp) -> Record {
    let time = Some(whole_micros(wall));
    Record {
        holder: String::new(),
        lease_duration_seconds: 1,
        acquire_time: time,
        renew_time: time,
        transitions: record.transitions,
        preferred_holder: record.preferred_holder.clone(),
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
