//! PURE. Up to which version the store has come, behind a queue.

use std::collections::VecDeque;

/// Versions that count as applied once the queue is done up to a place.
///
/// V1: the places of `marks` grow strictly. V2: each is greater than the place that is done.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    marks: VecDeque<(u64, String)>,
    applied: String,
    /// The text of the last one that is applied no more, for the next mark.
    spare: String,
}

impl Versions {
    /// `version` will be applied when everything before the place `end` is done; up to `done` it is.
    pub(crate) fn mark(&mut self, version: &str, end: u64, done: u64) {
        if end <= done {
            set(&mut self.applied, version);
            return;
        }
        match self.marks.back_mut() {
            Some((place, text)) if *place >= end => set(text, version),
            _ => {
                let mut text = std::mem::take(&mut self.spare);
                set(&mut text, version);
                self.marks.push_back((end, text));
            }
        }
    }

    /// Everything before the place `done` is done. Says whether the applied version has changed.
    pub(crate) fn advance(&mut self, done: u64) -> bool {
        let mut changed = false;
        while self.marks.front().is_some_and(|(place, _)| *place <= done) {
            if let Some((_, version)) = self.marks.pop_front() {
                self.spare = std::mem::replace(&mut self.applied, version);
                changed = true;
            }
        }
        changed
    }

    /// The last version that is applied; empty before there is one.
    pub(crate) fn applied(&self) -> &str {
        &self.applied
    }

    #[cfg(test)]
    pub(crate) fn validate(&self, done: u64) {
        assert!(self.marks.iter().zip(self.marks.iter().skip(1)).all(|(a, b)| a.0 < b.0), "V1");
        assert!(self.marks.front().is_none_or(|(place, _)| *place > done), "V2");
    }
}

fn set(text: &mut String, to: &str) {
    text.clear();
    text.push_str(to);
}

#[cfg(test)]
mod tests {
    use super::Versions;

    #[test]
    fn a_version_is_applied_when_all_that_came_before_it_is_done() {
        let mut versions = Versions::default();
        versions.mark("5", 0, 0);
        assert_eq!(versions.applied(), "5", "nothing waits");
        versions.mark("6", 1, 0);
        versions.mark("7", 2, 0);
        versions.mark("8", 2, 0);
        versions.validate(0);
        assert_eq!(versions.applied(), "5");
        assert!(versions.advance(1));
        assert_eq!(versions.applied(), "6");
        assert!(versions.advance(2));
        assert_eq!(versions.applied(), "8");
        assert!(!versions.advance(3));
        versions.validate(3);
    }
}
