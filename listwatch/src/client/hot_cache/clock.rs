//! PURE. A table with room for a number of values, of which those that were asked for lately stay: the clock algorithm.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::HotCounts;

/// Values by uid and version. A hand goes round the entries: one that was asked for since it last came by is passed
/// over, once; the first that was not gives way.
///
/// Invariants: (1) there are no more entries than `capacity`; (2) the index has each entry once, under its own hash;
/// (3) no two entries have the same uid and version; (4) the hand is at an entry, or at 0.
#[derive(Debug)]
pub(super) struct Clock<V> {
    capacity: usize,
    entries: Vec<Entry<V>>,
    /// Places in `entries`.
    index: HashTable<usize>,
    hasher: RandomState,
    hand: usize,
    counts: HotCounts,
}

#[derive(Debug)]
struct Entry<V> {
    hash: u64,
    uid: Box<str>,
    version: Box<str>,
    value: V,
    was_asked_for: bool,
}

impl<V> Entry<V> {
    fn is_of(&self, uid: &str, version: &str) -> bool {
        *self.uid == *uid && *self.version == *version
    }
}

impl<V> Clock<V> {
    pub(super) fn new(capacity: usize) -> Self {
        let hasher = RandomState::new();
        Self { capacity, entries: Vec::new(), index: HashTable::new(), hasher, hand: 0, counts: HotCounts::default() }
    }

    /// The value that somebody asks for. Counts.
    pub(super) fn get(&mut self, uid: &str, version: &str) -> Option<&V> {
        match self.place(uid, version) {
            Some(place) => {
                self.counts.hits += 1;
                let entry = &mut self.entries[place];
                entry.was_asked_for = true;
                Some(&entry.value)
            }
            None => {
                self.counts.misses += 1;
                None
            }
        }
    }

    /// The value, without a trace.
    pub(super) fn find(&self, uid: &str, version: &str) -> Option<&V> {
        self.place(uid, version).map(|place| &self.entries[place].value)
    }

    /// Puts a value that is not there. Gives what has no room any more: another, or this one where there is no room at
    /// all. Cost: amortized O(1); the hand passes each entry over once for each time it was asked for.
    pub(super) fn insert(&mut self, uid: &str, version: &str, value: V) -> Option<V> {
        debug_assert!(self.place(uid, version).is_none(), "it is there");
        if self.capacity == 0 {
            return Some(value);
        }
        let hash = self.hash(uid, version);
        let entry = Entry { hash, uid: uid.into(), version: version.into(), value, was_asked_for: false };
        if self.entries.len() < self.capacity {
            let place = self.entries.len();
            self.entries.push(entry);
            self.add_to_index(hash, place);
            return None;
        }
        let place = self.next_to_go();
        let old_hash = self.entries[place].hash;
        if let Ok(old) = self.index.find_entry(old_hash, |other| *other == place) {
            old.remove();
        }
        self.add_to_index(hash, place);
        Some(std::mem::replace(&mut self.entries[place], entry).value)
    }

    /// Gives all values.
    pub(super) fn clear(&mut self) -> Vec<V> {
        self.index.clear();
        self.hand = 0;
        std::mem::take(&mut self.entries).into_iter().map(|entry| entry.value).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn counts(&self) -> HotCounts {
        self.counts
    }

    /// Moves the hand on to the first entry that was not asked for since it came by, and behind it.
    fn next_to_go(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[place].was_asked_for) {
                return place;
            }
        }
    }

    fn place(&self, uid: &str, version: &str) -> Option<usize> {
        let hash = self.hash(uid, version);
        self.index.find(hash, |place| self.entries[*place].is_of(uid, version)).copied()
    }

    fn add_to_index(&mut self, hash: u64, place: usize) {
        self.index.insert_unique(hash, place, |place| self.entries[*place].hash);
    }

    fn hash(&self, uid: &str, version: &str) -> u64 {
        self.hasher.hash_one((uid, version))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl<V> Clock<V> {
        fn validate(&self) {
            assert!(self.entries.len() <= self.capacity, "(1)");
            assert_eq!(self.index.len(), self.entries.len(), "(2)");
            for (place, entry) in self.entries.iter().enumerate() {
                assert_eq!(entry.hash, self.hash(&entry.uid, &entry.version), "(2)");
                assert_eq!(self.index.find(entry.hash, |other| *other == place), Some(&place), "(2)");
                assert_eq!(self.place(&entry.uid, &entry.version), Some(place), "(3)");
            }
            assert!(self.hand == 0 || self.hand < self.entries.len(), "(4)");
        }
    }

    #[test]
    fn what_was_asked_for_gets_a_second_chance_and_no_third() {
        let mut clock = Clock::new(3);
        for (uid, value) in [("a", 1), ("b", 2), ("c", 3)] {
            assert_eq!(clock.insert(uid, "1", value), None);
        }
        assert_eq!(clock.get("a", "1"), Some(&1));
        assert_eq!(clock.insert("d", "1", 4), Some(2), "a was asked for");
        assert_eq!(clock.insert("e", "1", 5), Some(3));
        assert_eq!(clock.insert("f", "1", 6), Some(1), "a was not asked for again");
        assert_eq!(
            [("a", "1"), ("d", "2"), ("d", "1")].map(|(uid, version)| clock.get(uid, version).copied()),
            [None, None, Some(4)]
        );
        assert_eq!(clock.counts(), HotCounts { hits: 2, misses: 2 });
        clock.validate();
    }

    #[test]
    fn with_all_of_them_asked_for_the_oldest_goes_and_without_room_nothing_stays() {
        let mut clock = Clock::new(2);
        clock.insert("a", "1", 1);
        clock.insert("b", "1", 2);
        for uid in ["a", "b"] {
            assert!(clock.get(uid, "1").is_some());
        }
        assert_eq!(clock.insert("c", "1", 3), Some(1));
        assert_eq!(clock.clear(), [3, 2]);
        clock.validate();
        let mut none = Clock::new(0);
        assert_eq!((none.insert("a", "1", 1), none.get("a", "1").copied(), none.len()), (Some(1), None, 0));
    }

    /// The same by a list that is looked through: the next to go is in front.
    struct Naive {
        capacity: usize,
        entries: Vec<(u8, u8, u32, bool)>,
    }

    impl Naive {
        fn find(&mut self, uid: u8, version: u8) -> Option<&mut (u8, u8, u32, bool)> {
            self.entries.iter_mut().find(|entry| (entry.0, entry.1) == (uid, version))
        }

        fn insert(&mut self, uid: u8, version: u8, value: u32) -> Option<u32> {
            if self.capacity == 0 {
                return Some(value);
            }
            let mut gone = None;
            while self.entries.len() == self.capacity && gone.is_none() {
                let mut front = self.entries.remove(0);
                if std::mem::take(&mut front.3) {
                    self.entries.push(front);
                } else {
                    gone = Some(front.2);
                }
            }
            self.entries.push((uid, version, value, false));
            gone
        }
    }

    proptest! {
        #[test]
        fn it_keeps_what_a_naive_list_keeps(
            capacity in 0..6_usize,
            ops in prop::collection::vec((0..5_u8, 0..3_u8, 0..20_u8), 0..120),
        ) {
            let mut clock = Clock::new(capacity);
            let mut naive = Naive { capacity, entries: Vec::new() };
            for (value, (uid, version, op)) in (0..).zip(ops) {
                let (uid_text, version_text) = (uid.to_string(), version.to_string());
                if op == 0 {
                    let mut cleared = clock.clear();
                    let mut expected: Vec<_> = std::mem::take(&mut naive.entries).iter().map(|entry| entry.2).collect();
                    cleared.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(cleared, expected);
                }
                let found = naive.find(uid, version).map(|entry| {
                    entry.3 = true;
                    entry.2
                });
                prop_assert_eq!(clock.find(&uid_text, &version_text).copied(), found);
                prop_assert_eq!(clock.get(&uid_text, &version_text).copied(), found);
                if found.is_none() {
                    prop_assert_eq!(clock.insert(&uid_text, &version_text, value), naive.insert(uid, version, value));
                }
                clock.validate();
                prop_assert_eq!(clock.len(), naive.entries.len());
            }
        }
    }
}
