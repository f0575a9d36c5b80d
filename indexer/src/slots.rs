//! PURE. Where a store keeps its entries: numbered slots in chunks that a snapshot can share.
//!
//! A snapshot costs one reference count a chunk, whatever the number of entries in it, so that a long walk needs
//! no lock. A writer that changes a chunk which a snapshot still holds copies that chunk first, once.

use std::sync::Arc;

/// Entries to a chunk. Small, so that the copy a snapshot forces on a writer stays in the order of a microsecond;
/// large, so that a snapshot of 100,000 entries counts 1,600 references and not 100,000.
const CHUNK_LEN: usize = 64;

/// The number of a slot. An index remembers entries by it: four bytes, no hash, no key.
pub(crate) type SlotId = u32;

type Chunk<K, V> = Arc<[Option<(K, V)>]>;

/// Numbered slots. Invariants, checked by [`validate`](Self::validate):
///
/// 1. `len` is the number of occupied slots.
/// 2. `free` names each empty slot once and no occupied one.
pub(crate) struct Slots<K, V> {
    chunks: Vec<Chunk<K, V>>,
    free: Vec<SlotId>,
    len: usize,
}

/// All entries as they were at one moment. Walking it takes no lock.
pub(crate) struct Snapshot<K, V> {
    chunks: Vec<Chunk<K, V>>,
    len: usize,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<K, V> Slots<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One more than the highest slot that may be occupied.
    pub(crate) fn slot_count(&self) -> usize {
        self.chunks.len() * CHUNK_LEN
    }

    /// The entry in this slot.
    pub(crate) fn get(&self, slot: SlotId) -> Option<&(K, V)> {
        entry(&self.chunks, slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &(K, V))> {
        occupied(&self.chunks)
    }

    /// Cost: one reference count a chunk.
    pub(crate) fn snapshot(&self) -> Snapshot<K, V> {
        Snapshot { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<K: Clone, V: Clone> Slots<K, V> {
    /// Puts an entry into a free slot.
    pub(crate) fn insert(&mut self, key: K, value: V) -> SlotId {
        if self.free.is_empty() {
            self.grow();
        }
        // `grow` has just made free slots if there were none.
        let slot = self.free.pop().unwrap_or_default();
        *self.slot_mut(slot) = Some((key, value));
        self.len += 1;
        slot
    }

    /// Exchanges the value of an occupied slot.
    pub(crate) fn replace_value(&mut self, slot: SlotId, value: V) -> Option<V> {
        self.slot_mut(slot).as_mut().map(|(_, old)| std::mem::replace(old, value))
    }

    /// Empties a slot.
    pub(crate) fn remove(&mut self, slot: SlotId) -> Option<(K, V)> {
        let entry = self.slot_mut(slot).take()?;
        self.free.push(slot);
        self.len -= 1;
        Some(entry)
    }

    fn slot_mut(&mut self, slot: SlotId) -> &mut Option<(K, V)> {
        let (chunk, offset) = place(slot);
        &mut Arc::make_mut(&mut self.chunks[chunk])[offset]
    }

    fn grow(&mut self) {
        let first = self.slot_count();
        self.chunks.push((0..CHUNK_LEN).map(|_| None).collect());
        // Ascending from the back, so that slots are taken in ascending order.
        self.free.extend((first..first + CHUNK_LEN).rev().map(|slot| slot as SlotId));
    }
}

impl<K, V> Slots<K, V> {
    /// Checks the invariants. Cost: O(n).
    pub(crate) fn validate(&self) -> Result<(), String> {
        let occupied = self.iter().count();
        if occupied != self.len {
            return Err(format!("slots 1: {occupied} occupied, len says {}", self.len));
        }
        let mut free = self.free.clone();
        free.sort_unstable();
        free.dedup();
        if free.len() + occupied != self.slot_count() || free.iter().any(|&slot| self.get(slot).is_some()) {
            return Err(format!("slots 2: {} free and {occupied} of {}", self.free.len(), self.slot_count()));
        }
        Ok(())
    }
}

impl<K, V> Snapshot<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entry that was in this slot.
    pub(crate) fn get(&self, slot: SlotId) -> Option<&(K, V)> {
        entry(&self.chunks, slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &(K, V))> {
        occupied(&self.chunks)
    }
}

fn entry<K, V>(chunks: &[Chunk<K, V>], slot: SlotId) -> Option<&(K, V)> {
    let (chunk, offset) = place(slot);
    chunks.get(chunk)?[offset].as_ref()
}

fn occupied<K, V>(chunks: &[Chunk<K, V>]) -> impl Iterator<Item = (SlotId, &(K, V))> {
    let slots = chunks.iter().flat_map(|chunk| chunk.iter());
    (0..).zip(slots).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
}

fn place(slot: SlotId) -> (usize, usize) {
    (slot as usize / CHUNK_LEN, slot as usize % CHUNK_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_keeps_what_it_saw_while_the_slots_change() {
        let mut slots = Slots::default();
        let ids: Vec<_> = (0..200).map(|n| slots.insert(n, n * 10)).collect();
        let before = slots.snapshot();
        slots.remove(ids[7]);
        slots.replace_value(ids[8], 1);
        slots.insert(1000, 1000);
        slots.validate().unwrap();
        let seen: Vec<_> = before.iter().map(|(_, entry)| *entry).collect();
        assert_eq!(before.len(), 200);
        assert_eq!(seen, (0..200).map(|n| (n, n * 10)).collect::<Vec<_>>());
        assert_eq!(slots.len(), 200);
    }

    #[test]
    fn a_removed_slot_is_used_again() {
        let mut slots = Slots::default();
        for round in 0..10_000 {
            let slot = slots.insert(round, ());
            assert_eq!(slots.remove(slot), Some((round, ())));
            assert_eq!(slots.remove(slot), None);
        }
        assert_eq!(slots.slot_count(), CHUNK_LEN);
        slots.validate().unwrap();
    }
}
