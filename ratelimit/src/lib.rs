//! Under construction.
mod backoff;
pub mod clock;
mod delay_with_reset;
mod nanos;
mod random;

pub use backoff::{Backoff, with_jitter};
pub use clock::{Clock, ManualClock};
pub use delay_with_reset::DelayWithReset;
pub use nanos::LONGEST_DELAY;
pub use random::Random;
