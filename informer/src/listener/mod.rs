//! One handler's buffer and the task that calls it.

mod buffer;
mod listener;
mod net_change;

pub use buffer::Buffering;
pub(crate) use listener::{AnyListener, Listener};
