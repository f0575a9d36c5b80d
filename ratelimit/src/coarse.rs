//! The system's monotonic clock at a fifth of the price: as of the kernel's last tick.

use std::time::Instant;

/// The moment of the kernel's last tick: at most some milliseconds ago, never to come. Two of them do not go backwards.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn now() -> Instant {
    use std::sync::LazyLock;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    fn read(clock: ClockId) -> Duration {
        let time = clock_gettime(clock);
        // The monotonic clock counts from the boot of the machine, so it is not negative.
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
    }

    /// One moment as an instant and by the kernel's clock; the instant is read first, so that none is too late.
    static ANCHOR: LazyLock<(Instant, Duration)> = LazyLock::new(|| (Instant::now(), read(ClockId::Monotonic)));
    let (instant, time) = *ANCHOR;
    match read(ClockId::MonotonicCoarse).checked_sub(time) {
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
