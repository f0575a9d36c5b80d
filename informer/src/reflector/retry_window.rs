//! PURE: for how long errors of one class may be retried: client-go's `RetryWithDeadline`.

use std::time::{Duration, Instant};

/// A window that opens with the first error and closes a given time later. A quiet stretch between two errors
/// opens a new one.
#[derive(Clone, Debug)]
pub(crate) struct RetryWindow {
    max_duration: Duration,
    quiet: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl RetryWindow {
    /// A window of `max_duration` (zero: never retry) that starts over after `quiet` without an error.
    pub(crate) fn new(max_duration: Duration, quiet: Duration) -> Self {
        Self { max_duration, quiet, first: None, last: None }
    }

    /// An error of the class came.
    pub(crate) fn error(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now.duration_since(last) >= self.quiet) {
            self.first = None;
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Whether that error may be retried. The answer no closes the window: the next error opens a new one.
    pub(crate) fn may_retry(&mut self, now: Instant) -> bool {
        if self.max_duration.is_zero() {
            return false;
        }
        let within = self.first.is_some_and(|first| now.duration_since(first) <= self.max_duration);
        if !within {
            self.first = None;
            self.last = None;
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors at these seconds; the answers, in order.
    fn answers(max_seconds: u64, errors_at: &[u64]) -> Vec<bool> {
        let start = Instant::now();
        let mut window = RetryWindow::new(Duration::from_secs(max_seconds), Duration::from_secs(60));
        let ask = |&second: &u64| {
            let now = start + Duration::from_secs(second);
            window.error(now);
            window.may_retry(now)
        };
        errors_at.iter().map(ask).collect()
    }

    #[test]
    fn a_window_of_no_length_never_retries() {
        assert_eq!(answers(0, &[0, 1]), [false, false]);
    }

    #[test]
    fn errors_within_the_window_are_retried_and_later_ones_are_not() {
        assert_eq!(answers(10, &[0, 10, 11]), [true, true, false]);
    }

    #[test]
    fn a_refusal_closes_the_window_so_that_the_next_error_opens_a_new_one() {
        assert_eq!(answers(10, &[0, 11, 12]), [true, false, true]);
    }

    #[test]
    fn a_quiet_minute_opens_a_new_window() {
        assert_eq!(answers(10, &[0, 5, 65, 75]), [true, true, true, true]);
        assert_eq!(answers(10, &[0, 5, 64]), [true, true, false]);
    }
}
