//! The limiter that tries a key quickly at first.

use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::failures::Failures;
use crate::rate_limiter::RateLimiter;

/// `fast` for the first `max_fast_attempts` failures of a key, then `slow`; as client-go's
/// `TypedItemFastSlowRateLimiter`.
///
/// Each key counts by itself and takes a map entry until it is forgotten.
///
/// ```
/// use kubewire_ratelimit::{ItemFastSlowRateLimiter, RateLimiter};
/// use std::time::{Duration, Instant};
///
/// let mut limiter = ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_secs(10), 3);
/// let delays: Vec<_> = (0..5).map(|_| limiter.when(&"a", Instant::now()).as_millis()).collect();
/// assert_eq!(delays, [5, 5, 5, 10_000, 10_000]);
/// ```
#[derive(Clone, Debug)]
pub struct ItemFastSlowRateLimiter<K> {
    fast: Duration,
    slow: Duration,
    max_fast_attempts: u32,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> ItemFastSlowRateLimiter<K> {
    /// The limiter that answers `fast` so many times, then `slow`.
    pub fn new(fast: Duration, slow: Duration, max_fast_attempts: u32) -> Self {
        Self { fast, slow, max_fast_attempts, failures: Failures::new() }
    }
}

impl<K: Hash + Eq + Clone> RateLimiter<K> for ItemFastSlowRateLimiter<K> {
    fn when(&mut self, key: &K, _now: Instant) -> Duration {
        if self.failures.count(key) < self.max_fast_attempts { self.fast } else { self.slow }
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

    #[test]
    fn first_attempts_are_fast_until_the_key_is_forgotten() {
        let mut limiter = ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_secs(10), 3);
        let now = Instant::now();
        let delays: Vec<_> = (0..5).map(|_| limiter.when(&"one", now).as_millis()).collect();
        assert_eq!(delays, [5, 5, 5, 10_000, 10_000]);
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!(limiter.when(&"two", now).as_millis(), 5);
        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one", now).as_millis(), 5);
    }

    #[test]
    fn without_fast_attempts_all_are_slow() {
        let mut limiter = ItemFastSlowRateLimiter::new(Duration::ZERO, Duration::from_secs(1), 0);
        assert_eq!(limiter.when(&"one", Instant::now()), Duration::from_secs(1));
    }
}
