//! What a caught panic says.

use std::any::Any;

/// The text of a panic, where it has one.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "the panic says nothing"
    }
}
