//! PURE. Ages as kubectl shows them: two units at most, and the finer one only while it tells something.

use jiff::{SignedDuration, Timestamp};

/// Such as `59s`, `3m20s`, `5h`, `2d4h`, `3y12d`; `<invalid>` for what lies more than a second in the future.
pub(super) fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 2 * 365 => format!("{days}d"),
        () if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// The age at `now` of a time as the API writes it; `<unknown>` where there is none.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.map(str::parse::<Timestamp>) {
        None => "<unknown>".to_owned(),
        Some(Err(_)) => "<invalid>".to_owned(),
        Some(Ok(time)) => human(now.duration_since(time)),
    }
}

fn two(coarse: i64, coarse_unit: &str, fine: i64, fine_unit: &str) -> String {
    if fine == 0 { format!("{coarse}{coarse_unit}") } else { format!("{coarse}{coarse_unit}{fine}{fine_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_units_at_most() {
        let (minute, hour, day) = (60, 3600, 86_400);
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (3 * minute + 20, "3m20s"),
            (10 * minute + 20, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 5 * minute, "3h5m"),
            (8 * hour + 5 * minute, "8h"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + 4 * hour, "2d4h"),
            (8 * day + 4 * hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (2 * 365 * day + 12 * day, "2y12d"),
            (9 * 365 * day + 12 * day, "9y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_missing_or_malformed_is_said_so() {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        assert_eq!(since(Some("2026-01-01T00:00:00Z"), now), "60s");
        assert_eq!(since(Some("2026-01-01T00:00:00.500000Z"), now), "59s");
        assert_eq!(since(None, now), "<unknown>");
        assert_eq!(since(Some("yesterday"), now), "<invalid>");
    }
}
