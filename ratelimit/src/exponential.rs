//! The limiter whose delay doubles with each failure of a key.

use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::failures::Failures;
use crate::nanos::{LONGEST_DELAY, cut, nanos};
use crate::rate_limiter::RateLimiter;

/// `base · 2ⁿ` for a key that failed n times before, at most `max`; as client-go's
/// `TypedItemExponentialFailureRateLimiter`.
///
/// Computed in doubles and cut to nanoseconds, as there; no count of failures overflows. Each key counts by itself and
/// takes a map entry until it is forgotten.
///
/// ```
/// use kubewire_ratelimit::{ItemExponentialFailureRateLimiter, RateLimiter};
/// use std::time::{Duration, Instant};
///
/// let mut limiter = ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
/// let now = Instant::now();
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(5));
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(10));
/// assert_eq!(limiter.num_requeues(&"a"), 2);
/// limiter.forget(&"a");
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct ItemExponentialFailureRateLimiter<K> {
    base: Duration,
    max: Duration,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> ItemExponentialFailureRateLimiter<K> {
    /// The limiter that begins with `base` and ends with `max` (which wins where it is the smaller one, and is at most
    /// [`LONGEST_DELAY`]).
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max: max.min(LONGEST_DELAY), failures: Failures::new() }
    }

    /// How many keys have failed and were not forgotten since.
    pub fn failing_keys(&self) -> usize {
        self.failures.len()
    }

    fn delay(&self, failures: u32) -> Duration {
        if self.base.is_zero() {
            return Duration::ZERO;
        }
        let doubled = nanos(self.base) * 2_f64.powi(failures.min(2000) as i32);
        // 2⁶³ as a double: what does not fit into Go's durations is the longest delay.
        if doubled >= i64::MAX as f64 { self.max } else { cut(doubled).min(self.max) }
    }
}

impl<K: Hash + Eq + Clone> RateLimiter<K> for ItemExponentialFailureRateLimiter<K> {
    fn when(&mut self, key: &K, _now: Instant) -> Duration {
        let failures = self.failures.count(key);
        self.delay(failures)
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(base: Duration, max: Duration, count: usize) -> Vec<Duration> {
        let mut limiter = ItemExponentialFailureRateLimiter::new(base, max);
        let now = Instant::now();
        (0..count).map(|_| limiter.when(&"one", now)).collect()
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn delay_doubles_with_each_failure_of_a_key_and_each_key_counts_by_itself() {
        let mut limiter = ItemExponentialFailureRateLimiter::new(ms(1), ms(1000));
        let now = Instant::now();
        let one: Vec<_> = (0..5).map(|_| limiter.when(&"one", now).as_millis()).collect();
        assert_eq!(one, [1, 2, 4, 8, 16]);
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!(limiter.num_requeues(&"two"), 0);
        assert_eq!([limiter.when(&"two", now), limiter.when(&"two", now)], [ms(1), ms(2)]);
        assert_eq!(limiter.num_requeues(&"two"), 2);
        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one", now), ms(1));
    }

    #[test]
    fn a_thousand_failures_do_not_overflow() {
        let seconds = delays(ms(1), Duration::from_secs(1000), 1001);
        assert_eq!(seconds[5], ms(32));
        assert_eq!(seconds[1000], Duration::from_secs(1000));
        let hours = delays(Duration::from_secs(60), Duration::from_secs(3_600_000), 1001);
        assert_eq!(hours[2], Duration::from_secs(240));
        assert_eq!(hours[1000], Duration::from_secs(3_600_000));
    }

    #[test]
    fn delay_never_falls_for_any_base_and_max() {
        let table = [
            // base, max, first, last
            (ms(5), Duration::from_secs(1000), ms(5), Duration::from_secs(1000)),
            (Duration::from_nanos(1), Duration::MAX, Duration::from_nanos(1), LONGEST_DELAY),
            (Duration::from_secs(1), LONGEST_DELAY, Duration::from_secs(1), LONGEST_DELAY),
            (Duration::MAX, LONGEST_DELAY, LONGEST_DELAY, LONGEST_DELAY),
            (Duration::from_secs(2), ms(10), ms(10), ms(10)),
            (Duration::from_nanos(3), Duration::from_nanos(1000), Duration::from_nanos(3), Duration::from_nanos(1000)),
            (ms(5), Duration::ZERO, Duration::ZERO, Duration::ZERO),
            (Duration::ZERO, ms(5), Duration::ZERO, Duration::ZERO),
        ];
        for (base, max, first, last) in table {
            let delays = delays(base, max, 1100);
            assert!(delays.is_sorted(), "{base:?} {max:?}");
            assert_eq!((delays[0], delays[1099]), (first, last), "{base:?} {max:?}");
        }
    }

    #[test]
    fn forgetting_a_million_keys_gives_their_memory_back() {
        let mut limiter = ItemExponentialFailureRateLimiter::new(ms(1), ms(1000));
        let now = Instant::now();
        for key in 0..1_000_000_u32 {
            limiter.when(&key, now);
        }
        assert_eq!(limiter.failing_keys(), 1_000_000);
        for key in 0..1_000_000_u32 {
            limiter.forget(&key);
        }
        assert_eq!(limiter.failing_keys(), 0);
        assert!(limiter.failures.capacity() <= 1024);
    }
}
