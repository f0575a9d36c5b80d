//! PURE. The records that a candidate writes, and those that it knows as its own.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::Election;
use crate::Record;
use crate::record::whole_micros;

impl Election {
    /// Whether the lease says what this candidate wrote. (In a coordinated election others write our name.)
    pub(super) fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity && (self.settings.coordinated || self.wrote.contains(&record.renew_time))
    }

    pub(super) fn duration_of(&self, record: &Record) -> Duration {
        match u64::try_from(record.lease_duration_seconds) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds),
            _ => self.settings.lease_duration,
        }
    }

    /// The time to write: another one than the last, also while the wall clock stands still, and where it comes to what
    /// was written meanwhile. Else a renewal would change nothing, and nobody would see it.
    pub(super) fn stamp(&mut self, wall: Timestamp) -> Timestamp {
        let wall = whole_micros(wall);
        let time = match self.stamped {
            Some((shown, written)) if wall == shown || wall == written => next_micro(written),
            _ => wall,
        };
        self.stamped = Some((wall, time));
        time
    }

    /// The record that makes us the holder, or keeps us so.
    pub(super) fn claim(&self, before: Option<&Record>, time: Timestamp) -> Record {
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
}

/// The next time that a lease can hold; at the end of time the one before.
fn next_micro(time: Timestamp) -> Timestamp {
    const MICRO: Duration = Duration::from_micros(1);
    time.checked_add(MICRO).or_else(|_| time.checked_sub(MICRO)).unwrap_or(time)
}

/// The lease that anybody may take at once. A duration of 0 would be refused by the API server.
pub(super) fn released(record: &Record, wall: Timestamp) -> Record {
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
