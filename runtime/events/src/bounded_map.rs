//! PURE: a map that forgets what was used longest ago.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// At most so many entries; a new one takes the place of one that was not used for longest.
///
/// Invariants: each entry has one place in `order`, and the other way round.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    len_max: usize,
    entries: HashMap<K, (u64, V)>,
    /// Keys by last use.
    order: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Hash + Eq + Clone, V> BoundedMap<K, V> {
    /// One entry at least.
    pub(crate) fn new(len_max: usize) -> Self {
        Self { len_max: len_max.max(1), entries: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry, without counting it as a use.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(crate) fn peek_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (place, value) = self.entries.remove(key)?;
        self.order.remove(&place);
        Some(value)
    }

    /// The entry, made where there is none. Where the map is full then, the one goes that was used longest ago among those
    /// that `may_go` allows; it comes back. None goes where none may.
    ///
    /// Cost: O(log n), and O(1) more for each that may not go.
    pub(crate) fn get_or_insert(
        &mut self,
        key: &K,
        make: impl FnOnce() -> V,
        may_go: impl Fn(&V) -> bool,
    ) -> (&mut V, Option<V>) {
        let mut gone = None;
        if !self.entries.contains_key(key) && self.entries.len() >= self.len_max {
            let oldest = self.order.values().find(|key| self.peek(key).is_some_and(&may_go)).cloned();
            gone = oldest.and_then(|oldest| self.remove(&oldest));
        }
        self.uses += 1;
        let place = self.uses;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| (place, make()));
        self.order.remove(&entry.0);
        self.order.insert(place, key.clone());
        entry.0 = place;
        (&mut entry.1, gone)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.order.values()
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        assert_eq!(self.entries.len(), self.order.len());
        assert!(self.order.iter().all(|(place, key)| self.entries.get(key).is_some_and(|(at, _)| at == place)));
        assert!(self.entries.len() <= self.len_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_goes_that_was_used_longest_ago_and_may_go() {
        let mut map = BoundedMap::new(3);
        for key in ["a", "b", "c", "a"] {
            let (value, gone) = map.get_or_insert(&key, || 0, |_| true);
            *value += 1;
            assert_eq!(gone, None);
        }
        assert_eq!(map.get_or_insert(&"d", || 9, |_| true).1, Some(1), "b");
        assert_eq!(map.get_or_insert(&"e", || 9, |value| *value == 2).1, Some(2), "a, as c may not go");
        map.validate();
        assert_eq!(map.keys().copied().collect::<Vec<_>>(), ["c", "d", "e"]);
        assert_eq!(map.remove(&"d"), Some(9));
        assert_eq!((map.peek(&"d"), map.peek(&"e"), map.len()), (None, Some(&9), 2));
        map.validate();
    }
}
