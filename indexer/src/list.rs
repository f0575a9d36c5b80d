//! What a store had at one moment.

use std::fmt;

use crate::slots::{SlotId, Snapshot};

/// All entries of a [`Store`](crate::Store) as they were at one moment, in no order: what client-go's `List` gives, without a copy.
///
/// It shares the store's memory. A writer that changes an entry of it copies the 64 entries around first, once; what
/// is replaced or removed meanwhile lives as long as the list. Reading it takes no lock and counts no references;
/// cloning it is as cheap as making it.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::Store;
///
/// let ages = Store::new();
/// ages.add("ann", Arc::new(7));
/// let list = ages.list();
/// ages.add("bob", Arc::new(9));
///
/// assert_eq!(list.len(), 1);
/// assert!(list.iter().all(|age| **age == 7));
/// let handles: Vec<Arc<i32>> = list.to_vec();
/// # assert_eq!(*handles[0], 7);
/// ```
pub struct List<K, V> {
    snapshot: Snapshot<K, V>,
}

impl<K, V> List<K, V> {
    pub(crate) fn new(snapshot: Snapshot<K, V>) -> Self {
        Self { snapshot }
    }

    /// The number of values. Cost: O(1).
    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        self.entries().map(|(_, value)| value)
    }

    /// The values with their keys.
    pub fn entries(&self) -> impl Iterator<Item = (&K, &V)> {
        self.snapshot.iter().map(|(_, (key, value))| (key, value))
    }

    /// One of the values.
    pub fn first(&self) -> Option<&V> {
        self.iter().next()
    }

    /// The values by themselves. Cost: one allocation, and one clone for each.
    pub fn to_vec(&self) -> Vec<V>
    where
        V: Clone,
    {
        let mut values = Vec::with_capacity(self.len());
        values.extend(self.iter().cloned());
        values
    }
}

impl<K, V> Clone for List<K, V> {
    fn clone(&self) -> Self {
        Self { snapshot: self.snapshot.clone() }
    }
}

impl<K, V: fmt::Debug> fmt::Debug for List<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Clones of the values of a [`List`].
#[derive(Debug)]
pub struct IntoValues<K, V> {
    list: List<K, V>,
    next: SlotId,
    left: usize,
}

impl<K, V: Clone> IntoIterator for List<K, V> {
    type Item = V;
    type IntoIter = IntoValues<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        IntoValues { left: self.len(), list: self, next: 0 }
    }
}

impl<K, V: Clone> Iterator for IntoValues<K, V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        while self.left > 0 {
            let slot = self.next;
            self.next += 1;
            if let Some((_, value)) = self.list.snapshot.get(slot) {
                self.left -= 1;
                return Some(value.clone());
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V: Clone> ExactSizeIterator for IntoValues<K, V> {}
