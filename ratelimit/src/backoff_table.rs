//! Back-off by key, with expiry.

use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::backoff::with_jitter;
use crate::random::Random;

/// A doubling delay for each key, which expires when its key was left alone for long; as client-go's
/// `flowcontrol.Backoff`.
///
/// Unlike the limiters of a queue it tells whether a key *may be tried now*, and who never comes back is forgotten by
/// [`gc`](Self::gc). Pure: it holds no lock and reads no clock. One map entry for each key until then.
///
/// An `event` is the moment of what made the caller ask: mostly now, or when the thing to be retried last failed.
///
/// ```
/// use kubewire_ratelimit::BackoffTable;
/// use std::time::{Duration, Instant};
///
/// let mut backoff = BackoffTable::new(Duration::from_secs(1), Duration::from_secs(50));
/// let now = Instant::now();
/// backoff.next(&"pull image", now, now);
/// backoff.next(&"pull image", now, now);
/// assert_eq!(backoff.get(&"pull image"), Duration::from_secs(2));
/// assert!(backoff.is_in_back_off_since(&"pull image", now, now + Duration::from_millis(1999)));
/// assert!(!backoff.is_in_back_off_since(&"pull image", now, now + Duration::from_secs(2)));
/// backoff.reset(&"pull image");
/// assert_eq!(backoff.get(&"pull image"), Duration::ZERO);
/// ```
pub struct BackoffTable<K> {
    initial: Duration,
    max: Duration,
    jitter: f64,
    random: Random,
    has_expired: Option<HasExpired>,
    entries: HashMap<K, Entry>,
}

/// Given an event, the last update of a key and the longest delay: has the key's entry expired?
type HasExpired = Box<dyn Fn(Instant, Instant, Duration) -> bool + Send + Sync>;

#[derive(Clone, Copy)]
struct Entry {
    delay: Duration,
    last_update: Instant,
}

impl<K: Hash + Eq + Clone> BackoffTable<K> {
    /// Delays from `initial` up to `max`, without jitter; an entry expires when an event comes more than twice `max`
    /// after its last update.
    pub fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max, jitter: 0.0, random: Random::seeded(0), has_expired: None, entries: HashMap::new() }
    }

    /// Each delay grows by a random part, up to `jitter`, of the one before (the first one by a part of itself).
    #[must_use = "the table is moved into the answer"]
    pub fn with_jitter(mut self, jitter: f64, random: Random) -> Self {
        self.jitter = jitter;
        self.random = random;
        self
    }

    /// Entries expire when `has_expired(event, last_update, max)` says so.
    #[must_use = "the table is moved into the answer"]
    pub fn with_expiry(
        mut self,
        has_expired: impl Fn(Instant, Instant, Duration) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.has_expired = Some(Box::new(has_expired));
        self
    }

    /// Makes the delay of `key` longer: twice what it was, at most the longest; the initial one where the key has none
    /// or its entry has expired by `event`. The entry is updated now.
    pub fn next(&mut self, key: &K, event: Instant, now: Instant) {
        let known = self.entries.get(key).copied().filter(|entry| !self.expired(entry, event));
        let random = self.random.fraction();
        let delay = match known {
            Some(Entry { delay, .. }) => {
                let grown = with_jitter(delay, self.jitter, random).saturating_add(delay);
                grown.min(self.max)
            }
            None => with_jitter(self.initial, self.jitter, random),
        };
        *self.entries.entry_ref(key).or_insert(Entry { delay, last_update: now }) = Entry { delay, last_update: now };
    }

    /// The delay of `key`; zero where it has none. Looks at no expiry.
    pub fn get(&self, key: &K) -> Duration {
        self.entries.get(key).map_or(Duration::ZERO, |entry| entry.delay)
    }

    /// Whether less than the delay of `key` has passed from `event` until now. False where the entry has expired by the
    /// event.
    pub fn is_in_back_off_since(&self, key: &K, event: Instant, now: Instant) -> bool {
        self.live(key, event).is_some_and(|entry| is_less(event, now, entry.delay))
    }

    /// Whether less than the delay of `key` has passed from its last update until `event`. False where the entry has
    /// expired by the event.
    pub fn is_in_back_off_since_update(&self, key: &K, event: Instant) -> bool {
        self.live(key, event).is_some_and(|entry| is_less(entry.last_update, event, entry.delay))
    }

    /// Forgets `key`: what it was kept waiting for has succeeded.
    pub fn reset(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Forgets `key`, because it is gone. Does what [`reset`](Self::reset) does (`DeleteEntry` there).
    pub fn delete_entry(&mut self, key: &K) {
        self.reset(key);
    }

    /// Forgets all keys whose entries have expired by now. To be called from time to time; O(n).
    pub fn gc(&mut self, now: Instant) {
        let Self { entries, has_expired, max, .. } = self;
        entries.retain(|_, entry| !expired(has_expired.as_ref(), *max, entry, now));
        shrink_if_sparse(entries);
    }

    /// How many keys have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key has an entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn live(&self, key: &K, event: Instant) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !self.expired(entry, event))
    }

    fn expired(&self, entry: &Entry, event: Instant) -> bool {
        expired(self.has_expired.as_ref(), self.max, entry, event)
    }
}

fn shrink_if_sparse<K: Hash + Eq>(entries: &mut HashMap<K, Entry>) {
    if entries.len() < entries.capacity() / 4 {
        entries.shrink_to_fit();
    }
}

fn expired(has_expired: Option<&HasExpired>, max: Duration, entry: &Entry, event: Instant) -> bool {
    match has_expired {
        Some(has_expired) => has_expired(event, entry.last_update, max),
        None => event.saturating_duration_since(entry.last_update) > max.saturating_mul(2),
    }
}

/// Whether it is less than `delay` from `start` to `end`; so it is where the end comes before the start.
fn is_less(start: Instant, end: Instant, delay: Duration) -> bool {
    end.checked_duration_since(start).is_none_or(|passed| passed < delay)
}

impl<K> fmt::Debug for BackoffTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackoffTable")
            .field("initial", &self.initial)
            .field("max", &self.max)
            .field("jitter", &self.jitter)
            .field("len", &self.entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "id";

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn delay_doubles_up_to_the_longest_and_reset_clears_it() {
        let mut backoff = BackoffTable::new(secs(1), secs(50));
        let mut now = Instant::now();
        let mut seen = vec![backoff.get(&ID).as_secs()];
        for _ in 0..9 {
            now += secs(1);
            backoff.next(&ID, now, now);
            seen.push(backoff.get(&ID).as_secs());
        }
        assert_eq!(seen, [0, 1, 2, 4, 8, 16, 32, 50, 50, 50]);
        backoff.reset(&ID);
        assert_eq!(backoff.get(&ID), Duration::ZERO);
        backoff.next(&ID, now, now);
        backoff.delete_entry(&ID);
        assert!(backoff.is_empty());
    }

    #[test]
    fn a_key_is_out_of_back_off_when_its_expiry_has_come_and_stays_at_the_longest_until_then() {
        let max = secs(5);
        let mut backoff = BackoffTable::new(secs(1), max);
        let mut now = Instant::now();
        for _ in 0..4 {
            backoff.next(&ID, now, now);
        }
        assert_eq!(backoff.get(&ID), max);
        let last_update = now;
        assert!(!backoff.is_in_back_off_since(&ID, last_update, now + secs(11)));
        now += max + secs(1);
        assert!(!backoff.is_in_back_off_since(&ID, last_update, now));
        backoff.next(&ID, now, now);
        assert_eq!(backoff.get(&ID), max, "not expired: the high-water mark stays");
        now += secs(11);
        backoff.next(&ID, now, now);
        assert_eq!(backoff.get(&ID), secs(1), "expired: starts anew");
    }

    #[test]
    fn gc_forgets_what_was_left_alone_for_twice_the_longest_delay() {
        let max = secs(5);
        let mut backoff = BackoffTable::new(secs(1), max);
        let start = Instant::now();
        backoff.next(&ID, start, start);
        backoff.gc(start + max + secs(1));
        assert_eq!(backoff.len(), 1);
        assert!(!backoff.is_empty());
        backoff.gc(start + (max + secs(1)) * 2);
        assert_eq!(backoff.len(), 0);
    }

    #[test]
    fn gc_asks_the_callers_own_expiry() {
        let mut backoff = BackoffTable::new(secs(1), secs(50))
            .with_expiry(|event, last_update, _max| event.saturating_duration_since(last_update) > secs(200));
        let start = Instant::now();
        backoff.next(&ID, start, start);
        backoff.gc(start + secs(101));
        assert_eq!(backoff.len(), 1, "twice 50 s have passed, yet it is kept");
        backoff.gc(start + secs(602));
        assert!(backoff.is_empty());
    }

    /// client-go's table: (tick of 1 s, in back-off, delay), each delay lengthened when out of back-off.
    #[test]
    fn an_event_at_the_end_of_the_delay_is_out_of_back_off() {
        let mut backoff = BackoffTable::new(secs(1), secs(10));
        let start = Instant::now();
        let table = [
            (0, false, 0),
            (1, false, 1),
            (2, true, 2),
            (3, false, 2),
            (4, true, 4),
            (5, true, 4),
            (6, true, 4),
            (7, false, 4),
            (8, true, 8),
            (9, true, 8),
            (10, true, 8),
            (11, true, 8),
            (12, true, 8),
            (13, true, 8),
            (14, true, 8),
            (15, false, 8),
            (16, true, 10),
            (17, true, 10),
            (18, true, 10),
            (19, true, 10),
            (20, true, 10),
            (21, true, 10),
            (22, true, 10),
            (23, true, 10),
            (24, true, 10),
            (25, false, 10),
            (46, false, 10),
            (47, false, 1),
            (50, false, 2),
        ];
        for (tick, in_back_off, delay) in table {
            let now = start + secs(tick);
            assert_eq!(backoff.get(&ID), secs(delay), "tick {tick}");
            assert_eq!(backoff.is_in_back_off_since_update(&ID, now), in_back_off, "tick {tick}");
            if !in_back_off {
                backoff.next(&ID, now, now);
            }
        }
    }

    #[test]
    fn events_of_the_future_are_in_back_off_until_they_expire() {
        let mut backoff = BackoffTable::new(secs(1), secs(4));
        let now = Instant::now();
        backoff.next(&ID, now, now);
        assert!(backoff.is_in_back_off_since(&ID, now + secs(8), now));
        assert!(!backoff.is_in_back_off_since(&ID, now + secs(9), now), "more than twice the longest later");
        assert!(backoff.is_in_back_off_since_update(&ID, now - secs(1)));
    }

    #[test]
    fn jitter_prolongs_by_a_part_of_the_delay_before() {
        let (initial, max) = (Duration::from_millis(100), secs(60));
        let mut backoff = BackoffTable::new(initial, max).with_jitter(0.1, Random::seeded(3));
        let now = Instant::now();
        backoff.next(&ID, now, now);
        let mut before = backoff.get(&ID);
        assert!(before > initial && before <= initial.mul_f64(1.1), "{before:?}");
        for _ in 0..20 {
            backoff.next(&ID, now, now);
            let delay = backoff.get(&ID);
            assert!(delay == max || (delay > before * 2 && delay <= before.mul_f64(2.1)), "{before:?} {delay:?}");
            before = delay;
        }
        assert_eq!(before, max);
    }

    #[test]
    fn the_longest_durations_do_not_overflow() {
        let mut backoff = BackoffTable::new(Duration::MAX / 3, Duration::MAX);
        let now = Instant::now();
        for _ in 0..5 {
            backoff.next(&ID, now, now);
        }
        assert_eq!(backoff.get(&ID), Duration::MAX);
        assert!(backoff.is_in_back_off_since(&ID, now, now + secs(1)));
    }
}
