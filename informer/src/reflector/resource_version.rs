//! PURE: which of two versions is the older one.

use std::cmp::Ordering;

use kubewire_indexer::compare_versions;

/// Whether `version` is older than `other`: both are decimal numbers, of any length, and it is the smaller one.
/// Versions of any other shape cannot be compared, and none is older.
pub(crate) fn is_older(version: &str, other: &str) -> bool {
    compare_versions(version, other) == Some(Ordering::Less)
}

/// Whether a version is a decimal number, of any length: one that can be compared.
pub(crate) fn is_number(version: &str) -> bool {
    compare_versions(version, version).is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_number, is_older};

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
            assert!(!is_number(version) || !is_number(other), "{version:?} and {other:?}");
        }
    }
}
