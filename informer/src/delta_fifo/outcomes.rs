//! PURE. What the store will have when the entries that are out are processed.

use std::hash::BuildHasher;

use kubewire_indexer::{Object, ObjectKey};
use smallvec::SmallVec;

use crate::Deltas;

/// The entries that were taken together: how many, and the state of each key after them.
///
/// A lookup of known objects goes through it first, so that all rules see what they would see if processing took
/// no time.
#[derive(Debug)]
pub(crate) struct Outcomes<O> {
    len: usize,
    /// Of the keys, looked through one after the other: there are at most a few hundred, and making a table of them would
    /// cost each batch what only a lookup has to pay.
    hashes: SmallVec<[u64; 1]>,
    /// Beside `hashes`: `None` where a key is deleted.
    outcomes: SmallVec<[(ObjectKey, Option<O>); 1]>,
}

impl<O> Outcomes<O> {
    /// Of so many entries, where nobody looks up known objects.
    pub(super) fn untold(len: usize) -> Self {
        Self { len, hashes: SmallVec::new(), outcomes: SmallVec::new() }
    }

    /// How many entries are out.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What becomes of a key, if it is out: its state, or `None` where it is deleted.
    pub(super) fn get(&self, hash: u64, key: &ObjectKey) -> Option<Option<&O>> {
        let mut equal = self.hashes.iter().zip(&self.outcomes).filter(|(other, _)| **other == hash);
        equal.find(|(_, (taken, _))| taken == key).map(|(_, (_, outcome))| outcome.as_ref())
    }

    /// The keys that will be known, out of those that are known now.
    pub(super) fn over(&self, mut known: Vec<ObjectKey>, hasher: &impl BuildHasher) -> Vec<ObjectKey> {
        known.retain(|key| self.get(hasher.hash_one(key), key).is_none());
        known.extend(self.outcomes.iter().filter(|(_, outcome)| outcome.is_some()).map(|(key, _)| key.clone()));
        known
    }
}

impl<O: Object> Outcomes<O> {
    pub(super) fn of(entries: &[Deltas<O>]) -> Self {
        let len = entries.len();
        let (mut hashes, mut outcomes) = (SmallVec::with_capacity(len), SmallVec::with_capacity(len));
        for entry in entries {
            if let Some(key) = entry.key() {
                hashes.push(entry.hash());
                outcomes.push((key.clone(), entry.outcome().cloned()));
            }
        }
        Self { len, hashes, outcomes }
    }
}
