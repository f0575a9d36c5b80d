//! What a queue knows of its keys at one moment.

use std::time::{Duration, Instant};

use crate::state::{Known, State};

/// What a queue knew of its keys at one moment; the answer to "why is my key not processed?".
///
/// Made by [`Queue::snapshot`](crate::Queue::snapshot). Each list has the longest in its state first, the delayed keys
/// the earliest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// Keys that wait to be handed out, and for how long they have.
    pub waiting: Vec<(K, Duration)>,
    /// Keys that are being processed.
    pub processing: Vec<Processing<K>>,
    /// Keys that will be added, and in how long.
    pub delayed: Vec<(K, Duration)>,
    /// Whether the queue is shutting down.
    pub shutting_down: bool,
    /// How many delayed keys the shut-down has dropped.
    pub dropped_delayed: usize,
}

/// A key that is being processed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Processing<K> {
    /// The key.
    pub key: K,
    /// For how long it has been processed.
    pub worked: Duration,
    /// For how long it has waited to be processed again, if it was added meanwhile.
    pub dirty: Option<Duration>,
}

/// What a queue knows of one key; made by [`Queue::status`](crate::Queue::status). All `None`: it knows nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStatus {
    /// For how long it has waited to be processed, or to be processed again.
    pub waiting: Option<Duration>,
    /// For how long it has been processed.
    pub processing: Option<Duration>,
    /// In how long it will be added.
    pub delayed: Option<Duration>,
}

impl<K: Eq + Clone> Snapshot<K> {
    pub(crate) fn of(state: &State<K>, now: Instant) -> Self {
        let mut snapshot = Self {
            waiting: Vec::with_capacity(state.len()),
            processing: Vec::with_capacity(state.processing()),
            delayed: Vec::with_capacity(state.delayed()),
            shutting_down: state.is_shutting_down(),
            dropped_delayed: state.dropped(),
        };
        for known in state.iter() {
            let KeyStatus { waiting, processing, delayed } = KeyStatus::of(&known, now);
            match (processing, waiting) {
                (Some(worked), dirty) => {
                    snapshot.processing.push(Processing { key: known.key.clone(), worked, dirty });
                }
                (None, Some(waited)) => snapshot.waiting.push((known.key.clone(), waited)),
                (None, None) => {}
            }
            snapshot.delayed.extend(delayed.map(|delay| (known.key.clone(), delay)));
        }
        snapshot
    }

    /// Sorted outside the queue's lock.
    pub(crate) fn sort(&mut self) {
        self.waiting.sort_by_key(|(_, waited)| std::cmp::Reverse(*waited));
        self.processing.sort_by_key(|processing| std::cmp::Reverse(processing.worked));
        self.delayed.sort_by_key(|(_, delay)| *delay);
    }
}

impl KeyStatus {
    pub(crate) fn of<K>(known: &Known<'_, K>, now: Instant) -> Self {
        Self {
            waiting: known.waiting.map(|since| now.saturating_duration_since(since)),
            processing: known.processing.map(|since| now.saturating_duration_since(since)),
            delayed: known.due.map(|due| due.saturating_duration_since(now)),
        }
    }
}
