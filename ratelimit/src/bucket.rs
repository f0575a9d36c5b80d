//! The limiter of all keys together.

use std::time::{Duration, Instant};

use crate::nanos::LONGEST_DELAY;
use crate::rate_limiter::RateLimiter;
use crate::token_bucket::TokenBucket;

/// One [`TokenBucket`] for all keys: each `when` reserves a token and answers how long it takes until that has filled;
/// as client-go's `TypedBucketRateLimiter`.
///
/// Reservations have no bound, and forgetting a key gives nothing back: after a burst of n failures the last one waits
/// for `n / qps`. Bound it by [`WithMaxWaitRateLimiter`](crate::WithMaxWaitRateLimiter) where that matters. Counts no
/// keys, so `num_requeues` is 0.
///
/// ```
/// use kubewire_ratelimit::{BucketRateLimiter, RateLimiter};
/// use std::time::{Duration, Instant};
///
/// let mut limiter = BucketRateLimiter::new(10.0, 2);
/// let now = Instant::now();
/// let delays: Vec<_> = (0..4).map(|key| limiter.when(&key, now).as_millis()).collect();
/// assert_eq!(delays, [0, 0, 100, 200]);
/// ```
#[derive(Clone, Debug)]
pub struct BucketRateLimiter {
    bucket: TokenBucket,
}

impl BucketRateLimiter {
    /// The limiter that lets `qps` keys pass each second, and `burst` at once.
    pub fn new(qps: f64, burst: u32) -> Self {
        Self { bucket: TokenBucket::new(qps, burst) }
    }
}

impl<K: ?Sized> RateLimiter<K> for BucketRateLimiter {
    /// [`LONGEST_DELAY`] where no token will ever come: burst 0, or the burst is spent and qps is 0.
    fn when(&mut self, _key: &K, now: Instant) -> Duration {
        self.bucket.reserve(now).map_or(LONGEST_DELAY, |reservation| reservation.delay())
    }

    fn forget(&mut self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_counts_and_forget_gives_nothing_back() {
        let mut limiter = BucketRateLimiter::new(1.0, 1);
        let now = Instant::now();
        assert_eq!(limiter.when("one", now), Duration::ZERO);
        limiter.forget("one");
        assert_eq!(limiter.num_requeues("one"), 0);
        assert_eq!(limiter.when("one", now), Duration::from_secs(1));
    }

    #[test]
    fn without_burst_or_rate_the_delay_is_the_longest_there_is() {
        let now = Instant::now();
        let delays = |qps, burst| {
            let mut limiter = BucketRateLimiter::new(qps, burst);
            [0; 3].map(|_: i32| limiter.when("one", now))
        };
        assert_eq!(delays(10.0, 0), [LONGEST_DELAY; 3]);
        assert_eq!(delays(0.0, 2), [Duration::ZERO, Duration::ZERO, LONGEST_DELAY]);
    }
}
