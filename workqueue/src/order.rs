//! In which order waiting keys are handed out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

/// The order in which a queue hands out the keys that wait; as client-go's `workqueue.Queue`.
///
/// The queue keeps the keys; an order deals in [`Slot`]s, one for each waiting key, and must give each back once. It is
/// called under the queue's lock: it must be quick and must not call the queue. A panic in it costs at most the key at
/// hand, which then waits until it is added again.
///
/// [`Fifo`] is the default, [`ByPriority`] an order by a priority that a key has, [`ByAddedPriority`] one by the priority
/// that it was added with.
pub trait Order<K>: Send {
    /// A key begins to wait.
    fn push(&mut self, item: Item<'_, K>);

    /// A key that waits was added again, maybe at a higher priority than before. Not called for a key that is being
    /// processed.
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
    /// The highest priority that it was added with since it was handed out last; 0 where none was named.
    pub priority: i32,
    /// Since when it is to be processed.
    pub since: Instant,
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

/// Highest priority first, first in first out among equals, by the priority that a key was *added* with; the order of a
/// [prioritized](crate::QueueBuilder::prioritized) queue, and as controller-runtime's.
///
/// A key that waits and is added again at a higher priority goes to the end of that one. Without
/// [`aging`](Self::aging) lower priorities wait as long as higher ones keep coming.
#[derive(Debug, Default)]
pub struct ByAddedPriority {
    /// How much waiting a step of priority is worth, in nanoseconds; zero: any.
    step: i128,
    /// Moments count from the first that was seen.
    start: Option<Instant>,
    /// Counts what was pushed, to tell which of equals came first.
    pushed: u64,
    /// The smallest first: the rank, the number, the slot.
    heap: BinaryHeap<Reverse<(i128, u64, Slot)>>,
    /// By slot: the priority and the number of its entry that counts. Others of the slot are passed over.
    current: Vec<Option<(i32, u64)>>,
    /// How many slots wait.
    waiting: usize,
}

impl ByAddedPriority {
    /// Without aging.
    pub fn new() -> Self {
        Self::default()
    }

    /// With aging: a step of priority is worth so much waiting. With a second a key of priority -100 comes before those of
    /// priority 0 that were added 100 seconds after it. Zero: no aging.
    ///
    /// ```
    /// use kubewire_workqueue::{ByAddedPriority, Queue, ratelimit::ManualClock};
    /// use std::time::Duration;
    ///
    /// let time = ManualClock::new();
    /// let order = ByAddedPriority::new().aging(Duration::from_secs(1));
    /// let queue = Queue::builder().clock(time.clock()).prioritized(order).build();
    /// queue.add_at_priority("old and low", -100);
    /// time.advance(Duration::from_secs(99));
    /// queue.add_at_priority("high", 0);
    /// time.advance(Duration::from_secs(2));
    /// queue.add_at_priority("high, but late", 0);
    /// let got: Vec<_> = std::iter::from_fn(|| queue.try_get().ok()).map(|key| key.to_string()).collect();
    /// assert_eq!(got, ["high", "old and low", "high, but late"]);
    /// ```
    #[must_use = "it changes nothing in place"]
    pub fn aging(self, step: Duration) -> Self {
        // Durations of the clock are far below 2^95 ns, so that no rank overflows.
        Self { step: i128::from(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX)), ..self }
    }

    /// What comes first has the smallest. It never changes while a key waits at one priority, so that nothing has to be
    /// moved as time passes.
    fn rank(&mut self, priority: i32, since: Instant) -> i128 {
        if self.step == 0 {
            return -i128::from(priority);
        }
        let start = *self.start.get_or_insert(since);
        let nanos = |duration: Duration| i128::from(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        let waits_since = nanos(since.saturating_duration_since(start)) - nanos(start.saturating_duration_since(since));
        waits_since - i128::from(priority) * self.step
    }

    fn enter(&mut self, slot: Slot, priority: i32, since: Instant) {
        let (rank, number) = (self.rank(priority, since), self.pushed);
        self.pushed += 1;
        if self.current.len() <= slot.0 as usize {
            self.current.resize(slot.0 as usize + 1, None);
        }
        self.current[slot.0 as usize] = Some((priority, number));
        self.heap.push(Reverse((rank, number, slot)));
    }

    /// Keeps what was passed over from piling up: at most as much as what waits, and a little.
    fn tidy(&mut self) {
        if self.heap.len() > 2 * self.waiting + 64 {
            let current = &self.current;
            self.heap.retain(|Reverse((_, number, slot))| {
                current[slot.0 as usize].is_some_and(|(_, counts)| counts == *number)
            });
        }
    }
}

impl<K> Order<K> for ByAddedPriority {
    fn push(&mut self, item: Item<'_, K>) {
        self.enter(item.slot, item.priority, item.since);
        self.waiting += 1;
    }

    fn touch(&mut self, item: Item<'_, K>) {
        if let Some(Some((priority, _))) = self.current.get(item.slot.0 as usize)
            && item.priority > *priority
        {
            self.enter(item.slot, item.priority, item.since);
            self.tidy();
        }
    }

    fn pop(&mut self) -> Option<Slot> {
        while let Some(Reverse((_, number, slot))) = self.heap.pop() {
            let current = &mut self.current[slot.0 as usize];
            if current.is_some_and(|(_, counts)| counts == number) {
                *current = None;
                self.waiting -= 1;
                if self.waiting == 0 {
                    self.heap.clear();
                    if self.heap.capacity().max(self.current.capacity()) > KEPT_CAPACITY {
                        (self.heap, self.current) = (BinaryHeap::new(), Vec::new());
                    }
                }
                return Some(slot);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_priority_come_out_as_they_went_in() {
        let mut order = ByPriority::new(|key: &u32| key % 2);
        for (slot, key) in [(1, 0), (3, 1), (7, 1), (5, 1), (9, 0)] {
            order.push(Item { slot: Slot(slot), key: &key, priority: 0, since: Instant::now() });
        }
        let slots: Vec<_> = std::iter::from_fn(|| Order::<u32>::pop(&mut order)).map(|slot| slot.0).collect();
        assert_eq!(slots, [3, 7, 5, 1, 9]);
    }
}
