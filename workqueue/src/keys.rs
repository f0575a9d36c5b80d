//! PURE. Each key once, in a slot that can be reached by the key or by its number.

use hashbrown::HashTable;
use slab::Slab;

use crate::order::Slot;

/// Keys with something beside each. A key is hashed by the caller, compared only where it is looked for, and stays in
/// its slot until it is removed.
pub(crate) struct Keys<K, V> {
    /// The slots, by the hash of their keys. The hash stands beside the slot, so that a table that grows looks at no entry.
    table: HashTable<(Hash, Slot)>,
    entries: Slab<Entry<K, V>>,
}

struct Entry<K, V> {
    hash: Hash,
    value: V,
    key: K,
}

/// Half of the bits of a key's hash: as many as a slot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash(u32);

impl Hash {
    const fn of(hash: u64) -> Self {
        Self((hash >> 32) as u32)
    }

    /// The table takes the place from the low bits and a tag from the high ones.
    const fn spread(self) -> u64 {
        (self.0 as u64) << 32 | self.0 as u64
    }
}

/// Keys that are all removed leave their memory in place up to so many of them.
const KEPT_CAPACITY: usize = 1024;

impl<K: Eq, V> Keys<K, V> {
    pub(crate) const fn new() -> Self {
        Self { table: HashTable::new(), entries: Slab::new() }
    }

    /// The slot of `key`, which hashes to `hash`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<Slot> {
        let (entries, hash) = (&self.entries, Hash::of(hash));
        let is_it = |&(other, slot): &(Hash, Slot)| other == hash && entries[slot.0 as usize].key == *key;
        self.table.find(hash.spread(), is_it).map(|&(_, slot)| slot)
    }

    /// Adds a key that is not here yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, key: K, value: V) -> Slot {
        let hash = Hash::of(hash);
        let index = self.entries.insert(Entry { hash, value, key });
        let slot = Slot(u32::try_from(index).expect("2^32 entries of at least 64 bytes do not fit into memory"));
        self.table.insert_unique(hash.spread(), (hash, slot), |(hash, _)| hash.spread());
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
        if let Ok(found) = self.table.find_entry(entry.hash.spread(), |&(_, other)| other == slot) {
            found.remove();
        }
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
        assert_eq!(self.table.len(), self.entries.len());
        for (index, entry) in &self.entries {
            assert_eq!(self.find(entry.hash.spread(), &entry.key), Some(Slot(index as u32)));
        }
    }
}
