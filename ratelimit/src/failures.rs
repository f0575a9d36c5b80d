//! How often each key failed.

use std::hash::Hash;

use hashbrown::HashMap;

/// The number of failures of each key since it was last forgotten. A key without failures takes no room, and a table
/// that empties after having been large gives its memory back.
#[derive(Clone, Debug)]
pub(crate) struct Failures<K> {
    counts: HashMap<K, u32>,
}

/// A table of up to so many keys keeps its memory when it empties.
const KEPT_CAPACITY: usize = 1024;

impl<K: Hash + Eq + Clone> Failures<K> {
    pub(crate) fn new() -> Self {
        Self { counts: HashMap::new() }
    }

    /// Counts one more failure of `key`; answers how many there were before. One hash; the first one clones the key.
    pub(crate) fn count(&mut self, key: &K) -> u32 {
        let count = self.counts.entry_ref(key).or_insert(0);
        let before = *count;
        *count = before.saturating_add(1);
        before
    }

    /// Forgets `key`. Nothing at all, not even a hash, while no key has failed.
    pub(crate) fn forget(&mut self, key: &K) {
        if self.counts.is_empty() {
            return;
        }
        self.counts.remove(key);
        if self.counts.is_empty() && self.counts.capacity() > KEPT_CAPACITY {
            self.counts = HashMap::new();
        }
    }

    pub(crate) fn of(&self, key: &K) -> u32 {
        self.counts.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.counts.capacity()
    }
}
