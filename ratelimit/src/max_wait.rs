//! An upper bound for another limiter.

use std::time::{Duration, Instant};

use crate::rate_limiter::RateLimiter;

/// Another limiter's delay, at most `max`; as client-go's `TypedWithMaxWaitRateLimiter`. The other one counts on.
///
/// ```
/// use kubewire_ratelimit::{RateLimiter, WithMaxWaitRateLimiter, default_controller_rate_limiter};
/// use std::time::{Duration, Instant};
///
/// // The default limiter, but no key ever waits longer than a minute.
/// let mut limiter = WithMaxWaitRateLimiter::new(default_controller_rate_limiter(), Duration::from_secs(60));
/// let delays = (0..20).map(|_| limiter.when(&"a", Instant::now()));
/// assert_eq!(delays.max(), Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Debug)]
pub struct WithMaxWaitRateLimiter<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWaitRateLimiter<L> {
    /// `limiter`, but never longer than `max`.
    pub const fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<K: ?Sized, L: RateLimiter<K>> RateLimiter<K> for WithMaxWaitRateLimiter<L> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.limiter.when(key, now).min(self.max)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ItemFastSlowRateLimiter;

    #[test]
    fn longer_delays_are_cut_and_the_inner_limiter_counts_on() {
        let steps = ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000), 100);
        let mut limiter = WithMaxWaitRateLimiter::new(steps, Duration::from_secs(500));
        let now = Instant::now();
        for _ in 0..100 {
            assert_eq!(limiter.when(&"one", now), Duration::from_millis(5));
        }
        for _ in 0..100 {
            assert_eq!(limiter.when(&"one", now), Duration::from_secs(500));
        }
        assert_eq!(limiter.num_requeues(&"one"), 200);
        limiter.forget(&"one");
        assert_eq!(limiter.when(&"one", now), Duration::from_millis(5));
    }
}
