//! PURE: how far a reflector has come, and how far it has ever been.

use super::resource_version::{is_number, is_older};

/// The version that the next watch begins at, and the newest one seen since the last list that was taken in.
///
/// Mostly they are the same. Where a bookmark or an event tells an older version, the watch follows it, so that what
/// came after it is told again; but no list is asked for below the newest version, or a server that lags behind could
/// be believed later, and bring back what was deleted.
///
/// Invariants (checked by `validate` in tests):
/// 1. `newest` is empty or a decimal number: versions of another shape cannot be compared, and hide no number.
/// 2. `last` is not older than `newest` right after a list, which counts whatever was before.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// Empty before the first list.
    last: String,
    /// Empty while no version was a number.
    newest: String,
}

impl Position {
    /// What the last list or event said.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    /// What a list must not be older than.
    pub(crate) fn floor(&self) -> &str {
        if self.newest.is_empty() { &self.last } else { &self.newest }
    }

    /// A list at this version was taken in.
    pub(crate) fn list(&mut self, version: &str) {
        self.newest.clear();
        self.event(version);
    }

    /// An event or a bookmark at this version came.
    pub(crate) fn event(&mut self, version: &str) {
        self.last.clear();
        self.last.push_str(version);
        if is_number(version) && (self.newest.is_empty() || is_older(&self.newest, version)) {
            self.newest.clear();
            self.newest.push_str(version);
        }
    }

    #[cfg(test)]
    pub(super) fn validate(&self) {
        assert!(self.newest.is_empty() || is_number(&self.newest), "1: the newest version is a number");
        assert!(!is_older(self.floor(), &self.last), "1: nothing seen is newer than the newest");
    }
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn the_watch_follows_what_was_said_last_and_the_list_what_was_newest() {
        // list, events, where the next watch begins, what a list must not be older than
        let table: [(&str, &[&str], &str, &str); 10] = [
            ("10", &[], "10", "10"),
            ("10", &["11", "12"], "12", "12"),
            ("10", &["15", "9"], "9", "15"),
            ("10", &["15", "9", "12"], "12", "15"),
            ("10", &["15", "9", "16"], "16", "16"),
            ("10", &["18446744073709551616", "11"], "11", "18446744073709551616"),
            ("10", &["opaque"], "opaque", "10"),
            ("10", &["opaque", "9"], "9", "10"),
            ("first", &["second"], "second", "second"),
            ("first", &["7", "second"], "second", "7"),
        ];
        for (list, events, last, floor) in table {
            let mut position = Position::default();
            position.list(list);
            for event in events {
                position.event(event);
                position.validate();
            }
            assert_eq!((position.last(), position.floor()), (last, floor), "{list} {events:?}");
        }
    }

    #[test]
    fn a_list_counts_whatever_was_before() {
        for list in ["7", "0", "opaque"] {
            let mut position = Position::default();
            position.list("10");
            position.event("99");
            position.list(list);
            position.validate();
            assert_eq!((position.last(), position.floor()), (list, list));
        }
    }
}
