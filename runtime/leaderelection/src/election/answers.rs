//! PURE. What an answer of the lock means.

use std::time::Instant;

use kubewire_ratelimit::clock::after;

use super::phase::{Observed, Phase, Term};
use super::{Election, Notice, Outcome, RELEASE_PAUSE};
use crate::{EndCause, Record, Versioned};

impl Election {
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
}
