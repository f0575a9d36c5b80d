//! The shell around the state: one lock, taken for short whiles.

mod add_indexers;
mod write;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, Equivalent};

use crate::prepared::Prepared;
use crate::slots::SlotId;
use crate::state::{Definitions, State};
use crate::sync::RwLock;
use crate::{IndexConflict, IndexError, IndexFailure, Indexers, List, UnknownIndex};

/// A thread-safe map with named indices, as client-go's `ThreadSafeStore`. It knows nothing of Kubernetes.
///
/// An index files each value under any number of texts ([`IndexFunc`](crate::IndexFunc)), and finds all values under one of them.
/// Indices can be added at any time; a write changes the value and all its indices in one step.
///
/// Values are handed out as clones: store an `Arc` where a value is large. Cloning the store itself gives another
/// handle to the same content.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{IndexFunc, Indexers, Store};
///
/// struct Order { customer: String, open: bool }
///
/// let orders = Store::with_indexers(
///     Indexers::none().with("customer", IndexFunc::one(|order: &Arc<Order>| &order.customer)),
/// )?;
/// orders.add(17, Arc::new(Order { customer: "ann".into(), open: true }));
/// orders.add(18, Arc::new(Order { customer: "bob".into(), open: true }));
/// orders.add(19, Arc::new(Order { customer: "ann".into(), open: false }));
///
/// assert_eq!(orders.index_keys("customer", "ann")?, [17, 19]);
/// assert!(orders.by_index("customer", "bob")?[0].open);
/// orders.delete(&17);
/// assert_eq!(orders.index_keys("customer", "ann")?, [19]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Locks and costs
///
/// One readers-writer lock covers all content. It is held for a look-up, for cloning what a look-up found, and
/// for the commit of a write; never while an index function runs, while a list is walked, or while replaced
/// values are dropped. `Eq`, `Hash` and `Clone` of keys and `Clone` of values run under it, and must not use the store.
///
/// Where one of them panics, in a write, nothing was written and the store is as it was: they run before anything changes.
/// A panic of a `Drop` comes after the write.
///
/// An entry costs about 18 bytes beside its key and value, and 20 to 40 bytes in each index in which it has one
/// value.
pub struct Store<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    /// Covers everything the store holds.
    state: RwLock<State<K, V>>,
    /// The state's hasher, so that a key is hashed before the lock is taken.
    hasher: DefaultHashBuilder,
}

/// One write of a [`Store::transaction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<K, V> {
    /// Adds the value, or replaces the one of the same key.
    Put(K, V),
    /// Removes the value of this key, if there is one.
    Delete(K),
}

impl<K, V> Write<K, V> {
    /// The key that is written.
    pub fn key(&self) -> &K {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    /// An empty store without an index.
    pub fn new() -> Self {
        let hasher = DefaultHashBuilder::default();
        Self { inner: Arc::new(Inner { state: RwLock::new(State::new(hasher.clone())), hasher }) }
    }

    /// An empty store with these indices. The error names an index that was given twice.
    pub fn with_indexers(indexers: Indexers<V>) -> Result<Self, IndexConflict> {
        let store = Self::new();
        store.add_indexers(indexers)?;
        Ok(store)
    }

    /// Adds a value, or replaces the one of the same key, which is returned.
    ///
    /// Cost: the index functions, then O(1) and O(values in the indices) under the lock.
    pub fn add(&self, key: K, value: V) -> Option<V> {
        self.put(key, value, None)
    }

    /// The same as [`add`](Self::add), for those who look for the name.
    pub fn update(&self, key: K, value: V) -> Option<V> {
        self.put(key, value, None)
    }

    /// Removes a value, which is returned. A key that is missing is no error.
    pub fn delete<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> Option<V> {
        self.remove(key, None)
    }

    /// Makes all these writes in one step, in order: a reader sees all of them or none.
    ///
    /// Returns, for each write, the value that it replaced or removed.
    pub fn transaction(&self, writes: impl IntoIterator<Item = Write<K, V>>) -> Vec<Option<V>> {
        self.write(writes.into_iter().collect(), None)
    }

    /// Replaces the whole content in one step: a reader sees the old content or the new one. Where a key comes
    /// twice, the later entry counts.
    ///
    /// Cost: O(n), without the lock; under the lock O(1). The old content is dropped after the lock.
    pub fn replace(&self, entries: impl IntoIterator<Item = (K, V)>) {
        self.replace_all(entries, None);
    }

    /// As [`replace`](Self::replace), and remembers the version of the list.
    pub fn replace_at(&self, entries: impl IntoIterator<Item = (K, V)>, version: &str) {
        self.replace_all(entries, Some(version.into()));
    }

    /// Remembers a version, as a bookmark of a watch tells it.
    pub fn bookmark(&self, version: &str) {
        let version = version.into();
        let old = self.inner.state.write().set_version(version);
        drop(old);
    }

    /// The version that the store was told last, by a list, a bookmark, or a write of an object that has one. It
    /// is not compared with the one before, so that it may go down. Empty at first.
    pub fn last_version(&self) -> String {
        self.inner.state.read().version().to_owned()
    }

    /// The value of a key.
    ///
    /// Cost: O(1); one clone.
    pub fn get<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> Option<V> {
        let hash = self.inner.hasher.hash_one(key);
        self.inner.state.read().get(hash, key).map(|(_, value)| value.clone())
    }

    /// Whether there is a value of this key.
    pub fn contains<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> bool {
        let hash = self.inner.hasher.hash_one(key);
        self.inner.state.read().get(hash, key).is_some()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.inner.state.read().len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values as of one moment, in no order.
    ///
    /// Cost: one reference count for each 8,192 values. Other readers and writers do not wait for whoever walks it.
    pub fn list(&self) -> List<K, V> {
        List::new(self.inner.state.read().snapshot())
    }

    /// All keys as of one moment, in no order. Cost: O(n) clones, without the lock.
    pub fn list_keys(&self) -> Vec<K> {
        self.all(|key, _| key.clone())
    }

    /// All entries as of one moment, in no order. Cost: O(n) clones, without the lock.
    pub fn entries(&self) -> Vec<(K, V)> {
        self.all(|key, value| (key.clone(), value.clone()))
    }

    /// The values for which `wanted` says yes, as of one moment, in no order. Only those are cloned, and the
    /// function is called without the lock. Cost: O(n).
    pub fn list_where(&self, mut wanted: impl FnMut(&K, &V) -> bool) -> Vec<V> {
        let list = self.list();
        list.entries().filter(|(key, value)| wanted(key, value)).map(|(_, value)| value.clone()).collect()
    }

    /// The values that share at least one value of the index with the given one, each once, in no order. The
    /// given one need not be stored.
    ///
    /// Cost: the index function, then one clone for each result.
    pub fn index(&self, name: &str, value: &V) -> Result<Vec<V>, IndexError> {
        let prepared = self.prepare_one(name, value)?;
        let state = self.inner.state.read();
        let (_, index) = state.index(name).ok_or_else(|| unknown(name))?;
        let mut slots: Vec<SlotId> = prepared.get(0, 1, 0).flat_map(|value| index.members(value)).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        Ok(slots.into_iter().filter_map(|slot| state.entry(slot)).map(|(_, value)| value.clone()).collect())
    }

    /// The values that the index would give to this value, sorted, each once. It need not be stored.
    pub fn index_values(&self, name: &str, value: &V) -> Result<Vec<String>, IndexError> {
        let prepared = self.prepare_one(name, value)?;
        Ok(prepared.get(0, 1, 0).map(str::to_owned).collect())
    }

    /// The values that the index files under this text, in no order.
    ///
    /// Cost: one clone for each result, under the lock.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<V>, UnknownIndex> {
        self.members(name, value, |(_, value)| value.clone())
    }

    /// How many values the index files under this text. Cost: O(1).
    pub fn count_by_index(&self, name: &str, value: &str) -> Result<usize, UnknownIndex> {
        let state = self.inner.state.read();
        let (_, index) = state.index(name).ok_or_else(|| unknown(name))?;
        Ok(index.members(value).len())
    }

    /// The keys of the values that the index files under this text, sorted.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<K>, UnknownIndex>
    where
        K: Ord,
    {
        let mut keys = self.members(name, value, |(key, _)| key.clone())?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// The texts under which the index files anything, in no order; none if there is no such index.
    pub fn list_index_func_values(&self, name: &str) -> Vec<Arc<str>> {
        let state = self.inner.state.read();
        state.index(name).map(|(_, index)| index.values().cloned().collect()).unwrap_or_default()
    }

    /// The names of the indices, in the order in which they were added.
    pub fn indexer_names(&self) -> Vec<Arc<str>> {
        self.inner.state.read().ready_names().cloned().collect()
    }

    /// The index functions that have failed or panicked for an object: for each how often, and how it did last.
    /// The same is logged, at growing distances.
    pub fn index_failures(&self) -> Vec<IndexFailure<K>> {
        self.definitions().iter().filter_map(|definition| definition.failure()).collect()
    }

    /// Checks that the store is sound: every look-up finds its entry, and every index holds exactly the values
    /// that its function gives now. For tests. Says what is broken.
    ///
    /// Cost: O(n), under the lock for all but the index functions. Concurrent writes are no error.
    pub fn validate(&self) -> Result<(), String> {
        let (definitions, filed) = {
            let state = self.inner.state.read();
            state.validate()?;
            let filed: Vec<_> =
                state.filed().map(|((key, value), filed)| (key.clone(), value.clone(), filed)).collect();
            (Arc::clone(state.definitions()), filed)
        };
        for (position, definition) in definitions.iter().enumerate() {
            for (key, value, filed) in &filed {
                let mut prepared = Prepared::default();
                match definition.call(value, &mut prepared) {
                    Ok(()) => prepared.accept(),
                    Err(_) => prepared.refuse(),
                }
                if !filed[position].iter().map(String::as_str).eq(prepared.get(0, 1, 0)) {
                    let key = self.inner.hasher.hash_one(key);
                    return Err(format!(
                        "state 4: index {}: the entry with key hash {key:x} is filed under {:?}, its function gives {:?}",
                        definition.name,
                        filed[position],
                        prepared.get(0, 1, 0).collect::<Vec<_>>()
                    ));
                }
            }
        }
        Ok(())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    fn definitions(&self) -> Definitions<K, V> {
        Arc::clone(self.inner.state.read().definitions())
    }

    /// The values of one index for a value that need not be stored.
    fn prepare_one(&self, name: &str, value: &V) -> Result<Prepared, IndexError> {
        let definition = {
            let state = self.inner.state.read();
            state.index(name).map(|(definition, _)| Arc::clone(definition)).ok_or_else(|| unknown(name))?
        };
        let mut prepared = Prepared::default();
        definition
            .call(value, &mut prepared)
            .map_err(|source| IndexError::Function { name: definition.name.clone(), source })?;
        prepared.accept();
        Ok(prepared)
    }

    pub(crate) fn members<T>(
        &self,
        name: &str,
        value: &str,
        pick: impl Fn(&(K, V)) -> T,
    ) -> Result<Vec<T>, UnknownIndex> {
        let state = self.inner.state.read();
        let (_, index) = state.index(name).ok_or_else(|| unknown(name))?;
        let members = index.members(value);
        let mut found = Vec::with_capacity(members.len());
        if members.len() <= LONG {
            found.extend(members.iter().filter_map(|&slot| state.entry(slot)).map(pick));
            return Ok(found);
        }
        let (members, snapshot) = (members.to_vec(), state.snapshot());
        drop(state);
        found.extend(members.into_iter().filter_map(|slot| snapshot.get(slot)).map(pick));
        Ok(found)
    }

    fn all<T>(&self, pick: impl Fn(&K, &V) -> T) -> Vec<T> {
        let list = self.list();
        let mut all = Vec::with_capacity(list.len());
        all.extend(list.entries().map(|(key, value)| pick(key, value)));
        all
    }
}

/// Results that are cloned under the lock. For more than these it is cheaper for the others to take a snapshot.
const LONG: usize = 512;

fn unknown(name: &str) -> UnknownIndex {
    UnknownIndex { name: Arc::from(name) }
}

impl<K, V> Clone for Store<K, V> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Default for Store<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Eq + Hash, V: Clone> fmt::Debug for Store<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, names): (_, Vec<_>) = {
            let state = self.inner.state.read();
            (state.len(), state.ready_names().cloned().collect())
        };
        f.debug_struct("Store").field("len", &len).field("indexers", &names).finish_non_exhaustive()
    }
}
