//! PURE. What a queue knows of each key, and what each operation makes of it. No lock, no clock, no waiting.

use std::time::Instant;

use crate::delay_heap::DelayHeap;
use crate::keys::Keys;
use crate::order::{Item, Order, Slot};

/// The rules of the queue.
///
/// A key is idle, waits, or is processed; a processed one may be dirty, that is, wait again once it is done. Beside
/// that, in any of these states, it may be delayed: added at a moment to come.
///
/// Invariants (checked by [`validate`](Self::validate); a panic of the order or of a key may break 3 for that key):
/// 1. Each key has one entry. A key that is idle and not delayed has none.
/// 2. `waiting` is the number of waiting keys, and the order holds each of them once.
/// 3. No key is both idle and not delayed.
/// 4. `processing` holds exactly the processed keys, each at the index that its entry tells.
/// 5. Every delayed slot has an entry.
/// 6. No two hand-outs have the same ticket.
/// 7. Where it merges, no key is delayed that waits or is dirty.
///
/// Nothing here drops a key: what is not needed any more is given back.
pub(crate) struct State<K> {
    keys: Keys<K, Work>,
    order: Box<dyn Order<K>>,
    waiting: usize,
    processing: Vec<Slot>,
    delays: DelayHeap,
    /// A key has one pending entry: an add takes its delay up, and what waits already is not delayed beside.
    merges: bool,
    /// How the numbers of keys that are to be processed change, by priority; gathered only where somebody asks.
    moves: Option<Vec<(i32, i64)>>,
    shutting_down: bool,
    /// Delayed keys that a shut-down dropped.
    dropped: usize,
    next_ticket: u64,
    /// How often the order had a key no more that waits.
    lost: u64,
}

#[derive(Debug)]
enum Work {
    Idle,
    Waiting {
        since: Instant,
        priority: i32,
    },
    Processing {
        since: Instant,
        ticket: u64,
        /// Where it is in `State::processing`.
        index: u32,
        /// Since when it is to be processed again.
        dirty: Option<Instant>,
        /// At which priority it is to be processed again.
        dirty_priority: i32,
    },
}

/// A key was handed out; [`State::key`] tells which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOut {
    pub(crate) claim: Claim,
    /// The highest priority that it was added with.
    pub(crate) priority: i32,
    /// Since when the key waited.
    pub(crate) since: Instant,
}

/// Tells one hand-out of a key from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    slot: Slot,
    ticket: u64,
}

impl<K: Eq + Clone> State<K> {
    pub(crate) fn new(order: Box<dyn Order<K>>) -> Self {
        Self {
            keys: Keys::new(),
            order,
            waiting: 0,
            processing: Vec::new(),
            delays: DelayHeap::default(),
            merges: false,
            moves: None,
            shutting_down: false,
            dropped: 0,
            next_ticket: 0,
            lost: 0,
        }
    }

    /// Each key has one pending entry from now on, see `State::merges`.
    pub(crate) fn merge(&mut self) {
        self.merges = true;
    }

    /// Gathers from now on what [`take_moves`](Self::take_moves) gives.
    pub(crate) fn gather_moves(&mut self) {
        self.moves = Some(Vec::new());
    }

    /// By how much the numbers of keys that are to be processed have changed since the last call, by priority.
    pub(crate) fn take_moves(&mut self) -> Vec<(i32, i64)> {
        self.moves.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn moved(&mut self, priority: i32, change: i64) {
        if let Some(moves) = &mut self.moves {
            moves.push((priority, change));
        }
    }

    /// How many keys wait to be handed out.
    pub(crate) const fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn processing(&self) -> usize {
        self.processing.len()
    }

    pub(crate) fn delayed(&self) -> usize {
        if self.shutting_down { 0 } else { self.delays.len() }
    }

    pub(crate) const fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    pub(crate) const fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether there are delayed keys.
    #[inline]
    pub(crate) fn has_delayed(&self) -> bool {
        !self.shutting_down && self.delays.len() > 0
    }

    /// When the next delayed key is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        if self.shutting_down { None } else { self.delays.next_due() }
    }

    /// Adds the delayed keys that are due at `now`, in the order of their moments, each as of its moment; answers how
    /// many were accepted. To be called before every other operation, so that none sees a due key as delayed.
    pub(crate) fn promote(&mut self, now: Instant) -> u64 {
        let mut accepted = 0;
        if !self.shutting_down {
            while let Some((slot, due, priority)) = self.delays.pop_due(now) {
                accepted += u64::from(self.mark(slot, || due, priority));
            }
        }
        accepted
    }

    /// Adds `key`, which hashes to `hash`, and takes it unless the queue has it already; tells whether it is to be
    /// processed anew because of this. `now` is asked only then.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, key: &mut Option<K>, priority: i32, now: impl FnOnce() -> Instant) -> bool {
        self.enter(hash, key).is_some_and(|slot| self.mark(slot, now, priority))
    }

    /// Adds `key` at `due`, or at the earlier moment for which it is delayed already; takes it as [`add`](Self::add)
    /// does. To be called for moments to come.
    pub(crate) fn add_at(&mut self, hash: u64, key: &mut Option<K>, priority: i32, due: Instant) {
        if let Some(slot) = self.enter(hash, key)
            && !(self.merges && self.raise(slot, priority))
        {
            self.delays.insert(slot, due, priority);
        }
    }

    /// The slot of `key`, which gets one if it has none; no slot while the queue shuts down. The key is taken only where it
    /// is new: most adds are of keys that wait already, and moving one about costs as much as the rest of such an add.
    #[inline]
    fn enter(&mut self, hash: u64, key: &mut Option<K>) -> Option<Slot> {
        if self.shutting_down {
            return None;
        }
        self.keys.find(hash, key.as_ref()?).or_else(|| Some(self.keys.insert(hash, key.take()?, Work::Idle)))
    }

    /// Takes the delay of `key` back; `None`: it has none. Answers the key where nothing more is known of it.
    pub(crate) fn cancel(&mut self, hash: u64, key: &K) -> Option<Option<K>> {
        let slot = self.keys.find(hash, key)?;
        (!self.shutting_down && self.delays.remove(slot).is_some()).then(|| self.remove_if_idle(slot))
    }

    /// Hands out the next waiting key.
    #[inline(always)]
    pub(crate) fn get(&mut self, now: Instant) -> Option<HandOut> {
        if self.waiting == 0 {
            return None;
        }
        let (slot, since, priority) = self.pop_waiting()?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting -= 1;
        let index = self.processing.len() as u32;
        self.processing.push(slot);
        if let Some(work) = self.keys.get_mut(slot) {
            *work = Work::Processing { since: now, ticket, index, dirty: None, dirty_priority: 0 };
        }
        self.moved(priority, -1);
        Some(HandOut { claim: Claim { slot, ticket }, priority, since })
    }

    /// Takes the next waiting key out of the order: where it is, since when it waits, and at which priority.
    #[inline]
    fn pop_waiting(&mut self) -> Option<(Slot, Instant, i32)> {
        loop {
            // An order that loses a key costs the order of the keys, and time, but never a key.
            let slot = self.order.pop().or_else(|| self.any_waiting())?;
            // What does not wait is passed over, should an order give it back twice.
            let Some(&Work::Waiting { since, priority }) = self.keys.get(slot) else { continue };
            return Some((slot, since, priority));
        }
    }

    /// The key of what was just handed out.
    #[inline(always)]
    pub(crate) fn key(&self, hand_out: &HandOut) -> &K {
        self.keys.key(hand_out.claim.slot)
    }

    /// Takes back what was just handed out: the key waits on, as the last, and where there are priorities at the lowest: else
    /// it would come first again and again.
    #[cold]
    pub(crate) fn take_back(&mut self, hand_out: HandOut) {
        let priority = if self.merges { i32::MIN } else { hand_out.priority };
        self.mark(hand_out.claim.slot, || hand_out.since, priority);
        self.finish(hand_out.claim.slot, &mut None);
    }

    /// Finishes a hand-out; tells since when the key was processed, `None` where it is finished already. The key is put
    /// into `spare` where nothing more is known of it.
    #[inline(always)]
    pub(crate) fn done(&mut self, claim: Claim, spare: &mut Option<K>) -> Option<Instant> {
        match self.keys.get(claim.slot) {
            Some(Work::Processing { ticket, .. }) if *ticket == claim.ticket => self.finish(claim.slot, spare),
            _ => None,
        }
    }

    /// Finishes the processing of `key`, as [`done`](Self::done) does; `None` where it is not processed.
    pub(crate) fn done_key(&mut self, hash: u64, key: &K, spare: &mut Option<K>) -> Option<Instant> {
        let slot = self.keys.find(hash, key)?;
        self.finish(slot, spare)
    }

    /// From now on nothing is added but what is dirty when it is done. The delayed keys are dropped: they count no more,
    /// and [`drop_delayed`](Self::drop_delayed) gives them back.
    pub(crate) fn shut_down(&mut self) {
        if !self.shutting_down {
            self.dropped = self.delays.len();
            self.shutting_down = true;
        }
    }

    /// After the shut-down: gives back some of the keys of which nothing is known but a delay; none: that was all.
    pub(crate) fn drop_delayed(&mut self) -> Vec<K> {
        const BATCH: usize = 1024;
        let mut spare = Vec::new();
        if self.shutting_down {
            while spare.len() < BATCH
                && let Some(slot) = self.delays.pop_any()
            {
                spare.extend(self.remove_if_idle(slot));
            }
        }
        spare
    }

    /// What is known of `key`.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<Known<'_, K>> {
        let slot = self.keys.find(hash, key)?;
        Some(self.known(slot, self.keys.key(slot), self.keys.get(slot)?))
    }

    /// All keys. O(n).
    pub(crate) fn iter(&self) -> impl Iterator<Item = Known<'_, K>> {
        self.keys.iter().map(|(slot, key, work)| self.known(slot, key, work))
    }

    /// Since when each processed key is processed. O(processed).
    pub(crate) fn processing_since(&self) -> impl Iterator<Item = Instant> {
        self.processing.iter().filter_map(|&slot| match self.keys.get(slot) {
            Some(Work::Processing { since, .. }) => Some(*since),
            _ => None,
        })
    }

    fn known<'a>(&'a self, slot: Slot, key: &'a K, work: &Work) -> Known<'a, K> {
        let due = if self.shutting_down { None } else { self.delays.due(slot) };
        let (waiting, processing) = match *work {
            Work::Idle => (None, None),
            Work::Waiting { since, .. } => (Some(since), None),
            Work::Processing { since, dirty, .. } => (dirty, Some(since)),
        };
        Known { key, waiting, processing, due }
    }

    /// Marks a key as to be processed, at this priority at least; tells whether it was not to be before.
    #[inline]
    fn mark(&mut self, slot: Slot, now: impl FnOnce() -> Instant, mut priority: i32) -> bool {
        if self.merges
            && let Some(delayed) = self.delays.remove(slot)
        {
            priority = priority.max(delayed);
        }
        match self.keys.get_mut(slot) {
            Some(Work::Idle) => self.push(slot, now(), priority),
            Some(Work::Processing { dirty: dirty @ None, dirty_priority, .. }) => {
                *dirty = Some(now());
                *dirty_priority = priority;
            }
            Some(_) => {
                self.raise(slot, priority);
                return false;
            }
            None => return false,
        }
        self.moved(priority, 1);
        true
    }

    /// If a key is to be processed, lifts it to this priority unless it has a higher one, and tells so.
    #[inline(always)]
    fn raise(&mut self, slot: Slot, priority: i32) -> bool {
        let before = match self.keys.get_mut(slot) {
            Some(Work::Waiting { since, priority: own }) => {
                let (before, since) = (*own, *since);
                *own = before.max(priority);
                let priority = *own;
                self.order.touch(Item { slot, key: self.keys.key(slot), priority, since });
                before
            }
            Some(Work::Processing { dirty: Some(_), dirty_priority, .. }) => {
                let before = *dirty_priority;
                *dirty_priority = before.max(priority);
                before
            }
            _ => return false,
        };
        if before < priority {
            self.moved(before, -1);
            self.moved(priority, 1);
        }
        true
    }

    /// Has an idle key wait.
    #[inline]
    fn push(&mut self, slot: Slot, since: Instant, priority: i32) {
        self.order.push(Item { slot, key: self.keys.key(slot), priority, since });
        self.set(slot, Work::Waiting { since, priority });
        self.waiting += 1;
    }

    #[inline(always)]
    fn finish(&mut self, slot: Slot, spare: &mut Option<K>) -> Option<Instant> {
        let Some(&Work::Processing { since, index, dirty, dirty_priority, .. }) = self.keys.get(slot) else {
            return None;
        };
        self.processing.swap_remove(index as usize);
        if let Some(&moved) = self.processing.get(index as usize)
            && let Some(Work::Processing { index: place, .. }) = self.keys.get_mut(moved)
        {
            *place = index;
        }
        self.set(slot, Work::Idle);
        match dirty {
            Some(since) => self.push(slot, since, dirty_priority),
            None => *spare = self.remove_if_idle(slot),
        }
        Some(since)
    }

    #[cold]
    fn any_waiting(&mut self) -> Option<Slot> {
        self.lost += 1;
        // One that loses every key writes 17 lines in 100,000 times.
        if self.lost.is_power_of_two() {
            let (waiting, lost) = (self.waiting, self.lost);
            tracing::error!(waiting, lost, "the order of a work queue has lost a key: correct its `pop`");
        }
        self.keys.iter().find(|(_, _, work)| matches!(work, Work::Waiting { .. })).map(|(slot, _, _)| slot)
    }

    #[inline]
    fn remove_if_idle(&mut self, slot: Slot) -> Option<K> {
        let idle = matches!(self.keys.get(slot), Some(Work::Idle)) && self.delays.due(slot).is_none();
        idle.then(|| self.keys.remove(slot))
    }

    #[inline]
    fn set(&mut self, slot: Slot, work: Work) {
        if let Some(entry) = self.keys.get_mut(slot) {
            *entry = work;
        }
    }
}

/// What is known of one key.
pub(crate) struct Known<'a, K> {
    pub(crate) key: &'a K,
    /// Since when it is to be processed: it waits, or is dirty where it is processed too.
    pub(crate) waiting: Option<Instant>,
    /// Since when it is processed.
    pub(crate) processing: Option<Instant>,
    /// When it is added.
    pub(crate) due: Option<Instant>,
}

#[cfg(test)]
impl<K: Eq + Clone> State<K> {
    pub(crate) fn validate(&self) {
        self.keys.validate();
        let waiting = self.keys.iter().filter(|(_, _, work)| matches!(work, Work::Waiting { .. })).count();
        assert_eq!(self.waiting, waiting, "invariant 2");
        let mut processed = 0;
        let mut tickets = std::collections::HashSet::new();
        for (slot, _, work) in self.keys.iter() {
            match work {
                Work::Idle => assert!(self.delays.due(slot).is_some(), "invariant 3"),
                Work::Waiting { .. } => {}
                Work::Processing { index, ticket, .. } => {
                    assert_eq!(self.processing[*index as usize], slot, "invariant 4");
                    assert!(*ticket < self.next_ticket && tickets.insert(ticket), "invariant 6");
                    processed += 1;
                }
            }
        }
        assert_eq!(self.processing.len(), processed, "invariant 4");
        self.delays.validate();
        for (slot, _) in self.delays.iter() {
            let work = self.keys.get(slot).expect("invariant 5");
            let pending = matches!(work, Work::Waiting { .. } | Work::Processing { dirty: Some(_), .. });
            assert!(!(self.merges && pending), "invariant 7");
        }
    }
}

#[cfg(test)]
mod tests;
