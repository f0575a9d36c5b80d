//! Who is told what went wrong: client-go's `WatchErrorHandler`.

use std::sync::Arc;

use kubewire_listwatch::ErrorClass;
use kubewire_ratelimit::Clock;
use parking_lot::Mutex;

use super::log_limit::LogLimit;
use super::reflector_error::ReflectorError;

/// Is told of each failed list, each watch that could not be opened, and each object that was skipped; not of
/// watches that break later on, nor of what is tried again at once in another way (those are logged and counted).
///
/// It is called in the reflector's own task: return soon. A panic is caught, logged and counted.
pub type WatchErrorHandler = Arc<dyn Fn(&ReflectorError) + Send + Sync>;

/// The handler that logs, as client-go's does: an expired version is the usual course of things and logged at
/// debug level, everything else as an error. Of errors of one class no more than one in ten seconds is logged, with
/// the number of those left out.
pub fn log_errors(clock: Clock) -> WatchErrorHandler {
    // Guards the counts; nothing else happens under it.
    let limit = Mutex::new(LogLimit::default());
    Arc::new(move |error| {
        let class = error.class();
        if class == ErrorClass::Expired {
            tracing::debug!(%error, "the version is no longer available");
            return;
        }
        let verdict = limit.lock().admit(class, clock.now());
        if let Some(left_out) = verdict {
            tracing::error!(%error, left_out, "list and watch goes on after an error");
        }
    })
}
