//! The limiters that client-go gives by default.

use std::hash::Hash;
use std::time::Duration;

use crate::{BucketRateLimiter, ItemExponentialFailureRateLimiter, MaxOfRateLimiter};

/// The longest of 5 ms · 2ⁿ for each key (at most 1000 s) and one bucket of 10 a second with burst 100 for all keys;
/// as client-go's `DefaultTypedControllerRateLimiter`.
///
/// The bucket delays all keys together: in one burst of failures the 1100th key waits about 100 s for its first retry.
/// Where that is not wanted, take [`default_item_based_rate_limiter`], or bound the wait by
/// [`WithMaxWaitRateLimiter`](crate::WithMaxWaitRateLimiter).
pub fn default_controller_rate_limiter<K: Hash + Eq + Clone + Send + 'static>() -> MaxOfRateLimiter<K> {
    MaxOfRateLimiter::new()
        .with(ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000)))
        .with(BucketRateLimiter::new(10.0, 100))
}

/// 1 ms · 2ⁿ for each key, at most 1000 s; as client-go's `DefaultTypedItemBasedRateLimiter`.
pub fn default_item_based_rate_limiter<K: Hash + Eq + Clone>() -> ItemExponentialFailureRateLimiter<K> {
    ItemExponentialFailureRateLimiter::new(Duration::from_millis(1), Duration::from_secs(1000))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::RateLimiter;

    #[test]
    fn default_controller_limiter_doubles_to_655_seconds_and_then_stays_at_1000() {
        let mut limiter = default_controller_rate_limiter();
        let now = Instant::now();
        let delays: Vec<_> = (0..20).map(|_| limiter.when(&"one", now)).collect();
        for (n, delay) in delays[..18].iter().enumerate() {
            assert_eq!(*delay, Duration::from_millis(5 << n));
        }
        assert_eq!(delays[17], Duration::from_millis(655_360));
        assert_eq!(delays[18..], [Duration::from_secs(1000); 2]);
        assert_eq!(limiter.num_requeues(&"one"), 20);
    }

    #[test]
    fn default_controller_limiter_delays_a_burst_of_distinct_keys_by_its_bucket() {
        let mut limiter = default_controller_rate_limiter();
        let now = Instant::now();
        let delays: Vec<_> = (0..1100).map(|key| limiter.when(&key, now)).collect();
        assert_eq!(delays[..100], [Duration::from_millis(5); 100]);
        assert_eq!(delays[100].as_millis(), 100);
        assert_eq!(delays[1099].as_secs(), 100);
    }

    #[test]
    fn default_item_based_limiter_knows_no_other_keys() {
        let mut limiter = default_item_based_rate_limiter();
        let now = Instant::now();
        assert!((0..1000).all(|key| limiter.when(&key, now) == Duration::from_millis(1)));
        assert_eq!((0..25).map(|_| limiter.when(&0, now)).max(), Some(Duration::from_secs(1000)));
    }
}
