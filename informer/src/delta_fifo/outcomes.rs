//! PURE. What the store will have when the entries that are out are processed.

use hashbrown::HashMap;
use kubewire_indexer::{Object, ObjectKey};

use crate::Deltas;

/// The entries that were taken together: how many, and the state of each key after them.
///
/// A lookup of known objects goes through it first, so that all rules see what they would see if processing took
/// no time.
#[derive(Debug)]
pub(crate) struct Outcomes<O> {
    len: usize,
    by_key: ByKey<O>,
}

/// `None` where a key is deleted. Mostly one entry is taken at a time.
#[derive(Debug)]
enum ByKey<O> {
    Untold,
    One(ObjectKey, Option<O>),
    Many(HashMap<ObjectKey, Option<O>>),
}

impl<O> Outcomes<O> {
    /// Of so many entries, where nobody looks up known objects.
    pub(super) fn untold(len: usize) -> Self {
        Self { len, by_key: ByKey::Untold }
    }

    /// How many entries are out.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What becomes of a key, if it is out: its state, or `None` where it is deleted.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Option<&O>> {
        match &self.by_key {
            ByKey::Untold => None,
            ByKey::One(taken, outcome) => (taken == key).then_some(outcome.as_ref()),
            ByKey::Many(outcomes) => outcomes.get(key).map(Option::as_ref),
        }
    }

    /// The keys that will be known, out of those that are known now.
    pub(super) fn over(&self, mut known: Vec<ObjectKey>) -> Vec<ObjectKey> {
        known.retain(|key| self.get(key).is_none());
        match &self.by_key {
            ByKey::Untold => {}
            ByKey::One(key, outcome) => known.extend(outcome.is_some().then(|| key.clone())),
            ByKey::Many(outcomes) => {
                known.extend(outcomes.iter().filter(|(_, outcome)| outcome.is_some()).map(|(key, _)| key.clone()));
            }
        }
        known
    }
}

impl<O: Object> Outcomes<O> {
    pub(super) fn of(entries: &[Deltas<O>]) -> Self {
        let outcome = |entry: &Deltas<O>| entry.key().map(|key| (key.clone(), entry.outcome().cloned()));
        let by_key = match entries {
            [entry] => outcome(entry).map_or(ByKey::Untold, |(key, outcome)| ByKey::One(key, outcome)),
            _ => {
                let mut outcomes = HashMap::with_capacity(entries.len());
                outcomes.extend(entries.iter().filter_map(outcome));
                ByKey::Many(outcomes)
            }
        };
        Self { len: entries.len(), by_key }
    }
}
