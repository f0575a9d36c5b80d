//! The retry policy of a queue: how long a key waits before it is tried again.

use std::time::{Duration, Instant};

/// How long a key waits before it is tried again; as client-go's `TypedRateLimiter`.
///
/// Pure: it holds no lock and reads no clock. A queue calls it under a lock of its own, so an implementation must not
/// block, nor call the queue.
///
/// Who asks [`when`](Self::when) for a key must call [`forget`](Self::forget) once the key's work is done, given up, or
/// no longer wanted (its object is gone): until then a limiter may keep an entry for the key.
///
/// ```
/// use kubewire_ratelimit::RateLimiter;
/// use std::time::{Duration, Instant};
///
/// /// Every key waits a second.
/// struct Constant;
///
/// impl<K> RateLimiter<K> for Constant {
///     fn when(&mut self, _key: &K, _now: Instant) -> Duration {
///         Duration::from_secs(1)
///     }
///     fn forget(&mut self, _key: &K) {}
///     fn num_requeues(&self, _key: &K) -> u32 {
///         0
///     }
/// }
/// ```
pub trait RateLimiter<K: ?Sized> {
    /// How long `key` has to wait from `now` on. Counts as a failure of the key.
    fn when(&mut self, key: &K, now: Instant) -> Duration;

    /// Lets go of what is known of `key`, whether it succeeded or was given up: its next failure is the first again.
    fn forget(&mut self, key: &K);

    /// How often [`when`](Self::when) was called for `key` since it was last forgotten.
    fn num_requeues(&self, key: &K) -> u32;
}

impl<K: ?Sized, L: RateLimiter<K> + ?Sized> RateLimiter<K> for Box<L> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        (**self).when(key, now)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        (**self).num_requeues(key)
    }
}
