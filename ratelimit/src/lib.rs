//! Under construction.
pub mod clock;

pub use clock::{Clock, ManualClock};
