//! PURE: which events are written, when, and what becomes of those that are not.

mod series;
mod step;
#[cfg(test)]
mod validate;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::clock::after;
use kubewire_ratelimit::{Random, TokenBucket};

use self::series::{Flight, Series, Similar, State};
use crate::body::{Body, Likeness, SeriesKey, Source};
use crate::bounded_map::BoundedMap;
use crate::limits::event_name;
use crate::write::{Reporter, Sightings};
use crate::{EventsApi, Limits, RecorderStats, Write};

pub(crate) use self::step::{Outcome, Step};

/// Everything that a recorder knows: series of events, and which of them are to be written.
///
/// An event that equals another one is counted with it. [`next`](Self::next) says what to write; each series has one
/// request at a time, and what comes meanwhile is counted and written after it.
#[derive(Debug)]
pub(crate) struct Outbox {
    api: EventsApi,
    reporter: Reporter,
    limits: Limits,
    random: Random,
    series: BoundedMap<SeriesKey, Series>,
    similar: BoundedMap<Arc<Likeness>, Similar>,
    sources: BoundedMap<Source, TokenBucket>,
    /// What is to be written now, oldest first. A series stands here once at most.
    ready: VecDeque<SeriesKey>,
    /// What is to be written, or looked at, later; the number tells those of one moment apart.
    later: BTreeSet<(Instant, u64)>,
    delayed: HashMap<u64, SeriesKey>,
    in_flight: HashMap<u64, Flight>,
    /// Series that were never written and are to be: they have a bound of their own.
    unwritten: usize,
    next_id: u64,
    /// The last stamp of a name.
    stamp: u64,
    is_closed: bool,
    stats: RecorderStats,
}

impl Outbox {
    pub(crate) fn new(api: EventsApi, reporter: Reporter, limits: Limits, seed: u64) -> Self {
        // What is under way may not be forgotten, so it must have room.
        let len_max =
            limits.cache_len_max.max(limits.queue_len_max.saturating_add(limits.in_flight_max).saturating_add(1));
        Self {
            api,
            reporter,
            limits,
            random: Random::seeded(seed),
            series: BoundedMap::new(len_max),
            similar: BoundedMap::new(limits.cache_len_max),
            sources: BoundedMap::new(limits.cache_len_max),
            ready: VecDeque::new(),
            later: BTreeSet::new(),
            delayed: HashMap::new(),
            in_flight: HashMap::new(),
            unwritten: 0,
            next_id: 0,
            stamp: 0,
            is_closed: false,
            stats: RecorderStats::default(),
        }
    }

    pub(crate) fn stats(&self) -> RecorderStats {
        self.stats
    }

    /// Something has happened. Whether there is something new to be done.
    pub(crate) fn record(&mut self, body: Body, version: &str, now: Instant, wall: Timestamp) -> bool {
        self.stats.recorded += 1;
        if self.is_closed {
            self.stats.dropped_shut_down += 1;
            return false;
        }
        let (key, body) = self.series_of(body, now);
        if self.series.peek(&key).is_none_or(|series| series.written == 0 && series.state == State::Idle)
            && self.unwritten >= self.limits.queue_len_max
        {
            self.stats.dropped_queue_full += 1;
            return false;
        }
        let make = || Series {
            body: Arc::clone(&body),
            version: version.to_owned(),
            name: String::new(),
            seen: Sightings { count: 0, first: wall, last: wall },
            last_seen: now,
            written: 0,
            written_at: now,
            state: State::Idle,
            tries: 0,
            may_exist: false,
        };
        let (series, gone) =
            self.series.get_or_insert(&key, make, |series| matches!(series.state, State::Idle | State::Heartbeat(_)));
        series.seen.count = series.seen.count.saturating_add(1);
        series.seen.last = wall;
        series.last_seen = now;
        // The newest of many similar ones.
        series.body = body;
        let state = series.state;
        let is_paced = self.api == EventsApi::EventsV1 && series.written > 1;
        if let Some(gone) = gone {
            self.forget(gone.state);
            self.stats.lost_counts += u64::from(gone.seen.count - gone.written);
        }
        match state {
            // It goes with what is to be written anyway.
            State::Ready | State::Retry(_) | State::InFlight => false,
            State::Heartbeat(_) if is_paced => false,
            State::Idle | State::Heartbeat(_) if self.may_write(&key, now) => {
                self.forget(state);
                self.enqueue(key);
                true
            }
            State::Idle | State::Heartbeat(_) => {
                self.stats.filtered += 1;
                false
            }
        }
    }

    /// Which events it is counted with.
    fn series_of(&mut self, body: Body, now: Instant) -> (SeriesKey, Arc<Body>) {
        let limits = &self.limits;
        let likeness = Arc::new(body.likeness());
        let make = || Similar { notes: HashSet::new(), last_seen: now };
        let (similar, _) = self.similar.get_or_insert(&likeness, make, |_| true);
        if now.saturating_duration_since(similar.last_seen) > limits.similar_interval {
            similar.notes.clear();
        }
        similar.last_seen = now;
        let is_known = similar.notes.contains(&body.note);
        if !is_known && similar.notes.len() + 1 >= limits.similar_max {
            return (SeriesKey::Combined(likeness), Arc::new(body.combined()));
        }
        if !is_known {
            similar.notes.insert(body.note.clone());
        }
        let body = Arc::new(body);
        (SeriesKey::Exact(Arc::clone(&body)), body)
    }

    /// Whether the object may have another write, so that a flood stays small.
    fn may_write(&mut self, key: &SeriesKey, now: Instant) -> bool {
        let Some(series) = self.series.peek(key) else { return false };
        // The second one makes a series of it: two writes for each, and then heartbeats.
        if self.api == EventsApi::EventsV1 && series.written > 0 {
            return true;
        }
        let limits = &self.limits;
        let make = || TokenBucket::new(1.0 / limits.refill.as_secs_f64(), limits.burst);
        let (bucket, _) = self.sources.get_or_insert(&series.body.source(), make, |_| true);
        bucket.try_accept(now)
    }

    fn enqueue(&mut self, key: SeriesKey) {
        let Some(series) = self.series.peek_mut(&key) else { return };
        series.state = State::Ready;
        self.unwritten += usize::from(series.written == 0);
        self.ready.push_back(key);
    }

    /// What to do now.
    pub(crate) fn next(&mut self, now: Instant, wall: Timestamp) -> Step {
        self.wake(now);
        if self.in_flight.len() < self.limits.in_flight_max
            && let Some(key) = self.ready.pop_front()
            && let Some(step) = self.send(key, wall)
        {
            return step;
        }
        let is_drained = self.is_closed && self.ready.is_empty() && self.in_flight.is_empty() && self.later.is_empty();
        if is_drained { Step::Drained } else { Step::Wait(self.later.first().map(|(at, _)| *at)) }
    }

    fn send(&mut self, key: SeriesKey, wall: Timestamp) -> Option<Step> {
        let series = self.series.peek_mut(&key)?;
        let is_create = series.written == 0;
        if is_create && series.name.is_empty() {
            // Different also while the wall clock stands still.
            self.stamp = self.stamp.wrapping_add(1).max(u64::try_from(wall.as_nanosecond()).unwrap_or(0));
            series.name = event_name(&series.body.regarding.name, self.stamp);
        }
        let Series { body, version, name, seen, .. } = &*series;
        let write = if is_create {
            Write::create(self.api, name, body, version, *seen, &self.reporter)
        } else {
            Write::patch(self.api, name, body, *seen)
        };
        let count = series.seen.count;
        series.state = State::InFlight;
        let ticket = self.next_id;
        self.next_id += 1;
        self.in_flight.insert(ticket, Flight { key, count, is_create });
        Some(Step::Send { ticket, write })
    }

    /// Moves what is due.
    fn wake(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.later.first()
            && at <= now
        {
            self.later.pop_first();
            let Some(key) = self.delayed.remove(&id) else { continue };
            let Some(series) = self.series.peek_mut(&key) else { continue };
            let has_news = series.seen.count > series.written;
            let is_over = now >= after(series.last_seen, self.limits.series_finish);
            let is_stale = now >= after(series.written_at, self.limits.series_refresh);
            match series.state {
                State::Retry(_) => {
                    series.state = State::Ready;
                    self.ready.push_back(key);
                }
                _ if has_news && (is_over || is_stale) => {
                    series.state = State::Ready;
                    self.ready.push_back(key);
                }
                // The next one is a new event.
                _ if is_over && !has_news => {
                    self.series.remove(&key);
                }
                _ => self.heartbeat(key),
            }
        }
    }

    /// What came of a request.
    pub(crate) fn answer(&mut self, ticket: u64, outcome: Outcome, now: Instant) {
        let Some(Flight { key, count, is_create }) = self.in_flight.remove(&ticket) else { return };
        let Some(series) = self.series.peek_mut(&key) else { return };
        match outcome {
            Outcome::Done => self.done(key, count, is_create, now),
            // It is our own, from a try before; what that told was less, or the same.
            Outcome::AlreadyExists if series.may_exist => self.done(key, 1, is_create, now),
            Outcome::NotFound | Outcome::AlreadyExists => {
                series.written = 0;
                series.name.clear();
                series.may_exist = false;
                series.tries += 1;
                let gave_up = series.tries >= self.limits.tries_max;
                self.unwritten += usize::from(!is_create);
                if gave_up {
                    return self.give_up(&key, outcome);
                }
                series.state = State::Ready;
                self.ready.push_back(key);
            }
            Outcome::Refused => self.give_up(&key, outcome),
            Outcome::Failed => {
                series.may_exist |= is_create;
                series.tries += 1;
                if self.is_closed || series.tries >= self.limits.tries_max {
                    return self.give_up(&key, outcome);
                }
                let mut pause = self.limits.retry_pause;
                if series.tries == 1 {
                    // Recorders that lost their server at one moment do not come back at one moment.
                    pause = pause.mul_f64(self.random.fraction());
                }
                let at = self.delay(key.clone(), after(now, pause));
                if let Some(series) = self.series.peek_mut(&key) {
                    series.state = State::Retry(at);
                }
            }
        }
    }

    fn done(&mut self, key: SeriesKey, count: u32, is_create: bool, now: Instant) {
        self.unwritten -= usize::from(is_create);
        self.stats.created += u64::from(is_create);
        self.stats.patched += u64::from(!is_create);
        let Some(series) = self.series.peek_mut(&key) else { return };
        series.written = count;
        series.written_at = now;
        series.tries = 0;
        series.may_exist = false;
        let has_news = series.seen.count > count;
        let is_paced = self.api == EventsApi::EventsV1 && count > 1 && !self.is_closed;
        if has_news && !is_paced {
            series.state = State::Ready;
            self.ready.push_back(key);
        } else if self.is_closed || self.api == EventsApi::CoreV1 {
            series.state = State::Idle;
        } else {
            self.heartbeat(key);
        }
    }

    /// Has a series of the new API looked at when it is time: to count it up, or because it is over.
    fn heartbeat(&mut self, key: SeriesKey) {
        let Some(series) = self.series.peek(&key) else { return };
        let finish = after(series.last_seen, self.limits.series_finish);
        let refresh = after(series.written_at, self.limits.series_refresh);
        let due = if series.seen.count > series.written { finish.min(refresh) } else { finish };
        let at = self.delay(key.clone(), due);
        if let Some(series) = self.series.peek_mut(&key) {
            series.state = State::Heartbeat(at);
        }
    }

    fn delay(&mut self, key: SeriesKey, at: Instant) -> (Instant, u64) {
        let id = self.next_id;
        self.next_id += 1;
        self.later.insert((at, id));
        self.delayed.insert(id, key);
        (at, id)
    }

    /// A series is no longer looked at later.
    fn forget(&mut self, state: State) {
        if let State::Retry(at) | State::Heartbeat(at) = state {
            self.later.remove(&at);
            self.delayed.remove(&at.1);
        }
    }

    fn give_up(&mut self, key: &SeriesKey, outcome: Outcome) {
        let Some(series) = self.series.remove(key) else { return };
        self.unwritten -= usize::from(series.written == 0);
        let lost = u64::from(series.seen.count - series.written);
        match outcome {
            Outcome::Refused => self.stats.dropped_refused += lost,
            _ => self.stats.dropped_failed += lost,
        }
    }

    /// Takes nothing more. What the server does not know yet is written now, and tried once.
    pub(crate) fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.later.clear();
        self.delayed.clear();
        let keys: Vec<SeriesKey> = self.series.keys().cloned().collect();
        for key in keys {
            let Some(series) = self.series.peek_mut(&key) else { continue };
            let is_due = match series.state {
                State::Retry(_) => true,
                State::Heartbeat(_) => series.seen.count > series.written,
                // What is under way goes on; what was filtered is not for the server.
                State::Ready | State::InFlight | State::Idle => continue,
            };
            series.state = if is_due { State::Ready } else { State::Idle };
            if is_due {
                self.ready.push_back(key);
            }
        }
    }

    /// There is no more time: how many series are left that the server should have been told of.
    pub(crate) fn abandon(&mut self) -> usize {
        self.close();
        let left = self.ready.len() + self.in_flight.len();
        let keys: Vec<SeriesKey> =
            self.ready.drain(..).chain(self.in_flight.drain().map(|(_, flight)| flight.key)).collect();
        for key in keys {
            self.give_up(&key, Outcome::Failed);
        }
        left
    }
}

#[cfg(test)]
mod tests;
