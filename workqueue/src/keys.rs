//! PURE. Each key once, in a slot that can be reached by the key or by its number.

use slab::Slab;

use crate::order::Slot;
use crate::table::{Hash, Table};

/// Keys with something beside each. A key is hashed by the caller, compared only where it is looked for, and stays in
/// its slot until it is removed.
pub(crate) struct Keys<K, V> {
    /// The slots, by the hash of their keys.
    table: Table,
    entries: Slab<Entry<K, V>>,
}

// The key comes first: an entry that is removed is moved in words then, and not in parts between its niches.
#[repr(C)]
struct Entry<K, V> {
    key: K,
    value: V,
    hash: Hash,
}

/// Keys that are all removed leave their memory in place up to so many of them.
const KEPT_CAPACITY: usize = 1024;

impl<K: Eq, V> Keys<K, V> {
    pub(crate) const fn new() -> Self {
        Self { table: Table::new(), entries: Slab::new() }
    }

    /// The slot of `key`, which hashes to `hash`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<Slot> {
        let (entries, hash) = (&self.entries, Hash::of(hash));
        self.table.find(hash, |slot| entries[slot.0 as usize].key == *key)
    }

    /// Adds a key that is not here yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, key: K, value: V) -> Slot {
        let hash = Hash::of(hash);
        let index = self.entries.insert(Entry { hash, value, key });
        let slot = Slot(u32::try_from(index).expect("2^32 entries of at least 64 bytes do not fit into memory"));
        self.table.insert(hash, slot);
        slot
    }

    #[inline]
    pub(crate) fn key(&self, slot: Slot) -> &K {
        &self.entries[slot.0 as usize].key
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&V> {
        self.entries.get(slot.0 as usize).map(|entry| &entry.value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut V> {
        self.entries.get_mut(slot.0 as usize).map(|entry| &mut entry.value)
    }

    /// Removes the key in `slot`, which must be there, and gives it back. Compares no keys.
    pub(crate) fn remove(&mut self, slot: Slot) -> K {
        let entry = self.entries.remove(slot.0 as usize);
        self.table.remove(entry.hash, slot);
        if self.entries.is_empty() && self.entries.capacity() > KEPT_CAPACITY {
            *self = Self::new();
        }
        entry.key
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &K, &V)> {
        self.entries.iter().map(|(index, entry)| (Slot(index as u32), &entry.key, &entry.value))
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.table.capacity().max(self.entries.capacity())
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        self.table.validate();
        assert_eq!(self.table.len(), self.entries.len());
        for (index, entry) in &self.entries {
            let found = self.table.find(entry.hash, |slot| self.key(slot) == &entry.key);
            assert_eq!(found, Some(Slot(index as u32)));
        }
    }
}
