//! PURE. One's own writes that the store may not have yet: bounded in number and in age.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::mutation_cache::supersedes;
use crate::{Id, ObjectId, ObjectKey, compare_versions};

/// One's own writes, by key. Invariants, checked by [`validate`](Self::validate):
///
/// 1. `entries` and `by_use` name the same keys, each at the time of its last use.
/// 2. There are at most `len_max` entries.
pub(super) struct Overlay<O> {
    entries: HashMap<ObjectKey, Entry<O>>,
    /// The least recently used first.
    by_use: BTreeMap<u64, ObjectKey>,
    /// Counts uses and writes.
    count: u64,
    len_max: usize,
    ttl: Duration,
    /// What was thrown out, to be dropped by the shell without the lock.
    thrown_out: Vec<O>,
}

/// A write.
pub(super) struct Entry<O> {
    /// What was written; `None` where the object of this id is known to be deleted: a tombstone.
    pub(super) object: Option<O>,
    pub(super) id: ObjectId,
    /// Tells this entry from others of its key.
    pub(super) serial: u64,
    used: u64,
    expires: Instant,
}

impl<O: Clone> Clone for Entry<O> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), id: self.id.clone(), ..*self }
    }
}

impl<O> Overlay<O> {
    pub(super) fn new(len_max: usize, ttl: Duration) -> Self {
        Self { entries: HashMap::new(), by_use: BTreeMap::new(), count: 0, len_max, ttl, thrown_out: Vec::new() }
    }

    /// The write of this key, unless it has expired.
    pub(super) fn get(&mut self, key: &ObjectKey, now: Instant) -> Option<&Entry<O>> {
        if self.entries.get(key)?.expires < now {
            self.remove(key);
            return None;
        }
        self.count += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.by_use.remove(&entry.used) {
            entry.used = self.count;
            self.by_use.insert(self.count, key);
        }
        Some(entry)
    }

    /// Remembers what was written, unless something newer is known of its key.
    pub(super) fn mutation(&mut self, object: O, id: ObjectId, now: Instant) {
        let outdated = self.get(&id.key(), now).is_some_and(|known| {
            let (known_id, id) = (known.id.id(), id.id());
            let order = compare_versions(id.resource_version, known_id.resource_version);
            // Nothing can come of an object after its own deletion, whatever the version.
            let dead = known.object.is_none() && (id.uid == known_id.uid || order == Some(Ordering::Equal));
            dead || order == Some(Ordering::Less)
        });
        if outdated {
            self.thrown_out.push(object);
        } else {
            self.insert(Some(object), id, now);
        }
    }

    /// The store has this state: what was written is no longer needed if it is not newer.
    pub(super) fn on_add_or_update(&mut self, id: Id<'_>, now: Instant) {
        let key = id.key();
        if self.get(&key, now).is_some_and(|known| supersedes(id, known.id.id())) {
            self.remove(&key);
        }
    }

    /// The object was deleted in this state. Leaves a tombstone, so that a write which is told late is not
    /// believed.
    pub(super) fn on_delete(&mut self, id: Id<'_>, now: Instant) {
        let newer = self.get(&id.key(), now).is_some_and(|known| {
            let known = known.id.id();
            known.uid != id.uid && !supersedes(id, known)
        });
        if !newer {
            self.insert(None, ObjectId::new(id), now);
        }
    }

    /// Removes the write of this key, if it is still this one.
    pub(super) fn remove_obsolete(&mut self, key: &ObjectKey, serial: u64) {
        if self.entries.get(key).is_some_and(|entry| entry.serial == serial) {
            self.remove(key);
        }
    }

    /// All that has not expired; counts as no use.
    pub(super) fn entries(&self, now: Instant) -> impl Iterator<Item = &Entry<O>> {
        self.entries.values().filter(move |entry| entry.expires >= now)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn take_thrown_out(&mut self) -> Vec<O> {
        std::mem::take(&mut self.thrown_out)
    }

    fn insert(&mut self, object: Option<O>, id: ObjectId, now: Instant) {
        let key = id.key();
        self.remove(&key);
        if self.len_max == 0 {
            self.thrown_out.extend(object);
            return;
        }
        while self.entries.len() >= self.len_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
        }
        self.count += 1;
        let expires = now.checked_add(self.ttl).unwrap_or_else(|| far_future(now));
        self.by_use.insert(self.count, key.clone());
        self.entries.insert(key, Entry { object, id, serial: self.count, used: self.count, expires });
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.thrown_out.extend(entry.object);
        }
    }

    #[cfg(test)]
    pub(super) fn validate(&self) -> Result<(), String> {
        let named = |(used, key): (&u64, &ObjectKey)| self.entries.get(key).is_some_and(|entry| entry.used == *used);
        if self.by_use.len() != self.entries.len() || !self.by_use.iter().all(named) {
            return Err(format!("overlay 1: {:?} and {:?}", self.by_use, self.entries.keys().collect::<Vec<_>>()));
        }
        if self.entries.len() > self.len_max {
            return Err(format!("overlay 2: {} entries", self.entries.len()));
        }
        Ok(())
    }
}

/// For a time to live that no clock can add.
fn far_future(now: Instant) -> Instant {
    const THIRTY_YEARS: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    now.checked_add(THIRTY_YEARS).unwrap_or(now)
}
