//! PURE. Who waits until a queue that is shutting down has drained.

use std::task::Waker;

use slab::Slab;

/// What a drain waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainMode {
    /// The keys that are processed.
    Processing,
    /// These and the keys that wait.
    Everything,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrainOutcome {
    /// All that it waited for is done.
    Drained,
    /// A later `shut_down` put an end to the waiting.
    Overruled,
    /// The time was out.
    TimedOut {
        /// How many keys were being processed then.
        processing: usize,
        /// How many keys waited then.
        waiting: usize,
    },
}

/// The drains that wait. Wakers are never woken or dropped in here.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    places: Slab<Place>,
}

#[derive(Debug)]
struct Place {
    mode: DrainMode,
    outcome: Option<DrainOutcome>,
    waker: Option<Waker>,
}

impl Drains {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A drain begins.
    pub(crate) fn join(&mut self, mode: DrainMode) -> usize {
        self.places.insert(Place { mode, outcome: None, waker: None })
    }

    /// How the drain ended; else it is to be woken by `waker` when it does. Answers the waker before.
    pub(crate) fn outcome(&mut self, place: usize, waker: &Waker) -> Result<DrainOutcome, Option<Waker>> {
        let entry = &mut self.places[place];
        match entry.outcome {
            Some(outcome) => Ok(outcome),
            None => Err(entry.waker.replace(waker.clone())),
        }
    }

    /// A drain is not waited for any more. Answers its waker.
    pub(crate) fn leave(&mut self, place: usize) -> Option<Waker> {
        self.places.remove(place).waker
    }

    /// Ends the drains that have what they wait for, now that so many keys are processed and wait. Answers whom to wake.
    pub(crate) fn settle(&mut self, processing: usize, waiting: usize) -> Vec<Waker> {
        if processing > 0 {
            return Vec::new();
        }
        self.end(DrainOutcome::Drained, |mode| mode == DrainMode::Processing || waiting == 0)
    }

    /// Ends all drains: a later shut-down wants no waiting. Answers whom to wake.
    pub(crate) fn overrule(&mut self) -> Vec<Waker> {
        self.end(DrainOutcome::Overruled, |_| true)
    }

    fn end(&mut self, outcome: DrainOutcome, ends: impl Fn(DrainMode) -> bool) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for (_, place) in &mut self.places {
            if place.outcome.is_none() && ends(place.mode) {
                place.outcome = Some(outcome);
                wakers.extend(place.waker.take());
            }
        }
        wakers
    }
}
