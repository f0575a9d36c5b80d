//! Calls of what is the user's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls it; a panic is reported and harms nobody else.
pub(crate) fn survive(what: &'static str, call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        tracing::error!(what, panic = message(&*panic), "a callback of the election panicked; the election goes on");
    }
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
