//! Writes: index values are computed first, without the lock. Under it the places are found, which calls `Eq` and `Clone`
//! of keys and values, and only then everything is committed in one step, without user code: a panic leaves all as it was.
//!
//! What is a user's is owned outside of the lock's guard, so that a panic drops it without the lock.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::Equivalent;
use smallvec::SmallVec;

use crate::prepared::Prepared;
use crate::slots::{Copied, SlotId};
use crate::state::{Definitions, Row, State};
use crate::version::Version;
use crate::{Store, Write};

/// So many writes in one step need no allocation of their own.
const FEW: usize = 2;

pub(crate) type Writes<K, V> = SmallVec<[Write<K, V>; FEW]>;
type Hashes = SmallVec<[u64; FEW]>;

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    pub(crate) fn put(&self, key: K, value: V, version: Option<Version>) -> Option<V> {
        let hash = self.inner.hasher.hash_one(&key);
        let mut prepared = Prepared::reused();
        let mut definitions = self.definitions();
        let mut copied = Copied::new();
        loop {
            prepare(&definitions, &key, &value, &mut prepared);
            let mut state = self.inner.state.write();
            if state.definitions().len() == definitions.len() {
                let at = state.find_to_write(hash, &key, &mut copied);
                state.reserve(at.is_none().into(), &mut copied);
                let old_version = version.map(|version| state.set_version(version));
                let row = Row { prepared: &prepared, row: 0, width: definitions.len() };
                let (_, (old_key, old_value)) = state.put(at, hash, key, value, row);
                drop(state);
                drop((old_key, old_version, copied));
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
        let mut copied = Copied::new();
        let mut state = self.inner.state.write();
        let at = state.find_to_write(hash, key, &mut copied);
        let old_version = version.map(|version| state.set_version(version));
        let (old_key, old_value) = at.map(|slot| state.remove(slot, hash)).unwrap_or_default();
        drop(state);
        drop((old_key, old_version, copied));
        old_value
    }

    /// Removes a value if it is the expected one. The function runs under the lock: it must not be a user's.
    pub(crate) fn remove_if<Q>(&self, key: &Q, expected: impl FnOnce(&V) -> bool)
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        let hash = self.inner.hasher.hash_one(key);
        let mut copied = Copied::new();
        let mut state = self.inner.state.write();
        let is_expected = state.get(hash, key).is_some_and(|(_, value)| expected(value));
        let at = if is_expected { state.find_to_write(hash, key, &mut copied) } else { None };
        let removed = at.map(|slot| state.remove(slot, hash));
        drop(state);
        drop((removed, copied));
    }

    pub(crate) fn write(&self, writes: Writes<K, V>, version: Option<Version>) -> Vec<Option<V>> {
        let hashes: Hashes = writes.iter().map(|write| self.inner.hasher.hash_one(write.key())).collect();
        let firsts = first_of_same_key(&writes, &hashes);
        let mut prepared = Prepared::reused();
        let mut definitions = self.definitions();
        let mut copied = Copied::new();
        // What was replaced and the keys that were given for deletes: dropped without the lock.
        let replaced: SmallVec<[_; FEW]> = loop {
            for write in &writes {
                if let Write::Put(key, value) = write {
                    prepare(&definitions, key, value, &mut prepared);
                }
            }
            let mut state = self.inner.state.write();
            if state.definitions().len() == definitions.len() {
                // Of each write that is the first of its key, where that is.
                let mut places: SmallVec<[Option<SlotId>; FEW]> = SmallVec::with_capacity(writes.len());
                for (at, write) in writes.iter().enumerate() {
                    let is_first = firsts[at] == at;
                    places.push(is_first.then(|| state.find_to_write(hashes[at], write.key(), &mut copied)).flatten());
                }
                state.reserve(places.iter().filter(|place| place.is_none()).count(), &mut copied);
                let mut row = Row { prepared: &prepared, row: 0, width: definitions.len() };
                let commit = |(at, write)| {
                    let (place, hash): (&mut Option<SlotId>, u64) = (&mut places[firsts[at]], hashes[at]);
                    match write {
                        Write::Put(key, value) => {
                            let (slot, replaced) = state.put(*place, hash, key, value, row);
                            *place = Some(slot);
                            row.row += 1;
                            (replaced, None)
                        }
                        Write::Delete(key) => {
                            (place.take().map(|slot| state.remove(slot, hash)).unwrap_or_default(), Some(key))
                        }
                    }
                };
                let replaced = writes.into_iter().enumerate().map(commit).collect();
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
            let hash = self.inner.hasher.hash_one(&key);
            let at = new.find_to_write(hash, &key, &mut Copied::new());
            new.put(at, hash, key, value, row);
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

/// For each write the first one of the same key: itself for most. Compares keys of one hash only.
fn first_of_same_key<K: Eq, V>(writes: &[Write<K, V>], hashes: &[u64]) -> SmallVec<[usize; FEW]> {
    let mut firsts: SmallVec<[usize; FEW]> = (0..writes.len()).collect();
    let mut by_hash = firsts.clone();
    by_hash.sort_unstable_by_key(|&at| (hashes[at], at));
    for same_hash in by_hash.chunk_by(|&a, &b| hashes[a] == hashes[b]) {
        for (n, &at) in same_hash.iter().enumerate() {
            let same = |&&before: &&usize| firsts[before] == before && writes[before].key() == writes[at].key();
            if let Some(&before) = same_hash[..n].iter().find(same) {
                firsts[at] = before;
            }
        }
    }
    firsts
}

/// Computes one row: the values of one entry in each index.
fn prepare<K: Clone, V>(definitions: &Definitions<K, V>, key: &K, value: &V, prepared: &mut Prepared) {
    definitions.iter().for_each(|definition| definition.prepare(key, value, prepared));
}
