//! PURE. Which handler is due for a resync.

use std::time::{Duration, Instant};

/// A shorter period counts as this long.
pub(crate) const MIN_RESYNC_PERIOD: Duration = Duration::from_secs(1);

/// What a period that was asked for comes to: zero stays, anything below [`MIN_RESYNC_PERIOD`] is raised.
pub(crate) fn at_least_min(period: Duration) -> Duration {
    if period.is_zero() { period } else { period.max(MIN_RESYNC_PERIOD) }
}

/// When one handler is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResyncTimer {
    /// What the handler asked for; zero: never.
    asked: Duration,
    /// The moment it was added, or of the check that found it due last.
    last: Instant,
}

impl ResyncTimer {
    pub(crate) fn new(asked: Duration, now: Instant) -> Self {
        Self { asked: at_least_min(asked), last: now }
    }

    /// What the handler asked for, at least a second; zero: never.
    pub(crate) fn asked(&self) -> Duration {
        self.asked
    }

    /// A check, of those that are made each `check_period`. Says whether the handler is due, and if so begins
    /// its next period. While it is `behind` with the resync before, it is not.
    pub(crate) fn check(&mut self, check_period: Duration, behind: bool, now: Instant) -> bool {
        if self.asked.is_zero() || behind {
            return false;
        }
        let due = now.saturating_duration_since(self.last) >= self.asked.max(check_period);
        if due {
            self.last = now;
        }
        due
    }
}

/// How often checks are made: the shortest period there is, and none where the informer asks for none.
pub(crate) fn check_period(informer: Duration, handlers: impl Iterator<Item = Duration>) -> Duration {
    if informer.is_zero() {
        return Duration::ZERO;
    }
    let asked = handlers.filter(|period| !period.is_zero()).chain([informer]);
    asked.map(at_least_min).min().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_handler_is_due_by_its_own_period_rounded_up_to_the_checks() {
        let start = Instant::now();
        // Asked for in seconds; at which checks of the first nine, one a second, the handler is due.
        for (asked, want) in [(0, vec![]), (1, (1..10).collect()), (2, vec![2, 4, 6, 8]), (3, vec![3, 6, 9])] {
            let mut timer = ResyncTimer::new(SECOND * asked, start);
            let due: Vec<u32> = (1..10).filter(|&n| timer.check(SECOND, false, start + SECOND * n)).collect();
            assert_eq!(due, want, "asked for {asked} s");
        }
    }

    #[test]
    fn a_period_counts_from_the_moment_at_which_the_handler_was_added() {
        let start = Instant::now();
        let mut timer = ResyncTimer::new(SECOND * 2, start + Duration::from_millis(999));
        let due: Vec<u32> = (1..8).filter(|&n| timer.check(SECOND, false, start + SECOND * n)).collect();
        assert_eq!(due, [3, 5, 7]);
    }

    #[test]
    fn a_shorter_period_is_raised_to_the_checks_and_to_a_second() {
        let start = Instant::now();
        let mut timer = ResyncTimer::new(Duration::from_millis(1), start);
        assert_eq!(timer.asked(), SECOND);
        assert!(!timer.check(SECOND * 5, false, start + SECOND));
        assert!(timer.check(SECOND * 5, false, start + SECOND * 5));
    }

    #[test]
    fn a_handler_that_is_behind_is_due_when_it_has_caught_up() {
        let start = Instant::now();
        let mut timer = ResyncTimer::new(SECOND, start);
        assert!(!timer.check(SECOND, true, start + SECOND));
        assert!(timer.check(SECOND, false, start + SECOND * 2));
    }

    #[test]
    fn the_checks_come_by_the_shortest_period_unless_the_informer_asks_for_none() {
        let seconds = |list: &[u64]| list.iter().map(|&n| Duration::from_secs(n)).collect::<Vec<_>>();
        assert_eq!(check_period(SECOND * 10, seconds(&[0, 60, 7]).into_iter()), SECOND * 7);
        assert_eq!(check_period(SECOND * 10, seconds(&[]).into_iter()), SECOND * 10);
        assert_eq!(check_period(Duration::ZERO, seconds(&[3]).into_iter()), Duration::ZERO);
        assert_eq!(check_period(Duration::from_millis(3), seconds(&[]).into_iter()), SECOND);
    }
}
