//! In which order waiting keys are handed out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The order in which a queue hands out the keys that wait; as client-go's `workqueue.Queue`.
///
/// The queue keeps the keys; an order deals in [`Slot`]s, one for each waiting key, and must give each back once. It is
/// called under the queue's lock: it must be quick and must not call the queue. A panic in it costs at most the key at
/// hand, which then waits until it is added again.
///
/// [`Fifo`] is the default, [`ByPriority`] an order by a priority that a key has.
pub trait Order<K>: Send {
    /// A key begins to wait.
    fn push(&mut self, item: Item<'_, K>);

    /// A key that waits was added again. Not called for a key that is being processed.
    fn touch(&mut self, item: Item<'_, K>) {
        let _ = item;
    }

    /// The next key to hand out; `None` only while none waits.
    fn pop(&mut self) -> Option<Slot>;
}

/// The place of a waiting key in its queue; means something to that queue alone, and only while the key waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(crate) u32);

/// A key that begins to wait, or waits, as an [`Order`] sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Item<'a, K> {
    /// What [`Order::pop`] gives back.
    pub slot: Slot,
    /// The key.
    pub key: &'a K,
}

/// First in, first out: the default. Adding a waiting key again does not move it.
#[derive(Debug, Default)]
pub struct Fifo {
    slots: VecDeque<Slot>,
}

/// An order that empties gives its memory back where it is more than for so many keys.
const KEPT_CAPACITY: usize = 1024;

impl<K> Order<K> for Fifo {
    fn push(&mut self, item: Item<'_, K>) {
        self.slots.push_back(item.slot);
    }

    fn pop(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front();
        if self.slots.is_empty() && self.slots.capacity() > KEPT_CAPACITY {
            self.slots = VecDeque::new();
        }
        slot
    }
}

/// Highest priority first, first in first out among equals. The priority is read from the key when it begins to wait.
///
/// Lower priorities wait as long as higher ones keep coming.
///
/// ```
/// use kubewire_workqueue::{ByPriority, Queue};
///
/// // The longer the more urgent.
/// let queue = Queue::builder().order(ByPriority::new(|key: &String| key.len())).build();
/// for key in ["b", "long", "a", "longest"] {
///     queue.add(key.to_owned());
/// }
/// let mut got = Vec::new();
/// while let Ok(key) = queue.try_get() {
///     got.push(key.to_string());
/// }
/// assert_eq!(got, ["longest", "long", "b", "a"]);
/// ```
#[derive(Debug)]
pub struct ByPriority<F, P> {
    priority: F,
    /// Counts what was pushed, to tell which of equals came first.
    pushed: u64,
    heap: BinaryHeap<(P, Reverse<u64>, Slot)>,
}

impl<F, P: Ord> ByPriority<F, P> {
    /// The order by `priority` of a key. It is called under the queue's lock.
    pub fn new<K>(priority: F) -> Self
    where
        F: Fn(&K) -> P,
    {
        Self { priority, pushed: 0, heap: BinaryHeap::new() }
    }
}

impl<K, F: Fn(&K) -> P + Send, P: Ord + Send> Order<K> for ByPriority<F, P> {
    fn push(&mut self, item: Item<'_, K>) {
        self.heap.push(((self.priority)(item.key), Reverse(self.pushed), item.slot));
        self.pushed += 1;
    }

    fn pop(&mut self) -> Option<Slot> {
        let (_, _, slot) = self.heap.pop()?;
        if self.heap.is_empty() && self.heap.capacity() > KEPT_CAPACITY {
            self.heap = BinaryHeap::new();
        }
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_priority_come_out_as_they_went_in() {
        let mut order = ByPriority::new(|key: &u32| key % 2);
        for (slot, key) in [(1, 0), (3, 1), (7, 1), (5, 1), (9, 0)] {
            order.push(Item { slot: Slot(slot), key: &key });
        }
        let slots: Vec<_> = std::iter::from_fn(|| Order::<u32>::pop(&mut order)).map(|slot| slot.0).collect();
        assert_eq!(slots, [3, 7, 5, 1, 9]);
    }
}
