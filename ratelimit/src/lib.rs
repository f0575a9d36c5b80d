//! How long to wait: retry delays by key, back-off, token buckets, loops that wait, and a clock that tests can move.
//!
//! The policies are those of client-go (`util/workqueue`'s limiters, `util/flowcontrol`, `util/wait`, `util/retry`), to
//! the nanosecond. Nothing here knows of Kubernetes, HTTP or a queue; a queue that waits as these say is
//! `kubewire-workqueue`.
//!
//! ```
//! use kubewire_ratelimit::{RateLimiter, default_item_based_rate_limiter};
//! use std::time::{Duration, Instant};
//!
//! let mut limiter = default_item_based_rate_limiter();
//! let now = Instant::now();
//! assert_eq!(limiter.when(&"invoice 17", now), Duration::from_millis(1)); // It failed once …
//! assert_eq!(limiter.when(&"invoice 17", now), Duration::from_millis(2)); // … and again.
//! assert_eq!(limiter.when(&"invoice 18", now), Duration::from_millis(1));
//! assert_eq!(limiter.num_requeues(&"invoice 17"), 2);
//! limiter.forget(&"invoice 17"); // It succeeded.
//! ```
//!
//! # What there is
//!
//! **Delays by key**, for who retries: [`RateLimiter`] is the trait, and
//! - [`ItemExponentialFailureRateLimiter`] doubles the delay with each failure of a key,
//! - [`ItemFastSlowRateLimiter`] tries quickly at first, then slowly,
//! - [`BucketRateLimiter`] is one token bucket for all keys,
//! - [`MaxOfRateLimiter`] takes the longest delay of several, [`WithMaxWaitRateLimiter`] bounds another one,
//! - [`default_controller_rate_limiter`] and [`default_item_based_rate_limiter`] are client-go's defaults,
//! - [`BackoffTable`] answers the other question, "may this key be tried now?", and forgets keys that stay away.
//!
//! **Rates**: [`TokenBucket`] is the arithmetic, with reservations; [`Throttle`] shares one among tasks and threads
//! and waits, or does not.
//!
//! **Growing delays**: [`Backoff`] is a walk of them, [`DelayWithReset`] starts it anew from time to time, [`retry`]
//! tries an operation along it.
//!
//! **Loops**: [`until`], [`jitter_until`], [`non_sliding_until`] (all made of [`Every`]) run something again and again;
//! [`poll_until`] asks until it is so.
//!
//! **Lines in a log**: [`FailureLog`] says which failures of an outage are worth one, and that it is over.
//!
//! **Time and chance**: [`Clock`] is the system's clock or a [`ManualClock`] that a test moves; [`Sleep`] waits for
//! one of its moments; [`Random`] is where jitter comes from, and a seed fixes it.
//!
//! # A test of a second takes no second
//!
//! ```
//! use kubewire_ratelimit::{ManualClock, Throttle};
//! use std::time::Duration;
//!
//! let time = ManualClock::new();
//! let throttle = Throttle::with_clock(1.0, 1, time.clock()); // One a second.
//! assert!(throttle.try_accept());
//! assert!(!throttle.try_accept());
//! time.advance(Duration::from_secs(1));
//! assert!(throttle.try_accept());
//! ```
//!
//! # Costs and caveats
//!
//! - Limiters, [`TokenBucket`], [`BackoffTable`], [`Backoff`] and [`DelayWithReset`] are pure: `&mut self`, no lock, no
//!   clock, no task; `now` comes in. [`Throttle`], the loops and [`Clock`] are the only ones that wait.
//! - A limiter by key keeps a map entry from a key's first failure until `forget`: forget keys that succeeded, and keys
//!   that are given up or gone. A limiter that empties gives its memory back.
//! - Waiting by the system's clock needs a tokio runtime with time; blocking waits and manual clocks need none.
//! - Those who wait for a [`Throttle`] are modelled in many orders by shuttle: `tests/shuttle.rs`.
//! - Delays are whole nanoseconds, cut from doubles as in Go; the longest is [`LONGEST_DELAY`]. Nothing overflows.
//!
//! # Other names than client-go's
//!
//! | here | there | why |
//! |---|---|---|
//! | [`Throttle`] | `flowcontrol.RateLimiter` | two things there have that name |
//! | [`BackoffTable`] | `flowcontrol.Backoff` | the same |
//! | [`ItemExponentialFailureRateLimiter`] … | `Typed…` | there is no untyped one |
//! | [`Every`], [`Poller`] | the parameters of `wait.BackoffUntil`, `wait.PollUntilContextTimeout` | named rather than counted |
#![forbid(unsafe_code)]

mod backoff;
mod backoff_table;
mod bucket;
pub mod clock;
mod coarse;
mod defaults;
mod delay_with_reset;
#[cfg(not(loom))]
mod every;
mod exponential;
mod failure_log;
mod failures;
mod fast_slow;
mod max_of;
mod max_wait;
mod nanos;
#[cfg(not(loom))]
mod poll_until;
mod random;
mod rate_limiter;
#[cfg(not(loom))]
mod retry;
mod sleep;
#[cfg(not(any(loom, shuttle)))]
mod sync;
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod sync;
#[cfg(not(loom))]
mod throttle;
mod token_bucket;

pub use backoff::{Backoff, with_jitter};
pub use backoff_table::BackoffTable;
pub use bucket::BucketRateLimiter;
pub use clock::{Clock, ManualClock};
pub use defaults::{default_controller_rate_limiter, default_item_based_rate_limiter};
pub use delay_with_reset::DelayWithReset;
#[cfg(not(loom))]
pub use every::{Every, jitter_until, non_sliding_until, until};
pub use exponential::ItemExponentialFailureRateLimiter;
pub use failure_log::{FailureLog, Recovery};
pub use fast_slow::ItemFastSlowRateLimiter;
pub use max_of::MaxOfRateLimiter;
pub use max_wait::WithMaxWaitRateLimiter;
pub use nanos::LONGEST_DELAY;
#[cfg(not(loom))]
pub use poll_until::{PollError, Poller, poll_until};
pub use random::Random;
pub use rate_limiter::RateLimiter;
#[cfg(not(loom))]
pub use retry::{retry, retry_with};
pub use sleep::Sleep;
#[cfg(not(loom))]
pub use throttle::{Throttle, WaitError};
pub use token_bucket::{Reservation, ReserveError, TokenBucket};
