//! A store that tells its whole content after every write.

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::Equivalent;

use crate::Store;

/// Pushes the whole list after every write, as client-go's `UndeltaStore`: for whoever wants full states and not
/// changes. Reading pushes nothing. Cloning gives another handle to the same content.
///
/// ```
/// use std::sync::mpsc;
/// use kubewire_indexer::{Store, UndeltaStore};
///
/// let (sender, states) = mpsc::channel();
/// let store = UndeltaStore::new(Store::new(), move |state| drop(sender.send(state)));
/// store.add("a", 1);
/// store.delete(&"a");
/// assert_eq!(states.try_iter().collect::<Vec<_>>(), [vec![1], vec![]]);
/// ```
///
/// The function is called in the writer's thread, without a lock. Of two writes at the same time both may push the
/// state after the later one, and the pushes may come in either order. A panic of it is caught and logged.
///
/// Cost: O(n) for each write.
pub struct UndeltaStore<K, V> {
    store: Store<K, V>,
    push: Arc<dyn Fn(Vec<V>) + Send + Sync>,
    panics: Arc<AtomicU64>,
}

impl<K: Clone + Eq + Hash, V: Clone> UndeltaStore<K, V> {
    /// Pushes the values of this store after each write that is made through the new one.
    pub fn new(store: Store<K, V>, push: impl Fn(Vec<V>) + Send + Sync + 'static) -> Self {
        Self { store, push: Arc::new(push), panics: Arc::default() }
    }

    /// The store beneath, for reading: what is written to it directly is not pushed.
    pub fn store(&self) -> &Store<K, V> {
        &self.store
    }

    /// Adds or replaces a value, and pushes.
    pub fn add(&self, key: K, value: V) {
        self.store.add(key, value);
        self.push();
    }

    /// The same as [`add`](Self::add).
    pub fn update(&self, key: K, value: V) {
        self.add(key, value);
    }

    /// Removes a value, and pushes, also where there was none.
    pub fn delete<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) {
        self.store.delete(key);
        self.push();
    }

    /// Replaces the whole content, and pushes.
    pub fn replace(&self, entries: impl IntoIterator<Item = (K, V)>, version: &str) {
        self.store.replace_at(entries, version);
        self.push();
    }

    fn push(&self) {
        let list = self.store.list().to_vec();
        if catch_unwind(AssertUnwindSafe(|| (self.push)(list))).is_err() {
            let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
            // One that panics each time writes 17 lines in 100,000 times.
            if panics.is_power_of_two() {
                tracing::error!(panics, "the push function of an undelta store panicked");
            }
        }
    }
}

impl<K, V> Clone for UndeltaStore<K, V> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), push: Arc::clone(&self.push), panics: Arc::clone(&self.panics) }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> fmt::Debug for UndeltaStore<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UndeltaStore").field(&self.store).finish()
    }
}
