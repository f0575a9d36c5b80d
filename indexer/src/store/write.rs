//! Writes: index values are computed first, without the lock, and then everything is committed in one step.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::Equivalent;
use smallvec::SmallVec;

use crate::prepared::Prepared;
use crate::state::{Definitions, Row, State};
use crate::version::Version;
use crate::{Store, Write};

/// So many writes in one step need no allocation of their own.
const FEW: usize = 2;

pub(crate) type Writes<K, V> = SmallVec<[Write<K, V>; FEW]>;

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    pub(crate) fn put(&self, key: K, value: V, version: Option<Version>) -> Option<V> {
        let hash = self.inner.hasher.hash_one(&key);
        let mut prepared = Prepared::reused();
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
                prepared.give_back();
                return old_value;
            }
            // Indices were added meanwhile. That happens at most once for each call of `add_indexers`.
            definitions = Arc::clone(state.definitions());
            drop(state);
            prepared.clear();
        }
    }

    pub(crate) fn remove<Q>(&self, key: &Q, version: Option<Version>) -> Option<V>
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

    pub(crate) fn write(&self, writes: Writes<K, V>, version: Option<Version>) -> Vec<Option<V>> {
        let hashes: SmallVec<[u64; FEW]> = writes.iter().map(|write| self.inner.hasher.hash_one(write.key())).collect();
        let mut prepared = Prepared::reused();
        let mut definitions = self.definitions();
        // What was replaced and the keys that were given for deletes: dropped without the lock.
        let replaced: SmallVec<[_; FEW]> = loop {
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
        prepared.give_back();
        replaced.into_iter().map(|((_, value), _)| value).collect()
    }

    pub(crate) fn replace_all(&self, entries: impl IntoIterator<Item = (K, V)>, version: Option<Version>) {
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
}

/// Computes one row: the values of one entry in each index.
fn prepare<K: Clone, V>(definitions: &Definitions<K, V>, key: &K, value: &V, prepared: &mut Prepared) {
    definitions.iter().for_each(|definition| definition.prepare(key, value, prepared));
}
