//! Who is told what went wrong: client-go's `WatchErrorHandler`.

use std::sync::Arc;

use kubewire_listwatch::ErrorClass;
use kubewire_ratelimit::{Clock, FailureLog};
use parking_lot::Mutex;

use super::reflector_error::ReflectorError;

/// Is told of each failed list, each watch that could not be opened, and each object that was skipped; not of
/// watches that break later on, nor of what is tried again at once in another way (those are logged and counted).
///
/// It is called in the reflector's own task: return soon. A panic is caught, logged and counted.
pub type WatchErrorHandler = Arc<dyn Fn(&ReflectorError) + Send + Sync>;

/// The handler that logs, as client-go's does: an expired version is the usual course of things and logged at
/// debug level, everything else as an error. Of the errors of one class only some are logged, see [`FailureLog`], each
/// with the number of those left out.
///
/// It is what is done by default, where the log says too when it is over; make one to do more than that with each error.
pub fn log_errors(clock: Clock) -> WatchErrorHandler {
    // Guards the counts; nothing else happens under it.
    let failures = Mutex::new(FailureLog::new());
    Arc::new(move |error| log_error(error, &failures, &clock))
}

/// Logs an error of which a handler is to be told, where there is none.
pub(crate) fn log_error(error: &ReflectorError, failures: &Mutex<FailureLog<ErrorClass>>, clock: &Clock) {
    let class = error.class();
    if class == ErrorClass::Expired {
        tracing::debug!(%error, "the version is no longer available");
        return;
    }
    let verdict = failures.lock().failed(class, clock.now());
    if let Some(left_out) = verdict {
        tracing::error!(%error, left_out, "list and watch goes on after an error");
    }
}
