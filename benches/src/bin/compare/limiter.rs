//! The limiters that the cases use.

use std::time::{Duration, Instant};

use kubewire_indexer::ObjectKey;
use kubewire_ratelimit::{ItemExponentialFailureRateLimiter, RateLimiter, default_controller_rate_limiter};

pub(crate) type Limiter = Box<dyn RateLimiter<ObjectKey> + Send>;

/// A name, and what makes the limiter.
type Named = (&'static str, fn() -> Limiter);

pub(crate) const LIMITERS: [Named; 2] =
    [("exponential", exponential), ("default", || Box::new(default_controller_rate_limiter()))];

/// 5 ms to 1,000 s.
pub(crate) fn exponential() -> Limiter {
    Box::new(ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000)))
}

/// As a queue asks: with the present moment.
pub(crate) fn when(limiter: &mut Limiter, key: &ObjectKey) {
    limiter.when(key, Instant::now());
}
