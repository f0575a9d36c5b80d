//! From deltas to the store, and to what the handlers are told.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use kubewire_indexer::{Change, Deleted, Indexer, Object, ObjectKey};
use smallvec::{SmallVec, smallvec};

use crate::notification::{Notification, Told};
use crate::{Admitted, Delta, Deltas, Received, Replacement};

/// Applies deltas to an indexer. The store decides what is told, not the kind of the delta: what is in the
/// store is updated, everything else is added.
pub(crate) struct Applier<O> {
    indexer: Indexer<O>,
    /// The versions that the server gave, for those keys whose stored object has another one by a transform.
    /// Empty without such a transform.
    original_versions: HashMap<ObjectKey, Arc<str>>,
    /// Empty between two writes: room for as many as were ever taken together.
    batch: Vec<(ObjectKey, Delta<O>)>,
    changes: Vec<Change<O>>,
    writes: Vec<Write<O>>,
}

impl<O: Object> Applier<O> {
    pub(crate) fn new(indexer: Indexer<O>) -> Self {
        Self { indexer, original_versions: HashMap::new(), batch: Vec::new(), changes: Vec::new(), writes: Vec::new() }
    }

    /// Applies entries that were taken together. `tell` gets what came of it after each write of the store:
    /// entries with one delta are written together, others delta by delta.
    pub(crate) fn apply(
        &mut self,
        entries: impl IntoIterator<Item = Deltas<O>>,
        initial: bool,
        tell: &mut dyn FnMut(Vec<Told<O>>),
    ) {
        let mut batch = std::mem::take(&mut self.batch);
        for entry in entries {
            let (key, list) = entry.into_parts();
            let single = list.len() == 1;
            for delta in list {
                match &key {
                    Some(key) => batch.push((key.clone(), delta)),
                    None => {
                        self.write(&mut batch, initial, tell);
                        self.write_whole(delta, initial, tell);
                    }
                }
                if !single {
                    self.write(&mut batch, initial, tell);
                }
            }
        }
        self.write(&mut batch, initial, tell);
        self.batch = batch;
    }

    /// Writes changes of different keys in one step.
    fn write(&mut self, batch: &mut Vec<(ObjectKey, Delta<O>)>, initial: bool, tell: &mut dyn FnMut(Vec<Told<O>>)) {
        if batch.is_empty() {
            return;
        }
        let (mut changes, mut writes) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.writes));
        for (key, delta) in batch.drain(..) {
            let told_again = matches!(delta, Delta::Sync(_));
            match delta {
                Delta::Added(item) | Delta::Updated(item) | Delta::Replaced(item) | Delta::Sync(item) => {
                    let former = if told_again { None } else { self.remember(&key, item.original_version.clone()) };
                    changes.push(Change::Put { key: key.clone(), object: item.object.clone() });
                    writes.push(Write::Put { key, item, former, told_again });
                }
                Delta::Deleted(deleted) => {
                    let last = match &deleted {
                        Deleted::Known(object) => Some(object.clone()),
                        Deleted::FinalStateUnknown { .. } => None,
                    };
                    self.remember(&key, None);
                    changes.push(Change::Delete { key: key.clone(), last });
                    writes.push(Write::Delete { key, deleted });
                }
                // They have no key.
                Delta::ReplacedAll(_) | Delta::SyncAll | Delta::Bookmark(_) => {}
            }
        }
        let before: SmallVec<[_; 1]> = match changes.pop() {
            Some(only) if changes.is_empty() => smallvec![self.indexer.apply_one(only)],
            last => self.indexer.apply(changes.drain(..).chain(last)).into(),
        };
        tell(writes.drain(..).zip(before).map(|(write, before)| write.told(before, initial)).collect());
        (self.changes, self.writes) = (changes, writes);
    }

    /// Writes what concerns more than one object.
    fn write_whole(&mut self, delta: Delta<O>, initial: bool, tell: &mut dyn FnMut(Vec<Told<O>>)) {
        match delta {
            Delta::ReplacedAll(list) => tell(self.replace(*list, initial)),
            Delta::SyncAll => {
                let told = |(key, object): (ObjectKey, O)| {
                    let notification = Notification::Updated { old: object.clone(), new: object };
                    Told { key, notification, resync: true }
                };
                tell(self.indexer.store().entries().into_iter().map(told).collect());
            }
            Delta::Bookmark(version) => self.indexer.bookmark(&version),
            // They have a key.
            _ => {}
        }
    }

    /// Takes in a list in one step. Told are first the deletions of what it lacks, in the store's order, then its objects
    /// in the order of the list, each against the store as it was before, or against its former state in a list that has
    /// it twice.
    fn replace(&mut self, list: Replacement<O>, initial: bool) -> Vec<Told<O>> {
        let before = self.indexer.store().entries();
        let (gone, staying) = unlisted(&before, &list);
        if !self.original_versions.is_empty() {
            let gone: HashSet<&ObjectKey> = gone.iter().map(|(key, _)| key).collect();
            self.original_versions.retain(|key, _| !gone.contains(key));
        }
        let listed = list.items.iter().map(|item| (item.key.clone(), item.object().clone()));
        self.indexer.replace_entries(staying.into_iter().chain(listed), &list.resource_version);
        let mut told: Vec<_> = gone.into_iter().map(gone_told).collect();
        told.reserve(list.items.len());
        let mut before: HashMap<ObjectKey, O> = before.into_iter().collect();
        for Admitted { key, received: item } in list.items {
            let former = self.remember(&key, item.original_version.clone());
            let old = before.insert(key.clone(), item.object.clone());
            told.push(Write::Put { key, item, former, told_again: false }.told(old, initial));
        }
        told
    }

    /// Notes the version that the server gave to what is now under a key, where the object has another one.
    /// Gives back the former.
    fn remember(&mut self, key: &ObjectKey, version: Option<Arc<str>>) -> Option<Arc<str>> {
        match version {
            Some(version) => self.original_versions.insert(key.clone(), version),
            None if self.original_versions.is_empty() => None,
            None => self.original_versions.remove(key),
        }
    }
}

type Entries<O> = Vec<(ObjectKey, O)>;

/// What the store has and the list has not: what is gone, and what stays nevertheless.
fn unlisted<O: Object>(before: &[(ObjectKey, O)], list: &Replacement<O>) -> (Entries<O>, Entries<O>) {
    let listed: HashSet<&ObjectKey> = list.items.iter().map(|item| &item.key).collect();
    let kept: HashSet<&ObjectKey> = list.kept.iter().collect();
    let unlisted = before.iter().filter(|(key, _)| !listed.contains(key));
    unlisted
        .map(|(key, object)| (key.clone(), object.clone()))
        .partition(|(key, _)| !list.incomplete && !kept.contains(key))
}

fn gone_told<O: Object>((key, last): (ObjectKey, O)) -> Told<O> {
    let deleted = Deleted::final_state_unknown(key.clone(), Some(last));
    Told { key, notification: Notification::Deleted(deleted), resync: false }
}

/// A write of one object, until it is known what was there before.
enum Write<O> {
    Put {
        key: ObjectKey,
        item: Received<O>,
        /// The version that the server gave to the state before, where a transform has changed it.
        former: Option<Arc<str>>,
        /// By a resync.
        told_again: bool,
    },
    Delete {
        key: ObjectKey,
        deleted: Deleted<O>,
    },
}

impl<O: Object> Write<O> {
    /// What it means for the handlers, given what was there before.
    fn told(self, before: Option<O>, initial: bool) -> Told<O> {
        match (self, before) {
            (Self::Put { key, item, .. }, None) => {
                let notification = Notification::Added { object: item.object, is_in_initial_list: initial };
                Told { key, notification, resync: false }
            }
            (Self::Put { key, item, former, told_again }, Some(old)) => {
                let former = former.as_deref().unwrap_or(old.id().resource_version);
                // Without versions nothing proves that nothing has changed.
                let resync = told_again || (!former.is_empty() && former == item.resource_version());
                Told { key, notification: Notification::Updated { old, new: item.object }, resync }
            }
            (Self::Delete { key, deleted }, before) => {
                let deleted = match deleted {
                    Deleted::FinalStateUnknown { key, last: None } => Deleted::FinalStateUnknown { key, last: before },
                    deleted => deleted,
                };
                Told { key, notification: Notification::Deleted(deleted), resync: false }
            }
        }
    }
}

#[cfg(test)]
mod tests;
