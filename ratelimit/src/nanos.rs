//! Durations as client-go computes them: whole nanoseconds, cut from doubles, 2⁶³−1 the longest.

use std::time::Duration;

/// The longest delay that a limiter gives: 2⁶³−1 nanoseconds, about 292 years. It stands for "never".
pub const LONGEST_DELAY: Duration = Duration::from_nanos(i64::MAX as u64);

/// `nanos` cut to whole nanoseconds, between zero and [`LONGEST_DELAY`]. Not a number is zero.
pub(crate) fn cut(nanos: f64) -> Duration {
    // A cast from a double to an integer saturates, and makes 0 of NaN.
    Duration::from_nanos((nanos as u64).min(i64::MAX as u64))
}

/// `duration` in nanoseconds as a double; exact below 2⁵³ ns (104 days), as in Go.
pub(crate) fn nanos(duration: Duration) -> f64 {
    duration.min(LONGEST_DELAY).as_nanos() as f64
}

/// `duration` times `factor`, cut; never longer than [`LONGEST_DELAY`].
pub(crate) fn times(duration: Duration, factor: f64) -> Duration {
    cut(nanos(duration) * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_cut_to_nanoseconds_and_saturate_at_both_ends() {
        for (nanos, want) in [
            (0.0, Duration::ZERO),
            (0.999, Duration::ZERO),
            (1.999, Duration::from_nanos(1)),
            (-5.0, Duration::ZERO),
            (f64::NAN, Duration::ZERO),
            (f64::INFINITY, LONGEST_DELAY),
            (9.3e18, LONGEST_DELAY),
        ] {
            assert_eq!(cut(nanos), want, "{nanos}");
        }
        assert_eq!(times(Duration::MAX, 2.0), LONGEST_DELAY);
    }
}
