//! PURE. The objects of one resource, and what happened to them lately.
//!
//! # Invariants
//! 1. `objects[key].key == key`.
//! 2. The versions in `events` rise strictly, and the first is above `evicted_to`.
//! 3. `evicted_to <= compacted_to`.
//! 4. `superseded_bytes` is the sum of [`Event::superseded_bytes`] over `events`.
//! 5. Undoing `events` from the last to the first is possible: what each says to have made is there, and what it
//!    says to have replaced is what the event before it on the same key made.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kubewire_indexer::ObjectKey;

use crate::Resource;
use crate::stored::{Draft, Stored};
use crate::watch_event::EventKind;

/// One change.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) kind: EventKind,
    /// The state after the change; of a deleted object the last one, at the version of the deletion.
    pub(crate) object: Arc<Stored>,
    /// The state before the change.
    pub(crate) previous: Option<Arc<Stored>>,
    /// The line that tells a watch whose selectors the object left: `DELETED` with the previous state at this
    /// version. Made when the first watch needs it, shared by the others.
    left: OnceLock<Bytes>,
}

impl Event {
    /// The line for a watch whose selectors the object left by this change.
    pub(crate) fn left(&self, resource: &Resource) -> Bytes {
        let Some(previous) = &self.previous else { return Bytes::new() };
        self.left
            .get_or_init(|| previous.at_version(resource, EventKind::Deleted, self.version).event(EventKind::Deleted).0)
            .clone()
    }

    /// What the history holds for this event alone: the state before it, and a deleted object.
    fn superseded_bytes(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |previous| previous.size());
        previous + if self.kind == EventKind::Deleted { self.object.size() } else { 0 }
    }
}

/// How much history is kept of each resource; what is older is forgotten, and requests for it are answered 410.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryLimits {
    pub(crate) events_max: usize,
    /// Of states that only the history holds.
    pub(crate) superseded_bytes_max: usize,
}

#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) resource: Arc<Resource>,
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    events: VecDeque<Arc<Event>>,
    superseded_bytes: usize,
    /// Events up to this version are not kept any more.
    evicted_to: u64,
    /// Requests for versions before this one are refused, as after a compaction of etcd, although a watch that is
    /// open already may still read the events.
    compacted_to: u64,
}

/// The history does not reach back to the version that is asked for; the oldest one that it reaches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooOld(pub(crate) u64);

/// Some objects in the order of their keys.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    /// How many come after the last item; 0 where the page is the last.
    pub(crate) remaining: usize,
}

impl Collection {
    pub(crate) fn new(resource: Arc<Resource>) -> Self {
        Self {
            resource,
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            superseded_bytes: 0,
            evicted_to: 0,
            compacted_to: 0,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The object's new state at this version, and the event that says so.
    pub(crate) fn put(&mut self, draft: Draft, version: u64, limits: HistoryLimits) -> Arc<Stored> {
        let previous = self.objects.get(&draft.key).cloned();
        let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
        let object = Arc::new(draft.commit(&self.resource, kind, version));
        self.objects.insert(object.key.clone(), object.clone());
        self.record(Event { version, kind, object: object.clone(), previous, left: OnceLock::new() }, limits);
        object
    }

    /// Removes the object; its last state, at the version of the deletion.
    pub(crate) fn remove(&mut self, key: &ObjectKey, version: u64, limits: HistoryLimits) -> Option<Arc<Stored>> {
        let previous = self.objects.remove(key)?;
        let kind = EventKind::Deleted;
        let object = Arc::new(previous.at_version(&self.resource, kind, version));
        let event = Event { version, kind, object: object.clone(), previous: Some(previous), left: OnceLock::new() };
        self.record(event, limits);
        Some(object)
    }

    fn record(&mut self, event: Event, limits: HistoryLimits) {
        self.superseded_bytes += event.superseded_bytes();
        self.events.push_back(Arc::new(event));
        while self.events.len() > limits.events_max || self.superseded_bytes > limits.superseded_bytes_max {
            let Some(evicted) = self.events.pop_front() else { break };
            self.superseded_bytes -= evicted.superseded_bytes();
            self.evicted_to = evicted.version;
        }
        self.compacted_to = self.compacted_to.max(self.evicted_to);
    }

    /// Refuses requests for versions before `version` from now on.
    pub(crate) fn compact(&mut self, version: u64) {
        self.compacted_to = self.compacted_to.max(version);
    }

    /// Whether the history reaches back to this version.
    pub(crate) fn reaches(&self, version: u64) -> bool {
        version >= self.evicted_to
    }

    /// The objects as they were at `version`, which the history reaches; no history before `next`.
    pub(crate) fn restore(&mut self, version: u64, next: u64) {
        let undone: Vec<(ObjectKey, Option<Arc<Stored>>)> =
            self.undone(version).into_iter().map(|(key, object)| (key, object.cloned())).collect();
        for (key, object) in undone {
            match object {
                Some(object) => self.objects.insert(key, object),
                None => self.objects.remove(&key),
            };
        }
        self.events.clear();
        self.superseded_bytes = 0;
        self.evicted_to = next;
        self.compacted_to = next;
    }

    /// Whether a new request may go back to `version`.
    pub(crate) fn check_not_compacted(&self, version: u64) -> Result<(), TooOld> {
        if version < self.compacted_to { Err(TooOld(self.compacted_to)) } else { Ok(()) }
    }

    /// Up to `max` of the events after `version`, oldest first.
    pub(crate) fn events_after(&self, version: u64, max: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        if version < self.evicted_to {
            return Err(TooOld(self.evicted_to));
        }
        let first = self.events.partition_point(|event| event.version <= version);
        Ok(self.events.range(first..).take(max).cloned().collect())
    }

    /// How many events there are after `version`, as far as they are kept.
    pub(crate) fn backlog(&self, version: u64) -> usize {
        self.events.len() - self.events.partition_point(|event| event.version <= version)
    }

    /// The objects as they were at `version`: all of them or those of one namespace, those after a key, those that
    /// `wanted` takes, at most `limit` of them.
    ///
    /// Cost: O(objects in the range + events since `version`).
    pub(crate) fn page(
        &self,
        version: u64,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        limit: usize,
        wanted: impl Fn(&Stored) -> bool,
    ) -> Result<Page, TooOld> {
        if version < self.evicted_to {
            return Err(TooOld(self.evicted_to));
        }
        let undone = self.undone(version);
        let from = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let in_range = |key: &ObjectKey| namespace.is_none_or(|namespace| key.namespace() == namespace);
        let range = (from, Bound::Unbounded);
        let mut present =
            self.objects.range(range.clone()).filter(|(key, _)| !undone.contains_key(key)).map(|(_, o)| o).peekable();
        let mut past = undone.range(range).filter_map(|(_, object)| *object).peekable();
        let mut page = Page { items: Vec::new(), remaining: 0 };
        loop {
            let from_past = match (present.peek(), past.peek()) {
                (None, None) => break,
                (Some(present), Some(past)) => past.key < present.key,
                (present, _) => present.is_none(),
            };
            let Some(object) = (if from_past { past.next() } else { present.next() }) else { break };
            if !in_range(&object.key) {
                break;
            }
            if !wanted(object) {
                continue;
            }
            if page.items.len() < limit {
                page.items.push(object.clone());
            } else {
                page.remaining += 1;
            }
        }
        Ok(page)
    }

    /// For each key that changed after `version`, its state at `version`.
    fn undone(&self, version: u64) -> BTreeMap<ObjectKey, Option<&Arc<Stored>>> {
        let first = self.events.partition_point(|event| event.version <= version);
        let mut undone = BTreeMap::new();
        for event in self.events.range(first..) {
            undone.entry(event.object.key.clone()).or_insert(event.previous.as_ref());
        }
        undone
    }

    /// Panics if an invariant does not hold.
    #[cfg(test)]
    pub(crate) fn validate(&self) {
        for (key, object) in &self.objects {
            assert_eq!(&object.key, key, "1");
        }
        let versions: Vec<u64> = self.events.iter().map(|event| event.version).collect();
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]), "2: {versions:?}");
        assert!(versions.first().is_none_or(|first| *first > self.evicted_to), "2: {versions:?} {}", self.evicted_to);
        assert!(self.evicted_to <= self.compacted_to, "3");
        let bytes: usize = self.events.iter().map(|event| event.superseded_bytes()).sum();
        assert_eq!(self.superseded_bytes, bytes, "4");
        let mut state = self.objects.clone();
        for event in self.events.iter().rev() {
            let key = &event.object.key;
            match event.kind {
                EventKind::Deleted => assert!(!state.contains_key(key), "5"),
                _ => assert!(Arc::ptr_eq(&state[key], &event.object), "5"),
            }
            match &event.previous {
                Some(previous) => state.insert(key.clone(), previous.clone()),
                None => state.remove(key),
            };
        }
    }
}
