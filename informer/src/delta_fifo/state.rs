//! PURE. The rules of the delta FIFO; client-go's `DeltaFIFO` and `RealFIFO` are two policies of it.
//!
//! Invariants, checked by `validate`:
//! - I1: where deltas merge, `places` has exactly the keys that wait, each with the place of its one entry;
//!   elsewhere it is empty.
//! - I2: an entry has at least one delta; one without a key has exactly one, of a kind that concerns more than
//!   one object, and only in `Delivery::InOrder`.
//! - I3: where deltas merge, no entry has two deletions one behind the other; elsewhere each has one delta.
//! - I4: in `Delivery::Coalescing` an entry has at most three deltas, and no two of them that are no deletions
//!   stand side by side.
//! - I5: what is left of the first list waits or is out: `initial_left <= waiting + taken`.
//! - I6: the marks of versions lie behind the place up to which everything is done.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use kubewire_indexer::{Deleted, Object, ObjectKey};

use super::join::join;
use super::outcomes::Outcomes;
use super::versions::Versions;
use crate::delta::Entries;
use crate::{Admitted, Delivery, Delta, Deltas, KnownObjects, Received, Replacement};

/// The lookup into what is stored, where there is one.
type Known<'a, O> = Option<&'a dyn KnownObjects<O>>;

/// Everything that a delta FIFO remembers.
#[derive(Debug)]
pub(crate) struct State<O> {
    delivery: Delivery,
    /// Whether the objects of a list come as `Replaced` rather than `Sync`, where deltas merge.
    emit_replaced: bool,
    /// The entries in the order in which they are taken.
    waiting: VecDeque<Deltas<O>>,
    /// The place of the first of `waiting`. Places count all entries there ever were.
    front: u64,
    /// Where deltas merge: the place of each key's entry.
    places: HashTable<Place>,
    /// Of the keys. An entry keeps the hash of its own, so that it is computed once.
    hasher: DefaultHashBuilder,
    /// Room for telling whether keys differ, where deltas do not merge. Empty between two takes.
    distinct: HashTable<usize>,
    /// What is out: the next take waits until it is finished.
    taken: Option<Outcomes<O>>,
    /// Whether anything was put in, or a first list taken.
    populated: bool,
    /// How many entries of the first list are not finished.
    initial_left: usize,
    versions: Versions,
    closed: bool,
    /// What was merged away; the shell drops it when it has unlocked.
    garbage: Vec<Delta<O>>,
}

/// Where the entry of a key waits.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Of the key, so that a table that grows reads no key.
    hash: u64,
    number: u64,
}

/// What a take gives.
#[derive(Debug)]
pub(crate) struct Taken<O> {
    pub(crate) entries: Entries<O>,
    /// Whether they belong to the time before the FIFO was synced.
    pub(crate) initial: bool,
}

/// What has changed by finishing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    /// It has become synced.
    pub(crate) synced: bool,
    /// The applied version has moved.
    pub(crate) version: bool,
    /// More waits.
    pub(crate) more: bool,
}

impl<O: Object> State<O> {
    pub(crate) fn new(delivery: Delivery, emit_replaced: bool) -> Self {
        Self {
            delivery,
            emit_replaced,
            waiting: VecDeque::new(),
            front: 0,
            places: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            distinct: HashTable::new(),
            taken: None,
            populated: false,
            initial_left: 0,
            versions: Versions::default(),
            closed: false,
            garbage: Vec::new(),
        }
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.populated && self.initial_left == 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// What was merged away since the last call.
    pub(crate) fn take_garbage(&mut self) -> Vec<Delta<O>> {
        std::mem::take(&mut self.garbage)
    }

    /// An object was given and not taken. As in client-go this ends the wait for a first list, but for a
    /// deletion where deltas merge.
    pub(crate) fn refuse(&mut self, deletion: bool) {
        self.populated |= !(deletion && self.delivery.merges());
    }

    pub(crate) fn add(&mut self, item: Admitted<O>) {
        self.populated = true;
        self.push(item.key, Delta::Added(item.received));
    }

    pub(crate) fn update(&mut self, item: Admitted<O>) {
        self.populated = true;
        self.push(item.key, Delta::Updated(item.received));
    }

    /// Where deltas merge, the deletion of a key that neither waits nor is known is dropped. Without known
    /// objects "known" means that it waits.
    pub(crate) fn delete(&mut self, key: ObjectKey, deleted: Deleted<O>, known: Known<'_, O>) {
        self.populated = true;
        let hash = self.hasher.hash_one(&key);
        if self.delivery.merges() && self.place(hash, &key).is_none() && !self.is_known(hash, &key, known) {
            self.garbage.push(Delta::Deleted(deleted));
            return;
        }
        self.push_hashed(hash, key, Delta::Deleted(deleted));
    }

    /// The deletion of a key of which nothing else is known: a tombstone with the newest state there is. Where
    /// deltas do not merge, the consumer finds that state in the store when the entry's turn comes.
    pub(crate) fn delete_key(&mut self, key: ObjectKey, known: Known<'_, O>) {
        let last = match self.place(self.hasher.hash_one(&key), &key) {
            Some(place) => self.entry(place).newest().and_then(Delta::object).cloned(),
            None if self.delivery.merges() => self.known(&key, known),
            None => None,
        };
        self.delete(key.clone(), Deleted::final_state_unknown(key, last), known);
    }

    /// Takes in a list: its objects, and a tombstone for each one that waits or is known and that it lacks.
    pub(crate) fn replace(&mut self, list: Replacement<O>, known: Known<'_, O>) {
        let version = list.resource_version.clone();
        if self.delivery == Delivery::InOrder {
            self.push_whole(Delta::ReplacedAll(Box::new(list)));
        } else {
            let missing = if list.incomplete { Vec::new() } else { self.missing(&list, known) };
            if self.delivery.merges() {
                self.push_listed(list.items);
                self.push_missing(missing);
            } else {
                self.push_missing(missing);
                self.push_listed(list.items);
            }
        }
        if !self.populated {
            self.populated = true;
            self.initial_left = self.waiting.len();
        }
        self.mark_version(&version);
    }

    /// What came of a list before it broke off: nothing is deleted, and the first list is still to come.
    pub(crate) fn replace_part(&mut self, items: Vec<Admitted<O>>) {
        if self.delivery.merges() {
            self.push_listed(items);
        } else {
            self.garbage.extend(items.into_iter().map(|item| Delta::Replaced(item.received)));
        }
    }

    /// Queues every known object again that does not wait.
    pub(crate) fn resync(&mut self, known: Known<'_, O>) {
        if self.delivery == Delivery::InOrder {
            self.push_whole(Delta::SyncAll);
            return;
        }
        let Some(store) = known else { return };
        let waiting = self.waiting_keys();
        for key in self.known_keys(store) {
            if !waiting.contains(&key)
                && let Some(object) = self.known(&key, known)
            {
                self.push(key, Delta::Sync(Received::new(object)));
            }
        }
    }

    pub(crate) fn bookmark(&mut self, resource_version: &str) {
        if self.delivery == Delivery::InOrder {
            self.push_whole(Delta::Bookmark(resource_version.to_owned()));
        }
    }

    /// This version is applied as soon as all that waits now is finished.
    pub(crate) fn mark_version(&mut self, version: &str) {
        let end = self.front + self.waiting.len() as u64;
        self.versions.mark(version, end, self.done());
    }

    pub(crate) fn applied_version(&self) -> &str {
        self.versions.applied()
    }

    /// Takes the first entry; with a `max` above one, as many from the front as may be processed in one go:
    /// no key twice, nothing behind the first list together with it, and what concerns more than one object
    /// alone. `None` where nothing waits, or where something is out.
    pub(crate) fn take(&mut self, max: usize) -> Option<Taken<O>> {
        if self.taken.is_some() || self.waiting.is_empty() {
            return None;
        }
        let initial = !self.has_synced();
        let len = self.batch_len(max);
        let entries: Entries<O> = self.waiting.drain(..len).collect();
        if self.delivery.merges() {
            for (number, entry) in (self.front..).zip(&entries) {
                if let Ok(place) = self.places.find_entry(entry.hash(), |place| place.number == number) {
                    place.remove();
                }
            }
        }
        self.front += entries.len() as u64;
        self.taken = Some(if self.delivery == Delivery::InOrder {
            Outcomes::untold(entries.len())
        } else {
            Outcomes::of(&entries)
        });
        Some(Taken { entries, initial })
    }

    /// What was taken is processed, or given up. The outcomes are for the shell to drop when it has unlocked.
    pub(crate) fn finish(&mut self) -> (Finished, Option<Outcomes<O>>) {
        let taken = self.taken.take();
        let was_synced = self.has_synced();
        self.initial_left = self.initial_left.saturating_sub(taken.as_ref().map_or(0, Outcomes::len));
        let finished = Finished {
            synced: !was_synced && self.has_synced(),
            version: self.versions.advance(self.front),
            more: !self.waiting.is_empty(),
        };
        if self.waiting.is_empty() {
            self.waiting.shrink_to(KEPT_CAPACITY);
            self.places.shrink_to(KEPT_CAPACITY, |place| place.hash);
        }
        (finished, taken)
    }

    /// The place up to which everything is finished.
    fn done(&self) -> u64 {
        self.front - self.taken.as_ref().map_or(0, Outcomes::len) as u64
    }

    fn entry(&self, place: u64) -> &Deltas<O> {
        &self.waiting[(place - self.front) as usize]
    }

    fn push(&mut self, key: ObjectKey, delta: Delta<O>) {
        self.push_hashed(self.hasher.hash_one(&key), key, delta);
    }

    fn push_hashed(&mut self, hash: u64, key: ObjectKey, delta: Delta<O>) {
        if self.delivery.merges() {
            let Self { places, waiting, front, garbage, .. } = self;
            let index = |place: &Place| (place.number - *front) as usize;
            let is_it = |place: &Place| place.hash == hash && waiting[index(place)].key() == Some(&key);
            match places.entry(hash, is_it, |place| place.hash) {
                Entry::Occupied(place) => {
                    let list = waiting[index(place.get())].list_mut();
                    join(list, delta, self.delivery == Delivery::Coalescing, garbage);
                    return;
                }
                Entry::Vacant(vacant) => {
                    vacant.insert(Place { hash, number: *front + waiting.len() as u64 });
                }
            }
        }
        self.waiting.push_back(Deltas::new(key, hash, delta));
    }

    /// The place of the entry of this key, where deltas merge.
    fn place(&self, hash: u64, key: &ObjectKey) -> Option<u64> {
        let is_it = |place: &Place| place.hash == hash && self.entry(place.number).key() == Some(key);
        self.places.find(hash, is_it).map(|place| place.number)
    }

    /// Something that concerns more than one object.
    fn push_whole(&mut self, delta: Delta<O>) {
        self.waiting.push_back(Deltas::whole(delta));
    }

    fn push_listed(&mut self, items: Vec<Admitted<O>>) {
        let as_sync = self.delivery.merges() && !self.emit_replaced;
        for Admitted { key, received } in items {
            self.push(key, if as_sync { Delta::Sync(received) } else { Delta::Replaced(received) });
        }
    }

    fn push_missing(&mut self, missing: Vec<(ObjectKey, Option<O>)>) {
        for (key, last) in missing {
            self.push(key.clone(), Delta::Deleted(Deleted::final_state_unknown(key, last)));
        }
    }

    /// What waits or is known and is not in the list, with its newest state: first what waits, but for what
    /// is deleted already, then what is known.
    fn missing(&self, list: &Replacement<O>, known: Known<'_, O>) -> Vec<(ObjectKey, Option<O>)> {
        let listed: HashSet<&ObjectKey> = list.items.iter().map(|item| &item.key).chain(&list.kept).collect();
        let mut missing = Vec::new();
        let mut newest: HashMap<&ObjectKey, &Delta<O>> = HashMap::new();
        let mut order = Vec::new();
        for entry in &self.waiting {
            if let (Some(key), Some(delta)) = (entry.key(), entry.newest())
                && newest.insert(key, delta).is_none()
            {
                order.push(key);
            }
        }
        for key in order {
            if !listed.contains(key) && !newest[key].is_deleted() {
                missing.push((key.clone(), newest[key].object().cloned()));
            }
        }
        if let Some(store) = known {
            for key in self.known_keys(store) {
                if !listed.contains(&key) && !newest.contains_key(&key) {
                    let last = self.known(&key, known);
                    missing.push((key, last));
                }
            }
        }
        missing
    }

    fn waiting_keys(&self) -> HashSet<ObjectKey> {
        self.waiting.iter().filter_map(Deltas::key).cloned().collect()
    }

    /// The keys of the known objects, as if what is out were processed.
    fn known_keys(&self, store: &dyn KnownObjects<O>) -> Vec<ObjectKey> {
        let keys = store.known_keys();
        match &self.taken {
            Some(outcomes) => outcomes.over(keys, &self.hasher),
            None => keys,
        }
    }

    /// A known object, as if what is out were processed.
    fn known(&self, key: &ObjectKey, known: Known<'_, O>) -> Option<O> {
        let store = known?;
        match self.taken.as_ref().and_then(|taken| taken.get(self.hasher.hash_one(key), key)) {
            Some(outcome) => outcome.cloned(),
            None => store.known(key),
        }
    }

    fn is_known(&self, hash: u64, key: &ObjectKey, known: Known<'_, O>) -> bool {
        let Some(store) = known else { return false };
        match self.taken.as_ref().and_then(|taken| taken.get(hash, key)) {
            Some(outcome) => outcome.is_some(),
            None => store.is_known(key),
        }
    }

    /// How many entries from the front may be taken together.
    fn batch_len(&mut self, max: usize) -> usize {
        let max = if self.initial_left > 0 { max.min(self.initial_left) } else { max };
        if max <= 1 {
            return 1;
        }
        if self.delivery.merges() {
            // No key waits twice, and nothing concerns more than one object.
            return max.min(self.waiting.len());
        }
        let Self { waiting, distinct, .. } = self;
        let hash = |&n: &usize| waiting[n].hash();
        let mut is_new = |n: usize| {
            let entry = &waiting[n];
            let is_it = |&other: &usize| waiting[other].key() == entry.key();
            let is_new = entry.key().is_some() && distinct.find(entry.hash(), is_it).is_none();
            if is_new {
                distinct.insert_unique(entry.hash(), n, hash);
            }
            is_new
        };
        let len = (0..max.min(waiting.len())).take_while(|&n| is_new(n)).count().max(1);
        distinct.clear();
        len
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        if self.delivery.merges() {
            assert_eq!(self.places.len(), self.waiting.len(), "I1");
            for (n, entry) in self.waiting.iter().enumerate() {
                let place = entry.key().and_then(|key| self.place(self.hasher.hash_one(key), key));
                assert_eq!(place, Some(self.front + n as u64), "I1");
            }
        } else {
            assert!(self.places.is_empty(), "I1");
        }
        for entry in &self.waiting {
            let list = entry.as_slice();
            let whole = |delta: &Delta<O>| matches!(delta, Delta::ReplacedAll(_) | Delta::SyncAll | Delta::Bookmark(_));
            match entry.key() {
                Some(_) => assert!(!list.is_empty() && !list.iter().any(whole), "I2"),
                None => assert!(list.len() == 1 && whole(&list[0]) && self.delivery == Delivery::InOrder, "I2"),
            }
            assert!(!list.windows(2).any(|pair| pair[0].is_deleted() && pair[1].is_deleted()), "I3");
            assert!(self.delivery.merges() || list.len() == 1, "I3");
            if self.delivery == Delivery::Coalescing {
                assert!(list.len() <= 3, "I4");
                assert!(list.windows(2).all(|pair| pair[0].is_deleted() || pair[1].is_deleted()), "I4");
            }
        }
        let taken = self.taken.as_ref().map_or(0, Outcomes::len);
        assert!(self.initial_left <= self.waiting.len() + taken, "I5");
        self.versions.validate(self.done());
    }
}

/// The room that an empty FIFO keeps, in entries.
const KEPT_CAPACITY: usize = 1024;

#[cfg(test)]
mod tests;
