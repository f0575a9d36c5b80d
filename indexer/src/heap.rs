//! A keyed heap that hands out the smallest first.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::sync::{Condvar, Mutex};

/// A store that hands out the entry with the smallest priority first, each key once, as client-go's `Heap`.
/// Cloning gives another handle to the same content.
///
/// Among equal priorities the key that came first goes first. [`pop`](Self::pop) blocks the thread; in async code
/// use a work queue with an order of priorities.
///
/// ```
/// use kubewire_indexer::Heap;
///
/// let heap = Heap::new();
/// heap.add("late", 9, 'l')?;
/// heap.add("soon", 1, 's')?;
/// heap.add("late", 0, 'L')?; // moves it to the front
/// assert_eq!(heap.pop(), Some(("late", 'L')));
/// heap.close();
/// assert_eq!(heap.pop(), Some(("soon", 's')));
/// assert_eq!(heap.pop(), None);
/// # Ok::<(), kubewire_indexer::HeapClosed>(())
/// ```
///
/// Cost: O(log n) for each write and pop, under one lock, under which `Eq`, `Hash` and `Clone` of keys and `Ord` and
/// `Clone` of priorities run.
pub struct Heap<K, P, V> {
    inner: Arc<Inner<K, P, V>>,
}

struct Inner<K, P, V> {
    /// Covers the content and whether the heap is closed.
    state: Mutex<State<K, P, V>>,
    /// Told after each add and at the close.
    changed: Condvar,
}

/// The heap is closed: nothing can be added any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the heap is closed: nothing can be added any more")]
pub struct HeapClosed;

/// PURE. Invariant: `places` and `order` name the same keys, at the same places.
struct State<K, P, V> {
    places: HashMap<K, Place<P>>,
    order: BTreeMap<Place<P>, (K, V)>,
    arrivals: u64,
    closed: bool,
}

/// The priority, then the arrival.
type Place<P> = (P, u64);

impl<K: Clone + Eq + Hash, P: Clone + Ord, V> State<K, P, V> {
    /// Adds an entry, or moves and replaces the one of the same key, which goes out.
    fn add(&mut self, key: K, priority: P, value: V) -> Option<(K, V)> {
        let old = self.places.get(&key).cloned();
        let arrival = old.as_ref().map_or(self.arrivals, |place| place.1);
        self.arrivals += 1;
        let place = (priority, arrival);
        let removed = old.and_then(|place| self.order.remove(&place));
        self.places.insert(key.clone(), place.clone());
        self.order.insert(place, (key, value));
        removed
    }

    fn remove(&mut self, key: &K) -> Option<(K, V)> {
        let place = self.places.remove(key)?;
        self.order.remove(&place)
    }

    fn pop(&mut self) -> Option<(K, V)> {
        let (_, (key, value)) = self.order.pop_first()?;
        self.places.remove(&key);
        Some((key, value))
    }
}

impl<K: Clone + Eq + Hash, P: Clone + Ord, V> Heap<K, P, V> {
    /// An empty heap.
    pub fn new() -> Self {
        let state = State { places: HashMap::new(), order: BTreeMap::new(), arrivals: 0, closed: false };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Adds an entry, or replaces the one of the same key and moves it to its new priority.
    pub fn add(&self, key: K, priority: P, value: V) -> Result<(), HeapClosed> {
        self.add_all([(key, priority, value)])
    }

    /// Adds all these in one step, before anybody who waits sees the first of them.
    pub fn add_all(&self, entries: impl IntoIterator<Item = (K, P, V)>) -> Result<(), HeapClosed> {
        let entries: Vec<_> = entries.into_iter().collect();
        let mut state = self.inner.state.lock();
        if state.closed {
            drop(state);
            return Err(HeapClosed);
        }
        let replaced: Vec<_> =
            entries.into_iter().filter_map(|(key, priority, value)| state.add(key, priority, value)).collect();
        drop(state);
        self.inner.changed.notify_all();
        drop(replaced);
        Ok(())
    }

    /// Adds an entry unless there is one of the same key, which stays as it is; says whether it was added.
    pub fn add_if_not_present(&self, key: K, priority: P, value: V) -> Result<bool, HeapClosed> {
        let mut state = self.inner.state.lock();
        let closed = state.closed;
        if closed || state.places.contains_key(&key) {
            // Nothing of the caller's is dropped under the lock.
            drop(state);
            return if closed { Err(HeapClosed) } else { Ok(false) };
        }
        state.add(key, priority, value);
        drop(state);
        self.inner.changed.notify_all();
        Ok(true)
    }

    /// Removes an entry; `None` if there is none of this key.
    pub fn delete(&self, key: &K) -> Option<V> {
        let removed = self.inner.state.lock().remove(key);
        removed.map(|(_, value)| value)
    }

    /// Takes the entry with the smallest priority; waits, blocking the thread, while there is none. `None` when the
    /// heap is closed and empty.
    pub fn pop(&self) -> Option<(K, V)> {
        let mut state = self.inner.state.lock();
        loop {
            if let Some(entry) = state.pop() {
                return Some(entry);
            }
            if state.closed {
                return None;
            }
            self.inner.changed.wait(&mut state);
        }
    }

    /// As [`pop`](Self::pop), without waiting.
    pub fn try_pop(&self) -> Option<(K, V)> {
        self.inner.state.lock().pop()
    }

    /// The value of a key; it stays.
    pub fn get(&self, key: &K) -> Option<V>
    where
        V: Clone,
    {
        let state = self.inner.state.lock();
        let place = state.places.get(key)?;
        state.order.get(place).map(|(_, value)| value.clone())
    }

    /// All values, smallest first; they stay.
    pub fn list(&self) -> Vec<V>
    where
        V: Clone,
    {
        self.inner.state.lock().order.values().map(|(_, value)| value.clone()).collect()
    }

    /// All keys, smallest first.
    pub fn list_keys(&self) -> Vec<K> {
        self.inner.state.lock().order.values().map(|(key, _)| key.clone()).collect()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.inner.state.lock().order.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the heap: nothing can be added, what is there can be taken, and nobody waits any more.
    pub fn close(&self) {
        self.inner.state.lock().closed = true;
        self.inner.changed.notify_all();
    }

    /// Whether the heap is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.state.lock().closed
    }
}

impl<K: Clone + Eq + Hash, P: Clone + Ord, V> Default for Heap<K, P, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, P, V> Clone for Heap<K, P, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K, P, V> fmt::Debug for Heap<K, P, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state.lock();
        let (len, closed) = (state.order.len(), state.closed);
        drop(state);
        f.debug_struct("Heap").field("len", &len).field("closed", &closed).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn entries_come_smallest_first_and_equal_ones_in_the_order_of_arrival() {
        let heap = Heap::new();
        heap.add_all([("a", 3, 'a'), ("b", 1, 'b'), ("c", 3, 'c'), ("d", 2, 'd')]).unwrap();
        assert_eq!(heap.list(), ['b', 'd', 'a', 'c']);
        heap.add("b", 9, 'B').unwrap();
        assert_eq!(heap.len(), 4);
        assert_eq!(heap.get(&"b"), Some('B'));
        assert_eq!(heap.add_if_not_present("c", 0, 'x'), Ok(false));
        assert_eq!(heap.add_if_not_present("e", 0, 'e'), Ok(true));
        assert_eq!(heap.delete(&"nope"), None);
        assert_eq!(heap.delete(&"a"), Some('a'));
        let order: Vec<_> = std::iter::from_fn(|| heap.try_pop()).map(|(_, value)| value).collect();
        assert_eq!(order, ['e', 'd', 'c', 'B']);
        assert!(heap.is_empty() && heap.list_keys().is_empty());
    }

    #[test]
    fn a_pop_that_waits_wakes_at_an_add_and_at_the_close() {
        let heap = Heap::new();
        thread::scope(|scope| {
            let popped = scope.spawn(|| heap.pop());
            heap.add(1, 1, "one").unwrap();
            assert_eq!(popped.join().unwrap(), Some((1, "one")));
            let waiting = [scope.spawn(|| heap.pop()), scope.spawn(|| heap.pop())];
            heap.close();
            assert!(waiting.into_iter().all(|pop| pop.join().unwrap().is_none()));
        });
        assert!(heap.is_closed());
        assert_eq!(heap.add(1, 1, "late"), Err(HeapClosed));
        assert_eq!(heap.add_if_not_present(1, 1, "late"), Err(HeapClosed));
    }

    /// A changed entry of a busy key must not starve behind those that came later.
    #[test]
    fn a_changed_entry_of_the_same_priority_keeps_its_place() {
        let heap = Heap::new();
        heap.add_all([("a", 1, 'a'), ("b", 1, 'b'), ("a", 1, 'A')]).unwrap();
        assert_eq!(heap.list(), ['A', 'b']);
    }

    #[test]
    fn a_close_wakes_who_waits_however_close_the_two_are() {
        for pause in 0..30 {
            let heap = Heap::<u32, u32, u32>::new();
            let begun = AtomicBool::new(false);
            let pop = || {
                begun.store(true, Ordering::SeqCst);
                heap.pop()
            };
            thread::scope(|scope| {
                let popped = scope.spawn(pop);
                while !begun.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                (0..pause).for_each(|_| thread::yield_now());
                heap.close();
                assert_eq!(popped.join().unwrap(), None);
            });
        }
    }

    #[test]
    fn what_was_there_at_the_close_can_still_be_taken() {
        let heap = Heap::new();
        heap.add(1, 1, "one").unwrap();
        heap.close();
        assert_eq!(heap.pop(), Some((1, "one")));
        assert_eq!(heap.pop(), None);
    }
}
