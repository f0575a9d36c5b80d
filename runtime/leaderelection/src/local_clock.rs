//! The local time of an elector, which goes on while the machine sleeps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kubewire_ratelimit::Clock;
use kubewire_ratelimit::clock::after;

/// A [`Clock`], and the time that it has missed because the machine was suspended.
///
/// On Linux (and other systems) the monotonic clock stands still while a machine is suspended; a leader would go on with
/// a lease that ran out long ago.
#[derive(Clone)]
pub(crate) struct LocalClock {
    clock: Clock,
    suspended: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// The longest that was read, in nanoseconds: so time never goes back.
    longest: Arc<AtomicU64>,
}

impl LocalClock {
    pub(crate) fn new(clock: Clock, suspended: Arc<dyn Fn() -> Duration + Send + Sync>) -> Self {
        Self { clock, suspended, longest: Arc::default() }
    }

    fn suspended(&self) -> Duration {
        let read = u64::try_from((self.suspended)().as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.longest.fetch_max(read, Ordering::AcqRel).max(read))
    }

    pub(crate) fn now(&self) -> Instant {
        after(self.clock.now(), self.suspended())
    }

    /// Waits until `due`, or longer by a time for which the machine is suspended meanwhile. Cancel-safe.
    pub(crate) async fn sleep_until(&self, due: Instant) {
        // A moment before the begin of time is past.
        if let Some(due) = due.checked_sub(self.suspended()) {
            self.clock.sleep_until(due).await;
        }
    }
}

impl fmt::Debug for LocalClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

/// How long the machine has been suspended since this was called, as far as the system tells.
pub(crate) fn suspended_since_now() -> Arc<dyn Fn() -> Duration + Send + Sync> {
    let begin = suspended_since_boot();
    Arc::new(move || suspended_since_boot().saturating_sub(begin))
}

#[cfg(target_os = "linux")]
fn suspended_since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    // In this order a pause between the two readings makes the difference smaller, not larger.
    let with_sleep = read(ClockId::Boottime);
    with_sleep.saturating_sub(read(ClockId::Monotonic))
}

#[cfg(not(target_os = "linux"))]
fn suspended_since_boot() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_awake_misses_no_time() {
        let suspended = suspended_since_now();
        assert!(suspended() < Duration::from_millis(500), "{:?}", suspended());
    }

    #[test]
    fn time_never_goes_back_though_the_reading_does() {
        let reading = Arc::new(AtomicU64::new(60));
        let read = Arc::clone(&reading);
        let time = kubewire_ratelimit::ManualClock::new();
        let clock = LocalClock::new(time.clock(), Arc::new(move || Duration::from_secs(read.load(Ordering::Relaxed))));
        let later = clock.now();
        assert_eq!(later, time.now() + Duration::from_secs(60));
        reading.store(59, Ordering::Relaxed);
        assert_eq!(clock.now(), later);
    }
}
