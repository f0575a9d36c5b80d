//! PURE. The slots that wait for a moment, the earliest first.

use std::time::Instant;

use crate::order::Slot;

/// Slots with the moments for which they wait: at most one for each slot, the earliest wins.
///
/// A binary heap that knows the place of each slot, so that a moment can be brought forward or taken out. What is due at
/// the same moment comes out in the order in which it went in.
///
/// Invariants (checked by [`validate`](Self::validate)):
/// 1. No node is due before its parent.
/// 2. `places` tells for each slot where in `nodes` it is, and `NOWHERE` for all others.
#[derive(Debug, Default)]
pub(crate) struct DelayHeap {
    nodes: Vec<Node>,
    /// By slot.
    places: Vec<u32>,
    /// Counts what was inserted.
    inserted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    due: Instant,
    /// Which of those due at the same moment came first.
    number: u64,
    slot: Slot,
    /// Of what is added then; the highest that it was delayed with.
    priority: i32,
}

const NOWHERE: u32 = u32::MAX;

/// A heap that empties keeps its memory up to so many slots.
const KEPT_CAPACITY: usize = 1024;

impl DelayHeap {
    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The earliest moment.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.nodes.first().map(|node| node.due)
    }

    /// When `slot` is due, if it waits.
    pub(crate) fn due(&self, slot: Slot) -> Option<Instant> {
        self.place(slot).map(|place| self.nodes[place].due)
    }

    /// Has `slot` wait until `due`, or until its earlier moment if it waits already, at `priority`, or at its higher one.
    /// O(log n).
    pub(crate) fn insert(&mut self, slot: Slot, due: Instant, priority: i32) {
        self.inserted += 1;
        let number = self.inserted;
        match self.place(slot) {
            None => {
                if self.places.len() <= slot.0 as usize {
                    self.places.resize(slot.0 as usize + 1, NOWHERE);
                }
                self.nodes.push(Node { due, number, slot, priority });
                self.rise(self.nodes.len() - 1);
            }
            Some(place) if due < self.nodes[place].due => {
                let priority = priority.max(self.nodes[place].priority);
                self.nodes[place] = Node { due, number, slot, priority };
                self.rise(place);
            }
            Some(place) => {
                let node = &mut self.nodes[place];
                node.priority = node.priority.max(priority);
            }
        }
    }

    /// Takes out the earliest slot if it is due at `now`. O(log n).
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Slot, Instant, i32)> {
        let first = *self.nodes.first()?;
        (first.due <= now).then(|| {
            self.take(0);
            (first.slot, first.due, first.priority)
        })
    }

    /// Takes out `slot`; answers its priority if it waited. O(log n).
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<i32> {
        let place = self.place(slot)?;
        let priority = self.nodes[place].priority;
        self.take(place);
        Some(priority)
    }

    /// Takes out any slot. O(1).
    pub(crate) fn pop_any(&mut self) -> Option<Slot> {
        let slot = self.nodes.last()?.slot;
        self.take(self.nodes.len() - 1);
        Some(slot)
    }

    /// All slots with their moments, in no order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, Instant)> {
        self.nodes.iter().map(|node| (node.slot, node.due))
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        self.places.get(slot.0 as usize).filter(|&&place| place != NOWHERE).map(|&place| place as usize)
    }

    /// Takes out the node at `place`.
    fn take(&mut self, place: usize) {
        let node = self.nodes.swap_remove(place);
        self.places[node.slot.0 as usize] = NOWHERE;
        if self.nodes.is_empty() && self.places.len() > KEPT_CAPACITY {
            (self.nodes, self.places) = (Vec::new(), Vec::new());
        } else if place < self.nodes.len() {
            // The last node has come here from another branch: it may belong above or below.
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Moves the node at `place` up to where it belongs; answers where that is.
    fn rise(&mut self, mut place: usize) -> usize {
        let node = self.nodes[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.nodes[parent] <= node {
                break;
            }
            self.put(place, self.nodes[parent]);
            place = parent;
        }
        self.put(place, node);
        place
    }

    /// Moves the node at `place` down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        let node = self.nodes[place];
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            let child = if right < self.nodes.len() && self.nodes[right] < self.nodes[left] { right } else { left };
            if child >= self.nodes.len() || node <= self.nodes[child] {
                break;
            }
            self.put(place, self.nodes[child]);
            place = child;
        }
        self.put(place, node);
    }

    fn put(&mut self, place: usize, node: Node) {
        self.nodes[place] = node;
        self.places[node.slot.0 as usize] = place as u32;
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        for place in 1..self.nodes.len() {
            assert!(self.nodes[(place - 1) / 2] <= self.nodes[place], "invariant 1 at {place}");
        }
        for (place, node) in self.nodes.iter().enumerate() {
            assert_eq!(self.places[node.slot.0 as usize] as usize, place, "invariant 2 of {:?}", node.slot);
        }
        assert_eq!(self.places.iter().filter(|&&place| place != NOWHERE).count(), self.nodes.len(), "invariant 2");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32, u64),
        Remove(u32),
        PopDue(u64),
        PopAny,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..12_u32, 0..40_u64).prop_map(|(slot, due)| Op::Insert(slot, due)),
            1 => (0..12_u32).prop_map(Op::Remove),
            3 => (0..40_u64).prop_map(Op::PopDue),
            1 => Just(Op::PopAny),
        ]
    }

    proptest! {
        /// The oracle: a list of (due, number of the insertion that counts, slot), searched from end to end.
        #[test]
        fn heap_agrees_with_a_sorted_list(ops in proptest::collection::vec(op(), 1..200)) {
            let start = Instant::now();
            let at = |millis| start + Duration::from_millis(millis);
            let mut heap = DelayHeap::default();
            let mut list: Vec<(Instant, usize, Slot)> = Vec::new();
            for (number, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Insert(slot, due) => {
                        heap.insert(Slot(slot), at(due), 0);
                        match list.iter_mut().find(|entry| entry.2 == Slot(slot)) {
                            Some(entry) if at(due) < entry.0 => *entry = (at(due), number, Slot(slot)),
                            Some(_) => {}
                            None => list.push((at(due), number, Slot(slot))),
                        }
                    }
                    Op::Remove(slot) => {
                        let known = list.iter().position(|entry| entry.2 == Slot(slot));
                        prop_assert_eq!(heap.remove(Slot(slot)), known.map(|_| 0));
                        known.map(|index| list.remove(index));
                    }
                    Op::PopDue(now) => {
                        list.sort();
                        let due = list.first().filter(|entry| entry.0 <= at(now)).copied();
                        prop_assert_eq!(heap.pop_due(at(now)), due.map(|entry| (entry.2, entry.0, 0)));
                        list.retain(|entry| Some(*entry) != due);
                    }
                    Op::PopAny => {
                        let popped = heap.pop_any();
                        prop_assert_eq!(popped.is_some(), !list.is_empty());
                        list.retain(|entry| Some(entry.2) != popped);
                    }
                }
                heap.validate();
                prop_assert_eq!(heap.len(), list.len());
                prop_assert_eq!(heap.next_due(), list.iter().map(|entry| entry.0).min());
                for slot in 0..12 {
                    let due = list.iter().find(|entry| entry.2 == Slot(slot)).map(|entry| entry.0);
                    prop_assert_eq!(heap.due(Slot(slot)), due);
                }
            }
        }
    }

    #[test]
    fn a_hundred_thousand_random_delays_come_out_in_order_once_each() {
        let start = Instant::now();
        let mut heap = DelayHeap::default();
        let mut random = kubewire_ratelimit::Random::seeded(11);
        for slot in 0..100_000 {
            heap.insert(Slot(slot), start + Duration::from_secs(1).mul_f64(random.fraction()), 0);
        }
        heap.validate();
        let end = start + Duration::from_secs(1);
        let mut dues = Vec::new();
        while let Some((_, due, _)) = heap.pop_due(end) {
            dues.push(due);
        }
        assert_eq!(dues.len(), 100_000);
        assert!(dues.is_sorted());
        assert_eq!((heap.nodes.capacity(), heap.places.capacity()), (0, 0), "the memory is given back");
    }
}
