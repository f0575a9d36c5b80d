//! The order of resource versions.

use std::cmp::Ordering;

/// Compares two resource versions as decimal numbers of any length. `None` if one of them is no such number, or is
/// empty.
///
/// The API promises that the versions of objects of one resource can be compared so; it is needed to overlay a
/// cache with one's own writes ([`MutationCache`](crate::MutationCache)), or to notice an answer out of the past.
///
/// ```
/// use std::cmp::Ordering;
/// use kubewire_indexer::compare_versions;
///
/// assert_eq!(compare_versions("9", "10"), Some(Ordering::Less));
/// assert_eq!(compare_versions("18446744073709551616", "10"), Some(Ordering::Greater));
/// assert_eq!(compare_versions("007", "7"), Some(Ordering::Equal));
/// assert_eq!(compare_versions("", "0"), None);
/// assert_eq!(compare_versions("a7", "7"), None);
/// ```
pub fn compare_versions(a: &str, b: &str) -> Option<Ordering> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(a) || !is_number(b) {
        return None;
    }
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}
