//! PURE: how soon a watch that ended may be opened again.

use std::time::Duration;

/// A watch that lived less than this is a short one.
pub(crate) const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Short watches in a row that may be followed at once. Together with the gap below they keep a server that
/// closes each watch after one event under 20 requests a second.
const FREE_SHORT: u32 = 8;

/// The gap before the next watch after more than that.
const SHORT_GAP: Duration = Duration::from_millis(100);

/// Short watches in a row without one object that may be followed at once.
const FREE_FRUITLESS: u32 = 5;

/// Counts short watches. client-go opens the next one at once whatever came; a server, or a proxy before it, that
/// closes each watch at once makes it spin.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchPace {
    /// Short watches in a row.
    short: u32,
    /// Those of them, at the end of the row, that brought no object.
    fruitless: u32,
}

/// When to open the next watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At once.
    Now,
    /// After this time.
    After(Duration),
    /// After a back-off delay.
    BackOff,
}

impl WatchPace {
    /// A watch ended that had lived so long and had brought so many objects.
    pub(crate) fn ended(&mut self, age: Duration, objects: u64) -> Pace {
        if age >= SHORT_WATCH {
            *self = Self::default();
            return Pace::Now;
        }
        self.short = self.short.saturating_add(1);
        self.fruitless = if objects == 0 { self.fruitless.saturating_add(1) } else { 0 };
        if self.fruitless > FREE_FRUITLESS {
            Pace::BackOff
        } else if self.short > FREE_SHORT {
            Pace::After(SHORT_GAP)
        } else {
            Pace::Now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_watches_with_objects_are_followed_at_no_more_than_twenty_a_second() {
        let mut pace = WatchPace::default();
        let mut elapsed = Duration::ZERO;
        let mut in_first_second = 1;
        while elapsed < Duration::from_secs(1) {
            match pace.ended(Duration::ZERO, 1) {
                Pace::Now => {}
                Pace::After(gap) => elapsed += gap,
                Pace::BackOff => panic!("they had objects"),
            }
            in_first_second += 1;
        }
        assert!(in_first_second <= 20, "{in_first_second} requests in the first second");
    }

    #[test]
    fn short_watches_without_an_object_come_to_back_off() {
        let mut pace = WatchPace::default();
        let answers: Vec<Pace> = (0..7).map(|_| pace.ended(Duration::from_millis(999), 0)).collect();
        assert_eq!(answers[..5], [Pace::Now; 5]);
        assert_eq!(answers[5..], [Pace::BackOff; 2]);
    }

    #[test]
    fn eight_short_watches_with_objects_are_followed_at_once_and_the_ninth_after_a_gap() {
        let mut pace = WatchPace::default();
        let answers: Vec<Pace> = (0..10).map(|_| pace.ended(Duration::ZERO, 1)).collect();
        assert_eq!(answers[..8], [Pace::Now; 8]);
        assert_eq!(answers[8..], [Pace::After(SHORT_GAP); 2]);
    }

    #[test]
    fn a_watch_that_lived_long_enough_starts_the_count_over() {
        let mut pace = WatchPace::default();
        for _ in 0..100 {
            pace.ended(Duration::ZERO, 0);
        }
        assert_eq!(pace.ended(SHORT_WATCH, 0), Pace::Now);
        assert_eq!(pace.ended(Duration::ZERO, 0), Pace::Now);
    }
}
