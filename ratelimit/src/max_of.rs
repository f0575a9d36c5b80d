//! The longest delay of several limiters.

use std::fmt;
use std::time::{Duration, Instant};

use crate::rate_limiter::RateLimiter;

/// The longest delay of its members; as client-go's `TypedMaxOfRateLimiter`.
///
/// Every member is asked each time, so a [bucket](crate::BucketRateLimiter) among them spends a token even where
/// another member's delay is longer. Without members the delay is zero.
///
/// ```
/// use kubewire_ratelimit::{BucketRateLimiter, ItemExponentialFailureRateLimiter, MaxOfRateLimiter, RateLimiter};
/// use std::time::{Duration, Instant};
///
/// let mut limiter = MaxOfRateLimiter::new()
///     .with(ItemExponentialFailureRateLimiter::new(Duration::from_millis(1), Duration::from_secs(1)))
///     .with(BucketRateLimiter::new(10.0, 1));
/// let now = Instant::now();
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(1));
/// assert_eq!(limiter.when(&"b", now), Duration::from_millis(100)); // The bucket's one token is spent.
/// ```
#[must_use = "a limiter does nothing by itself: give it to a queue"]
pub struct MaxOfRateLimiter<K: ?Sized> {
    members: Vec<Box<dyn RateLimiter<K> + Send>>,
}

impl<K: ?Sized> MaxOfRateLimiter<K> {
    /// The limiter without members.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// With `member` too.
    pub fn with(mut self, member: impl RateLimiter<K> + Send + 'static) -> Self {
        self.members.push(Box::new(member));
        self
    }
}

impl<K: ?Sized> RateLimiter<K> for MaxOfRateLimiter<K> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.members.iter_mut().map(|member| member.when(key, now)).max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        self.members.iter_mut().for_each(|member| member.forget(key));
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.members.iter().map(|member| member.num_requeues(key)).max().unwrap_or_default()
    }
}

impl<K: ?Sized> Default for MaxOfRateLimiter<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ?Sized> fmt::Debug for MaxOfRateLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOfRateLimiter").field("members", &self.members.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter};

    #[test]
    fn the_longest_delay_and_the_highest_count_win() {
        let mut limiter = MaxOfRateLimiter::new()
            .with(ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_secs(3), 3))
            .with(ItemExponentialFailureRateLimiter::new(Duration::from_millis(1), Duration::from_secs(1)));
        let now = Instant::now();
        let delays: Vec<_> = (0..5).map(|_| limiter.when(&"one", now).as_millis()).collect();
        assert_eq!(delays, [5, 5, 5, 3000, 3000]);
        assert_eq!(limiter.num_requeues(&"one"), 5);
        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);
        assert_eq!(limiter.when(&"one", now).as_millis(), 5);
    }

    #[test]
    fn a_bucket_spends_a_token_though_another_member_is_longer() {
        let mut limiter = MaxOfRateLimiter::new()
            .with(ItemFastSlowRateLimiter::new(Duration::from_millis(50), Duration::ZERO, 1))
            .with(BucketRateLimiter::new(10.0, 2));
        let now = Instant::now();
        let delays: Vec<_> = ["a", "b", "c"].iter().map(|key| limiter.when(key, now).as_millis()).collect();
        assert_eq!(delays, [50, 50, 100]);
    }

    #[test]
    fn without_members_there_is_no_delay() {
        let mut limiter = MaxOfRateLimiter::new();
        assert_eq!(limiter.when("one", Instant::now()), Duration::ZERO);
        assert_eq!(limiter.num_requeues("one"), 0);
    }
}
