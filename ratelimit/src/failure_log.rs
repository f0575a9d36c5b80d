//! PURE: which failures of many are worth a line in the log.

use std::time::{Duration, Instant};

/// The shortest time between two lines about one kind of failure; it doubles with each of them.
const FIRST_GAP: Duration = Duration::from_secs(10);

/// The longest.
const LONGEST_GAP: Duration = Duration::from_secs(600);

/// A failure so long after the recovery before begins a new stretch; one that comes sooner goes on with the gaps of the
/// old one, or something that fails and recovers all the time would write lines all the time.
const HEALTH: Duration = Duration::from_secs(60);

/// After so long without a failure the gaps start over, also where nobody told of a recovery.
const QUIET: Duration = LONGEST_GAP;

/// Says which failures are to be logged: of each kind the first one, then one after 10 s at the soonest, then one after
/// 20 s, and so on up to one in ten minutes, each with the number of those that were left out before it; and, once, that
/// it is over. So an outage of a day writes some 150 lines, however often something is tried in it, and one of a minute
/// four.
///
/// Pure: no lock, no clock, no log; it says what to log. It remembers each kind that it was told of, so kinds should be
/// few.
///
/// ```
/// use kubewire_ratelimit::FailureLog;
/// use std::time::{Duration, Instant};
///
/// let (mut log, start) = (FailureLog::new(), Instant::now());
/// let at = |seconds| start + Duration::from_secs(seconds);
/// assert_eq!(log.failed("refused", at(0)), Some(0)); // A line: nothing was left out before it.
/// assert_eq!(log.failed("refused", at(1)), None);
/// assert_eq!(log.failed("refused", at(12)), Some(1)); // A line, which says that one was left out.
/// let recovery = log.recovered(at(13)).expect("a last line");
/// assert_eq!((recovery.failures, recovery.left_out, recovery.lasted.as_secs()), (3, 1, 13));
/// assert_eq!(log.recovered(at(14)), None); // All was well already.
/// ```
#[derive(Clone, Debug)]
pub struct FailureLog<K> {
    kinds: Vec<(K, Pace)>,
    recoveries: Pace,
    /// The stretch of failures under way, if there is one.
    stretch: Option<Stretch>,
    /// When the last one was over.
    well_since: Option<Instant>,
    last_failure: Option<Instant>,
}

/// That a stretch of failures is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The failures of the stretch, of all kinds.
    pub failures: u64,
    /// How many of them were left out of the log.
    pub left_out: u64,
    /// How long it took, from the first failure on.
    pub lasted: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Instant,
    failures: u64,
    left_out: u64,
}

/// How often lines of one kind may come.
#[derive(Clone, Debug)]
struct Pace {
    last: Option<Instant>,
    gap: Duration,
    /// How many were left out since the last line.
    left_out: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { last: None, gap: FIRST_GAP, left_out: 0 }
    }
}

impl Pace {
    /// Whether a line may be written: if so, how many were left out before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if let Some(last) = self.last {
            if now.saturating_duration_since(last) < self.gap {
                self.left_out += 1;
                return None;
            }
            self.gap = (self.gap * 2).min(LONGEST_GAP);
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }

    /// The next line may be written at once, the one after it after the first gap.
    fn start_over(&mut self) {
        (self.last, self.gap) = (None, FIRST_GAP);
    }
}

impl<K: PartialEq> FailureLog<K> {
    /// Nothing has failed yet.
    pub const fn new() -> Self {
        let recoveries = Pace { last: None, gap: FIRST_GAP, left_out: 0 };
        Self { kinds: Vec::new(), recoveries, stretch: None, well_since: None, last_failure: None }
    }

    /// Something of this kind has failed. Whether that is to be logged: if so, how many of the kind were left out since
    /// the last one that was. O(kinds).
    #[must_use = "it says whether to log the failure"]
    pub fn failed(&mut self, kind: K, now: Instant) -> Option<u64> {
        let is_past =
            |moment: Option<Instant>, time| moment.is_some_and(|moment| now.saturating_duration_since(moment) >= time);
        let was_well = self.stretch.is_none() && is_past(self.well_since, HEALTH);
        if was_well || is_past(self.last_failure.replace(now), QUIET) {
            self.recoveries.start_over();
            self.kinds.iter_mut().for_each(|(_, pace)| pace.start_over());
        }
        let place = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, Pace::default()));
            self.kinds.len() - 1
        });
        let verdict = self.kinds[place].1.admit(now);
        let stretch = self.stretch.get_or_insert(Stretch { since: now, failures: 0, left_out: 0 });
        stretch.failures += 1;
        stretch.left_out += u64::from(verdict.is_none());
        verdict
    }

    /// What had failed works. Whether that is to be logged: not where nothing had failed, nor too soon after the last
    /// recovery; then the stretch goes on until it works again later.
    #[must_use = "it says whether to log the recovery"]
    pub fn recovered(&mut self, now: Instant) -> Option<Recovery> {
        let Stretch { since, failures, left_out } = self.stretch?;
        self.recoveries.admit(now)?;
        self.stretch = None;
        self.well_since = Some(now);
        self.kinds.iter_mut().for_each(|(_, pace)| pace.left_out = 0);
        Some(Recovery { failures, left_out, lasted: now.saturating_duration_since(since) })
    }

    /// How many failures of the stretch under way were left out of the log; zero where there is none. For a last line
    /// when the work ends.
    pub fn left_out(&self) -> u64 {
        self.stretch.map_or(0, |stretch| stretch.left_out)
    }

    /// Whether something has failed since the last recovery that was to be logged. Cheap: ask it before the time is read.
    pub fn is_failing(&self) -> bool {
        self.stretch.is_some()
    }
}

impl<K: PartialEq> Default for FailureLog<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log, and how many lines it writes in a stretch of failures that come so often.
    fn lines(log: &mut FailureLog<u8>, start: Instant, failures: u32, every: Duration) -> u32 {
        (0..failures).filter(|n| log.failed(0, start + every * *n).is_some()).count() as u32
    }

    #[test]
    fn each_kind_is_logged_at_once_and_then_after_gaps_that_double_with_the_number_left_out() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut log = FailureLog::new();
        let rows = [
            ("a", 0, Some(0)),
            ("b", 1, Some(0)),
            ("a", 1, None),
            ("a", 9, None),
            ("a", 10, Some(2)),
            ("a", 29, None),
            ("a", 30, Some(1)),
            ("a", 69, None),
            ("b", 69, Some(0)),
            ("a", 70, Some(1)),
        ];
        for (kind, second, want) in rows {
            assert_eq!(log.failed(kind, at(second)), want, "{kind} at {second}");
        }
        assert_eq!(log.left_out(), 4);
    }

    #[test]
    fn an_outage_writes_few_lines_however_many_failures_it_has_and_however_long_it_is() {
        for (failures, every_ms, at_most) in [(1000, 1, 1), (1000, 100, 4), (100_000, 1, 4), (1000, 45_000, 85)] {
            let (mut log, start) = (FailureLog::new(), Instant::now());
            let written = lines(&mut log, start, failures, Duration::from_millis(every_ms));
            assert!((1..=at_most).contains(&written), "{written} lines of {failures}, one in {every_ms} ms");
            let recovery = log.recovered(start + Duration::from_secs(1 << 20)).unwrap();
            assert_eq!((recovery.failures, recovery.left_out), (failures.into(), (failures - written).into()));
        }
    }

    #[test]
    fn a_recovery_is_logged_once_and_not_where_nothing_failed() {
        let (mut log, now) = (FailureLog::new(), Instant::now());
        assert_eq!(log.recovered(now), None);
        let _ = log.failed((), now);
        assert!(log.is_failing());
        assert_eq!(log.recovered(now).unwrap().failures, 1);
        assert!(!log.is_failing());
        assert_eq!(log.recovered(now), None);
    }

    #[test]
    fn what_fails_and_recovers_all_the_time_writes_few_lines_too() {
        let (mut log, start) = (FailureLog::new(), Instant::now());
        let mut written = 0;
        for second in 0..3600 {
            let now = start + Duration::from_secs(second);
            written += u32::from(log.failed((), now).is_some()) + u32::from(log.recovered(now).is_some());
        }
        assert!(written <= 24, "{written} lines in an hour");
    }

    #[test]
    fn ten_minutes_without_a_failure_start_the_gaps_over_though_nobody_told_of_a_recovery() {
        let start = Instant::now();
        let mut log = FailureLog::new();
        let _ = lines(&mut log, start, 300, Duration::from_secs(1));
        let later = start + Duration::from_secs(299) + QUIET;
        assert!(log.failed(0, later).is_some());
        assert!(log.failed(0, later + FIRST_GAP).is_some(), "the gap is the first one again");
    }

    #[test]
    fn a_minute_of_health_starts_the_gaps_over() {
        let start = Instant::now();
        let mut log = FailureLog::new();
        let _ = lines(&mut log, start, 3600, Duration::from_secs(1));
        let end = start + Duration::from_secs(3600);
        assert!(log.recovered(end).is_some());
        assert_eq!(log.failed(0, end + HEALTH), Some(0), "the first failure of another outage");
        assert!(log.recovered(end + HEALTH).is_some());
    }
}
