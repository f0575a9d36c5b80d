//! One handler's buffer and the task that calls it.

mod batch;
mod buffer;
mod handler_counts;
#[expect(clippy::module_inception, reason = "one noun a file: this one holds the type the module is named for")]
mod listener;
mod net_change;

pub use buffer::Buffering;
pub(crate) use listener::{AnyListener, Listener, let_go};
