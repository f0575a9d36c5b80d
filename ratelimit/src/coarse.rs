//! The system's monotonic clock at a fifth of the price: as of the kernel's last tick.

use std::time::Instant;

/// The moment of the kernel's last tick: at most some milliseconds ago, never to come. Two of them do not go backwards.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn now() -> Instant {
    use std::cell::Cell;

    use rustix::time::{ClockId, Timespec, clock_gettime};

    thread_local! {
        /// The tick that this thread has read last, and the instant that it is.
        static LAST: Cell<Option<(Timespec, Instant)>> = const { Cell::new(None) };
    }
    let tick = clock_gettime(ClockId::MonotonicCoarse);
    match LAST.get() {
        Some((last, instant)) if last == tick => instant,
        _ => {
            let instant = instant_of(tick);
            LAST.set(Some((tick, instant)));
            instant
        }
    }
}

/// The instant of a tick, or a later one that has passed as well.
#[cfg(all(target_os = "linux", not(loom)))]
#[cold]
fn instant_of(tick: rustix::time::Timespec) -> Instant {
    use std::sync::LazyLock;
    use std::time::Duration;

    use rustix::time::{ClockId, Timespec, clock_gettime};

    // The monotonic clock counts from the boot of the machine, so it is not negative.
    let since_boot = |time: Timespec| Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32);
    /// One moment as an instant and by the kernel's clock; the instant is read first, so that none is too late.
    static ANCHOR: LazyLock<(Instant, Timespec)> =
        LazyLock::new(|| (Instant::now(), clock_gettime(ClockId::Monotonic)));
    let (instant, anchor) = *ANCHOR;
    match since_boot(tick).checked_sub(since_boot(anchor)) {
        Some(later) => instant + later,
        // The tick was before the anchor.
        None => instant,
    }
}

/// Elsewhere there is no such clock.
#[cfg(not(all(target_os = "linux", not(loom))))]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_moments_are_past_and_go_forward() {
        let mut last = now();
        for _ in 0..1000 {
            let coarse = now();
            assert!(last <= coarse && coarse <= Instant::now());
            last = coarse;
        }
    }
}
