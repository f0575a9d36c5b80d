//! PURE. What waits for one handler.
//!
//! Invariants, checked by `validate`:
//! - L1: `initial_left` is the number of initial additions that wait, plus the one that the handler is at.
//! - L2: a key stands in `order` exactly if it is in `pending`, and once.
//! - L3: once closed, nothing waits.
//! - L4: `busy_since` is known exactly while something waits or is being told.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;

use hashbrown::HashMap;
use kubewire_indexer::ObjectKey;

use super::batch::{Batch, Counts};
use super::net_change::NetChange;
use crate::Notification;
use crate::notification::Told;

/// How the notifications for a handler that lags behind are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Buffering {
    /// Every one of them, in order, without a bound, as in client-go: memory grows with the number of events
    /// that the handler lags behind. The room is given back when it has caught up.
    #[default]
    Unbounded,
    /// One net change for each key: from the state that the handler was last told to the present one. What
    /// came and went meanwhile is not told. Memory is bounded by the number of keys. Keys come in the order of
    /// their first waiting change.
    Coalescing,
}

/// What waits for one handler, and how far it is with it.
#[derive(Debug)]
pub(crate) struct Buffer<O> {
    waiting: Waiting<O>,
    /// Whether two states under one key are of the same object, and not of two that had the name one after the other.
    is_same: fn(&O, &O) -> bool,
    /// Initial additions whose call has not returned.
    initial_left: usize,
    /// Notifications of unchanged objects whose call has not returned. Not counted where changes are coalesced:
    /// rounds do not pile up there.
    resyncs_left: usize,
    /// What the handler is at, if it is at something.
    at: Option<At>,
    /// Since when it is at that; where it is at nothing, since when something waits. L4.
    busy_since: Option<Instant>,
    /// Whether everything that was there when the handler was added is in the buffer or told.
    joined: bool,
    closed: bool,
    /// Who waits for the next notification.
    waker: Option<Waker>,
    told: u64,
    coalesced: u64,
}

/// What counts of a notification that was taken.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    /// It is an addition of the initial list.
    initial: bool,
    /// Nothing has changed.
    resync: bool,
}

#[derive(Debug)]
pub(crate) enum Waiting<O> {
    /// As they came together, and how many are left of all.
    Unbounded {
        batches: VecDeque<Batch<O>>,
        len: usize,
    },
    Coalescing {
        order: VecDeque<ObjectKey>,
        pending: HashMap<ObjectKey, NetChange<O>>,
    },
}

/// What a taker gets.
pub(crate) enum Next<O> {
    /// And what is to be dropped.
    Told(Told<O>, Option<Batch<O>>),
    /// Nothing waits.
    Empty,
    /// Nothing will come any more.
    Closed,
}

/// What the shell has to drop when it has unlocked.
#[derive(Debug)]
#[expect(dead_code, reason = "kept only to be dropped elsewhere")]
pub(crate) enum Garbage<O> {
    Batch(Batch<O>),
    Objects(Vec<O>),
    Waiting(Waiting<O>),
}

impl<O: Clone> Buffer<O> {
    pub(crate) fn new(buffering: Buffering, is_same: fn(&O, &O) -> bool) -> Self {
        Self {
            waiting: Waiting::new(buffering),
            is_same,
            initial_left: 0,
            resyncs_left: 0,
            at: None,
            busy_since: None,
            joined: false,
            closed: false,
            waker: None,
            told: 0,
            coalesced: 0,
        }
    }

    /// Adds notifications that came together. Gives back who is to be woken, and what is to be dropped.
    pub(crate) fn push(&mut self, batch: Batch<O>, now: Instant) -> (Option<Waker>, Option<Garbage<O>>) {
        let Counts { all, initial, resyncs } = batch.counts();
        if self.closed || all == 0 {
            return (None, Some(Garbage::Batch(batch)));
        }
        self.busy_since.get_or_insert(now);
        self.initial_left += initial;
        let mut garbage = None;
        match &mut self.waiting {
            Waiting::Unbounded { batches, len } => {
                self.resyncs_left += resyncs;
                *len += all;
                batches.push_back(batch);
            }
            Waiting::Coalescing { order, pending } => {
                let mut objects = Vec::new();
                for Told { key, notification, .. } in batch {
                    let change = pending.entry_ref(&key).or_insert_with(|| {
                        order.push_back(key.clone());
                        NetChange::none()
                    });
                    self.coalesced += u64::from(!change.is_none());
                    if change.join(&key, notification, self.is_same, &mut objects) {
                        self.initial_left -= 1;
                    }
                }
                garbage = (!objects.is_empty()).then_some(Garbage::Objects(objects));
            }
        }
        (self.waker.take(), garbage)
    }

    /// Everything that was there when the handler was added has been pushed; to a closed one nothing is.
    pub(crate) fn join(&mut self) {
        self.joined |= !self.closed;
    }

    /// Whether all that was there when the handler was added is told.
    pub(crate) fn has_told_initial(&self) -> bool {
        self.joined && self.initial_left == 0
    }

    /// Takes the next notification. The one before counts as told.
    pub(crate) fn next(&mut self, now: Instant) -> Next<O> {
        self.told();
        if self.closed {
            return Next::Closed;
        }
        let next = self.waiting.next();
        self.busy_since = next.is_some().then_some(now);
        let Some((told, garbage)) = next else { return Next::Empty };
        self.at = Some(At { initial: told.notification.is_initial(), resync: told.resync });
        Next::Told(told, garbage)
    }

    /// The call for the notification that was taken last has returned, in whatever way.
    pub(crate) fn told(&mut self) {
        if let Some(At { initial, resync }) = self.at.take() {
            self.told += 1;
            self.initial_left -= usize::from(initial);
            self.resyncs_left -= usize::from(resync);
            if self.len() == 0 {
                self.busy_since = None;
            }
        }
    }

    /// Since when the handler is at what it is at, or something waits that it has not begun with.
    pub(crate) fn busy_since(&self) -> Option<Instant> {
        self.busy_since
    }

    /// Whether what a resync told is not all told yet.
    pub(crate) fn has_resyncs_left(&self) -> bool {
        self.resyncs_left > 0
    }

    /// Whoever waits now is woken by the next push or by the close. Gives back who waited before.
    pub(crate) fn wait(&mut self, waker: Waker) -> Option<Waker> {
        self.waker.replace(waker)
    }

    /// Throws away what waits, and takes nothing more. Where not all of the first list was pushed by now, it never will
    /// have been told.
    pub(crate) fn close(&mut self, is_all_pushed: bool) -> (Option<Waker>, Garbage<O>) {
        self.joined &= is_all_pushed || self.closed;
        self.closed = true;
        if self.at.is_none() {
            self.busy_since = None;
        }
        let waiting = std::mem::replace(&mut self.waiting, Waiting::new(Buffering::Unbounded));
        (self.waker.take(), Garbage::Waiting(waiting))
    }

    /// How many notifications wait, of those that are coalesced how many keys.
    pub(crate) fn len(&self) -> usize {
        match &self.waiting {
            Waiting::Unbounded { len, .. } => *len,
            Waiting::Coalescing { order, .. } => order.len(),
        }
    }

    /// How many calls have returned.
    pub(crate) fn count_told(&self) -> u64 {
        self.told
    }

    /// How many notifications were merged into others that waited.
    pub(crate) fn count_coalesced(&self) -> u64 {
        self.coalesced
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        if let Waiting::Coalescing { order, pending } = &self.waiting {
            assert_eq!(order.len(), pending.len(), "L2");
            assert!(order.iter().all(|key| pending.contains_key(key)), "L2");
        }
        assert!(
            self.initial_left <= self.len() + usize::from(self.at.is_some_and(|at| at.initial)) || self.closed,
            "L1"
        );
        assert!(!self.closed || self.len() == 0, "L3");
        assert_eq!(self.busy_since.is_some(), self.len() > 0 || self.at.is_some(), "L4");
    }
}

impl<O: Clone> Waiting<O> {
    fn new(buffering: Buffering) -> Self {
        match buffering {
            Buffering::Unbounded => Self::Unbounded { batches: VecDeque::new(), len: 0 },
            Buffering::Coalescing => Self::Coalescing { order: VecDeque::new(), pending: HashMap::new() },
        }
    }

    /// The next one, and a batch of which nothing is left, to be dropped.
    fn next(&mut self) -> Option<(Told<O>, Option<Batch<O>>)> {
        match self {
            Self::Unbounded { batches, len } => {
                let batch = batches.front_mut()?;
                let told = batch.next()?;
                *len -= 1;
                let done = batch.is_done().then(|| batches.pop_front()).flatten();
                if batches.is_empty() && batches.capacity() > KEPT_CAPACITY {
                    batches.shrink_to(KEPT_CAPACITY);
                }
                Some((told, done))
            }
            Self::Coalescing { order, pending } => {
                let next = next_change(order, pending);
                if order.is_empty() && order.capacity() > KEPT_CAPACITY {
                    order.shrink_to(KEPT_CAPACITY);
                    pending.shrink_to(KEPT_CAPACITY);
                }
                next.map(|(key, notification)| (Told { key, notification, resync: false }, None))
            }
        }
    }
}

/// Passes over the keys of which nothing is left to tell.
fn next_change<O>(
    order: &mut VecDeque<ObjectKey>,
    pending: &mut HashMap<ObjectKey, NetChange<O>>,
) -> Option<(ObjectKey, Notification<O>)> {
    loop {
        let key = order.front()?.clone();
        let next = pending.get_mut(&key).and_then(NetChange::take);
        if pending.get(&key).is_none_or(NetChange::is_none) {
            pending.remove(&key);
            order.pop_front();
        }
        if let Some(next) = next {
            return Some((key, next));
        }
    }
}

/// The room that an empty buffer keeps, in notifications.
const KEPT_CAPACITY: usize = 1024;

#[cfg(test)]
mod tests;
