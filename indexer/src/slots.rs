//! PURE. Where a store keeps its entries: numbered slots in chunks that a snapshot can share, and the chunks in nodes.
//!
//! A snapshot costs one reference count a node (8,192 entries), so that a long walk needs no lock and taking it holds
//! one for no time. A writer that changes a chunk which a snapshot still holds copies that chunk first, once, and before
//! it the list of chunks of its node.

use std::sync::Arc;

use arrayvec::ArrayVec;

/// Entries to a chunk. Small, so that the copy a snapshot forces on a writer stays in the order of a microsecond.
const CHUNK_LEN: usize = 64;

/// Chunks to a node: as many as are copied in the time of one chunk.
const NODE_LEN: usize = 128;

/// The number of a slot. An index remembers entries by it: four bytes, no hash, no key.
pub(crate) type SlotId = u32;

pub(crate) type Chunk<K, V> = [Option<(K, V)>; CHUNK_LEN];
type Node<K, V> = ArrayVec<Arc<Chunk<K, V>>, NODE_LEN>;

/// Numbered slots. Invariants, checked by [`validate`](Self::validate):
///
/// 1. `len` is the number of occupied slots.
/// 2. `free` names each empty slot once and no occupied one.
/// 3. All nodes but the last are full.
pub(crate) struct Slots<K, V> {
    nodes: Vec<Arc<Node<K, V>>>,
    free: Vec<SlotId>,
    len: usize,
}

/// All entries as they were at one moment. Walking it takes no lock.
pub(crate) struct Snapshot<K, V> {
    nodes: Vec<Arc<Node<K, V>>>,
    len: usize,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<K, V> Slots<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One more than the highest slot that may be occupied.
    pub(crate) fn slot_count(&self) -> usize {
        let full = self.nodes.len().saturating_sub(1) * NODE_LEN;
        (full + self.nodes.last().map_or(0, |node| node.len())) * CHUNK_LEN
    }

    /// The entry in this slot.
    pub(crate) fn get(&self, slot: SlotId) -> Option<&(K, V)> {
        entry(&self.nodes, slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &(K, V))> {
        occupied(&self.nodes)
    }

    /// Cost: one reference count a node.
    pub(crate) fn snapshot(&self) -> Snapshot<K, V> {
        Snapshot { nodes: self.nodes.clone(), len: self.len }
    }
}

/// Chunks that were copied because a snapshot held them. A snapshot that was let go meanwhile leaves the last handle here,
/// so that they are to be dropped without the lock.
pub(crate) type Copied<K, V> = Vec<Arc<Chunk<K, V>>>;

impl<K: Clone, V: Clone> Slots<K, V> {
    /// Makes a slot writable without user code. All copies are made here: where one panics nothing has changed.
    pub(crate) fn own(&mut self, slot: SlotId, copied: &mut Copied<K, V>) {
        let (node, chunk, _) = place(slot);
        // Of the chunks only references are counted. A count of one stays: whoever could raise it has to hold this.
        let chunk = &mut Arc::make_mut(&mut self.nodes[node])[chunk];
        if Arc::strong_count(chunk) > 1 {
            let copy = Arc::new((**chunk).clone());
            copied.push(std::mem::replace(chunk, copy));
        }
    }

    /// Makes so many inserts possible without user code, as [`own`](Self::own) does for one slot.
    pub(crate) fn reserve(&mut self, count: usize, copied: &mut Copied<K, V>) {
        while self.free.len() < count {
            self.grow();
        }
        for at in self.free.len() - count..self.free.len() {
            self.own(self.free[at], copied);
        }
    }

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
        let (node, chunk, offset) = place(slot);
        &mut Arc::make_mut(&mut Arc::make_mut(&mut self.nodes[node])[chunk])[offset]
    }

    fn grow(&mut self) {
        let first = self.slot_count();
        let chunk = Arc::new(std::array::from_fn(|_| None));
        match self.nodes.last_mut() {
            Some(last) if !last.is_full() => Arc::make_mut(last).push(chunk),
            _ => self.nodes.push(Arc::new(Node::from_iter([chunk]))),
        }
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
        if let Some((_, others)) = self.nodes.split_last()
            && !others.iter().all(|node| node.is_full())
        {
            return Err("slots 3: a node before the last is not full".to_owned());
        }
        Ok(())
    }
}

impl<K, V> Clone for Snapshot<K, V> {
    fn clone(&self) -> Self {
        Self { nodes: self.nodes.clone(), len: self.len }
    }
}

impl<K, V> Snapshot<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entry that was in this slot.
    pub(crate) fn get(&self, slot: SlotId) -> Option<&(K, V)> {
        entry(&self.nodes, slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &(K, V))> {
        occupied(&self.nodes)
    }
}

fn entry<K, V>(nodes: &[Arc<Node<K, V>>], slot: SlotId) -> Option<&(K, V)> {
    let (node, chunk, offset) = place(slot);
    nodes.get(node)?.get(chunk)?[offset].as_ref()
}

fn occupied<K, V>(nodes: &[Arc<Node<K, V>>]) -> impl Iterator<Item = (SlotId, &(K, V))> {
    let slots = nodes.iter().flat_map(|node| node.iter()).flat_map(|chunk| chunk.iter());
    (0..).zip(slots).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
}

/// The node, the chunk in it, and the slot in that.
fn place(slot: SlotId) -> (usize, usize, usize) {
    let slot = slot as usize;
    (slot / CHUNK_LEN / NODE_LEN, slot / CHUNK_LEN % NODE_LEN, slot % CHUNK_LEN)
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
    fn slots_go_on_from_node_to_node() {
        let mut slots = Slots::default();
        let count = CHUNK_LEN * NODE_LEN * 2 + 1;
        for n in 0..count {
            assert_eq!(slots.insert(n, ()), n as SlotId);
        }
        slots.validate().unwrap();
        assert!(slots.iter().map(|(_, (n, ()))| *n).eq(0..count));
        assert_eq!(slots.slot_count(), count - 1 + CHUNK_LEN);
        assert!(slots.get((count + CHUNK_LEN) as SlotId).is_none());
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
