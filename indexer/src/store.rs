//! The shell around the state: one lock, taken for short whiles.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, Equivalent};
use parking_lot::RwLock;

use crate::index_definition::Definition;
use crate::prepared::Prepared;
use crate::slots::{SlotId, Snapshot};
use crate::state::{Definitions, Replaced, Row, State};
use crate::{IndexConflict, IndexError, IndexFailure, Indexers, UnknownIndex};

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
/// values are dropped. `Eq`, `Hash` and `Clone` of keys and `Clone` of values run under it, and must not panic.
///
/// An entry costs about 40 bytes beside its key and value, and about 24 bytes in each index.
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
        self.replace_all(entries, Some(version.to_owned()));
    }

    /// Remembers a version, as a bookmark of a watch tells it.
    pub fn bookmark(&self, version: &str) {
        let version = version.to_owned();
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
    /// Cost: O(n) clones, without the lock; other readers and writers do not wait for it.
    pub fn list(&self) -> Vec<V> {
        self.all(|_, value| value.clone())
    }

    /// All keys as of one moment, in no order. Cost as of [`list`](Self::list).
    pub fn list_keys(&self) -> Vec<K> {
        self.all(|key, _| key.clone())
    }

    /// All entries as of one moment, in no order. Cost as of [`list`](Self::list).
    pub fn entries(&self) -> Vec<(K, V)> {
        self.all(|key, value| (key.clone(), value.clone()))
    }

    /// The values for which `wanted` says yes, as of one moment, in no order. Only those are cloned, and the
    /// function is called without the lock. Cost: O(n).
    pub fn list_where(&self, mut wanted: impl FnMut(&K, &V) -> bool) -> Vec<V> {
        let snapshot = self.inner.state.read().snapshot();
        let wanted = snapshot.iter().filter(|(_, (key, value))| wanted(key, value));
        wanted.map(|(_, (_, value))| value.clone()).collect()
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

    /// Adds indices, at any time. When it returns, all values that are there are filed in them. If a name is
    /// taken, or given twice, nothing is added.
    ///
    /// Cost: O(n) calls of the new functions, without the lock; readers and writers go on meanwhile, and the new
    /// indices are [unknown](UnknownIndex) to readers until they are complete.
    pub fn add_indexers(&self, indexers: Indexers<V>) -> Result<(), IndexConflict> {
        let new: Vec<_> = indexers
            .into_functions()
            .into_iter()
            .map(|(name, function)| Arc::new(Definition::new(name, function)))
            .collect();
        let (range, snapshot) = self.append(new)?;
        let definitions = self.definitions();
        // Writers file their entries in the new indices from here on. What is left are the entries from before.
        let there: Vec<_> = snapshot.iter().collect();
        let mut prepared = Prepared::default();
        for index in range.clone() {
            for entries in there.chunks(FILED_AT_ONCE) {
                prepared.clear();
                entries.iter().for_each(|(_, (key, value))| definitions[index].prepare(key, value, &mut prepared));
                let mut state = self.inner.state.write();
                for (row, &(slot, _)) in entries.iter().enumerate() {
                    state.file_pending(index, slot, Row { prepared: &prepared, row, width: 1 });
                }
            }
        }
        self.inner.state.write().set_ready(range);
        Ok(())
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
    pub(crate) fn put(&self, key: K, value: V, version: Option<String>) -> Option<V> {
        let hash = self.inner.hasher.hash_one(&key);
        let mut prepared = Prepared::default();
        let mut definitions = self.definitions();
        loop {
            prepare(&definitions, &key, &value, &mut prepared);
            let mut state = self.inner.state.write();
            if state.definitions().len() == definitions.len() {
                let old_version = version.map(|version| state.set_version(version));
                let row = Row { prepared: &prepared, row: 0, width: definitions.len() };
                let (old_key, old_value) = state.put(hash, key, value, row);
                drop(state);
                drop((old_key, old_version));
                return old_value;
            }
            // Indices were added meanwhile. That happens at most once for each call of `add_indexers`.
            definitions = Arc::clone(state.definitions());
            drop(state);
            prepared.clear();
        }
    }

    pub(crate) fn remove<Q>(&self, key: &Q, version: Option<String>) -> Option<V>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        let hash = self.inner.hasher.hash_one(key);
        let mut state = self.inner.state.write();
        let old_version = version.map(|version| state.set_version(version));
        let (old_key, old_value) = state.remove(hash, key);
        drop(state);
        drop((old_key, old_version));
        old_value
    }

    /// Removes a value if it is the expected one. The function runs under the lock: it must not be a user's.
    pub(crate) fn remove_if<Q>(&self, key: &Q, expected: impl FnOnce(&V) -> bool)
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        let hash = self.inner.hasher.hash_one(key);
        let mut state = self.inner.state.write();
        let removed = state.get(hash, key).is_some_and(|(_, value)| expected(value)).then(|| state.remove(hash, key));
        drop(state);
        drop(removed);
    }

    pub(crate) fn write(&self, writes: Vec<Write<K, V>>, version: Option<String>) -> Vec<Option<V>> {
        let hashes: Vec<u64> = writes.iter().map(|write| self.inner.hasher.hash_one(write.key())).collect();
        let mut prepared = Prepared::default();
        let mut definitions = self.definitions();
        // What was replaced and the keys that were given for deletes: dropped without the lock.
        let replaced: Vec<(Replaced<K, V>, Option<K>)> = loop {
            for write in &writes {
                if let Write::Put(key, value) = write {
                    prepare(&definitions, key, value, &mut prepared);
                }
            }
            let mut state = self.inner.state.write();
            if state.definitions().len() == definitions.len() {
                let mut row = Row { prepared: &prepared, row: 0, width: definitions.len() };
                let commit = |(write, hash)| match write {
                    Write::Put(key, value) => {
                        let replaced = state.put(hash, key, value, row);
                        row.row += 1;
                        (replaced, None)
                    }
                    Write::Delete(key) => (state.remove(hash, &key), Some(key)),
                };
                let replaced = writes.into_iter().zip(hashes).map(commit).collect();
                if let Some(version) = version {
                    state.set_version(version);
                }
                break replaced;
            }
            definitions = Arc::clone(state.definitions());
            drop(state);
            prepared.clear();
        };
        replaced.into_iter().map(|((_, value), _)| value).collect()
    }

    pub(crate) fn replace_all(&self, entries: impl IntoIterator<Item = (K, V)>, version: Option<String>) {
        let mut new = State::new(self.inner.hasher.clone());
        let mut prepared = Prepared::default();
        let mut definitions = self.definitions();
        new.append(definitions.iter().cloned());
        for (key, value) in entries {
            prepared.clear();
            prepare(&definitions, &key, &value, &mut prepared);
            let row = Row { prepared: &prepared, row: 0, width: definitions.len() };
            new.put(self.inner.hasher.hash_one(&key), key, value, row);
        }
        loop {
            let mut state = self.inner.state.write();
            if state.definitions().len() == definitions.len() {
                state.swap(&mut new);
                let old_version = version.map(|version| state.set_version(version));
                drop(state);
                drop((new, old_version));
                return;
            }
            let known = definitions.len();
            definitions = Arc::clone(state.definitions());
            drop(state);
            new.append(definitions[known..].iter().cloned());
            for (index, definition) in definitions.iter().enumerate().skip(known) {
                for (slot, (key, value)) in new.snapshot().iter() {
                    prepared.clear();
                    definition.prepare(key, value, &mut prepared);
                    new.file_pending(index, slot, Row { prepared: &prepared, row: 0, width: 1 });
                }
            }
        }
    }

    /// Appends definitions, unless a name is taken; says where they stand and what was there before them.
    fn append(
        &self,
        new: Vec<Arc<Definition<K, V>>>,
    ) -> Result<(std::ops::Range<usize>, Snapshot<K, V>), IndexConflict> {
        let mut state = self.inner.state.write();
        let first = state.definitions().len();
        for (position, definition) in new.iter().enumerate() {
            let mut taken = state.definitions().iter().chain(&new[..position]);
            if taken.any(|other| other.name == definition.name) {
                let conflict = IndexConflict { name: definition.name.clone() };
                drop(state);
                return Err(conflict);
            }
        }
        state.append(new);
        Ok((first..state.definitions().len(), state.snapshot()))
    }

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
        if members.len() <= LONG {
            return Ok(members.iter().filter_map(|&slot| state.entry(slot)).map(pick).collect());
        }
        let (members, snapshot) = (members.to_vec(), state.snapshot());
        drop(state);
        Ok(members.into_iter().filter_map(|slot| snapshot.get(slot)).map(pick).collect())
    }

    fn all<T>(&self, pick: impl Fn(&K, &V) -> T) -> Vec<T> {
        let snapshot = self.inner.state.read().snapshot();
        let mut all = Vec::with_capacity(snapshot.len());
        all.extend(snapshot.iter().map(|(_, (key, value))| pick(key, value)));
        all
    }
}

/// Results that are cloned under the lock. For more than these it is cheaper for the others to take a snapshot.
const LONG: usize = 512;

/// Entries that `add_indexers` files before it lets others take the lock again.
const FILED_AT_ONCE: usize = 256;

/// Computes one row: the values of one entry in each index.
fn prepare<K: Clone, V>(definitions: &Definitions<K, V>, key: &K, value: &V, prepared: &mut Prepared) {
    definitions.iter().for_each(|definition| definition.prepare(key, value, prepared));
}

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
