//! PURE: which of two versions is the older one.

/// Whether `version` is older than `other`: both are decimal numbers, of any length, and it is the smaller one.
/// Versions of any other shape cannot be compared, and none is older.
pub(crate) fn is_older(version: &str, other: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(version) || !digits(other) {
        return false;
    }
    let (version, other) = (version.trim_start_matches('0'), other.trim_start_matches('0'));
    (version.len(), version) < (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        let ascending =
            ["0", "9", "10", "18", "18446744073709551615", "18446744073709551616", "99999999999999999999999"];
        for (place, version) in ascending.iter().enumerate() {
            for (other_place, other) in ascending.iter().enumerate() {
                assert_eq!(is_older(version, other), place < other_place, "{version} and {other}");
            }
        }
        assert!(!is_older("007", "7") && !is_older("7", "007"));
    }

    #[test]
    fn versions_that_are_no_numbers_are_never_older() {
        for (version, other) in [("", "5"), ("5", ""), ("a", "b"), ("-1", "5"), ("1.5", "2"), ("0x1", "9")] {
            assert!(!is_older(version, other), "{version:?} and {other:?}");
        }
    }
}
