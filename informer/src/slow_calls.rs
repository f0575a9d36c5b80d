//! PURE. When to look whether a handler has been at one notification for too long.

use std::time::{Duration, Instant};

/// The alarm of one informer. It is set when handlers are told of something, and goes off for good when none of them is
/// busy any more: an informer to which nothing happens has none.
///
/// A handler that stays busy from a moment on is looked at no later than the threshold after that moment, and then once
/// each threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowCalls {
    /// Zero: never.
    threshold: Duration,
    alarm: Option<Instant>,
}

/// How a handler is doing that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has been at one notification for as long as this, which is too long.
    Slow(Duration),
    Fine,
}

impl SlowCalls {
    pub(crate) fn new(threshold: Duration) -> Self {
        Self { threshold, alarm: None }
    }

    /// When to [`look`](Self::look).
    pub(crate) fn alarm(&self) -> Option<Instant> {
        self.alarm
    }

    /// Handlers were told of something.
    pub(crate) fn told(&mut self, now: Instant) {
        if !self.threshold.is_zero() && self.alarm.is_none() {
            self.alarm = now.checked_add(self.threshold);
        }
    }

    /// Whether it is time to look at all handlers. If so, each is to be looked at.
    pub(crate) fn rang(&mut self, now: Instant) -> bool {
        let due = self.alarm.is_some_and(|alarm| alarm <= now);
        if due {
            self.alarm = None;
        }
        due
    }

    /// One handler, since when it is busy.
    pub(crate) fn look(&mut self, busy_since: Option<Instant>, now: Instant) -> Look {
        let Some(since) = busy_since else { return Look::Fine };
        let busy = now.saturating_duration_since(since);
        let is_slow = busy >= self.threshold;
        let next = if is_slow { now } else { since }.checked_add(self.threshold);
        self.alarm = [self.alarm, next].into_iter().flatten().min();
        if is_slow { Look::Slow(busy) } else { Look::Fine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_handler_that_stays_busy_is_found_at_the_threshold_and_then_once_each_threshold() {
        let start = Instant::now();
        let at = |second| start + SECOND * second;
        let mut slow = SlowCalls::new(30 * SECOND);
        slow.told(at(0));
        slow.told(at(20));
        assert!(!slow.rang(at(29)));
        assert!(slow.rang(at(30)));
        // It was busy with other things before, and has begun with this one at 10.
        assert_eq!(slow.look(Some(at(10)), at(30)), Look::Fine);
        assert_eq!(slow.look(Some(at(25)), at(30)), Look::Fine, "another one");
        assert_eq!(slow.alarm(), Some(at(40)));
        assert!(slow.rang(at(40)));
        assert_eq!(slow.look(Some(at(10)), at(40)), Look::Slow(30 * SECOND));
        assert_eq!(slow.alarm(), Some(at(70)));
    }

    #[test]
    fn an_informer_whose_handlers_are_done_has_no_alarm() {
        let start = Instant::now();
        let mut slow = SlowCalls::new(SECOND);
        slow.told(start);
        assert!(slow.rang(start + SECOND));
        assert_eq!(slow.look(None, start + SECOND), Look::Fine);
        assert_eq!(slow.alarm(), None);
        assert!(!slow.rang(start + 100 * SECOND));
    }

    #[test]
    fn a_threshold_of_zero_never_looks() {
        let mut slow = SlowCalls::new(Duration::ZERO);
        slow.told(Instant::now());
        assert_eq!(slow.alarm(), None);
    }
}
