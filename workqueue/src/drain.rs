//! Waiting until a queue that is shutting down has drained.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use kubewire_ratelimit::{Sleep, clock::after};

use crate::drains::{DrainMode, DrainOutcome};
use crate::shared::{Inner, Shared};
use crate::sync::park;

/// Waits until what a drain waits for is done; made by
/// [`Queue::shut_down_with_drain`](crate::Queue::shut_down_with_drain) and
/// [`Queue::shut_down_with_full_drain`](crate::Queue::shut_down_with_full_drain), which have begun the shut-down already.
///
/// Await it, or [`block`](Self::block) on it. It ends when all is [drained](DrainOutcome::Drained), when a later
/// `shut_down` [overrules](DrainOutcome::Overruled) it, or when its [time is out](DrainOutcome::TimedOut); without a time
/// it waits for ever for a key that is never done.
///
/// Cancel-safe: dropping it ends the waiting, the queue stays shut down.
#[must_use = "the shut-down has begun; await or `block` to wait until the queue has drained"]
pub struct Drain<'a, K: Eq + Clone> {
    shared: &'a Arc<Shared<K>>,
    place: usize,
    deadline: Option<Instant>,
    sleep: Option<Sleep>,
}

impl<'a, K: Eq + Clone> Drain<'a, K> {
    pub(crate) fn new(shared: &'a Arc<Shared<K>>, mode: DrainMode) -> Self {
        let place = shared.begin().inner.drains.join(mode);
        Self { shared, place, deadline: None, sleep: None }
    }

    /// Waits no longer than `time` from now.
    pub fn within(self, time: Duration) -> Self {
        let deadline = after(self.shared.clock.now(), time);
        self.until(deadline)
    }

    /// Waits no longer than until `deadline`.
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Blocks this thread. Not for async code: await it there.
    pub fn block(mut self) -> DrainOutcome {
        let waker = kubewire_ratelimit::clock::unpark_this_thread();
        loop {
            if let Some(outcome) = self.outcome(&waker) {
                return outcome;
            }
            match self.deadline {
                Some(deadline) => self.shared.clock.park_until(deadline),
                None => park(),
            }
        }
    }

    /// How it ended, if it did; else it is woken by `waker`, but for the deadline.
    fn outcome(&mut self, waker: &Waker) -> Option<DrainOutcome> {
        let mut session = self.shared.begin();
        let now = session.now();
        let Inner { state, drains, .. } = &mut *session.inner;
        let outcome = drains.outcome(self.place, waker);
        let timed_out = DrainOutcome::TimedOut { processing: state.processing(), waiting: state.len() };
        drop(session);
        match outcome {
            Ok(outcome) => Some(outcome),
            Err(_former_waker) => self.deadline.is_some_and(|deadline| deadline <= now).then_some(timed_out),
        }
    }
}

impl<K: Eq + Clone> Future for Drain<'_, K> {
    type Output = DrainOutcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<DrainOutcome> {
        let this = &mut *self;
        loop {
            if let Some(outcome) = this.outcome(cx.waker()) {
                return Poll::Ready(outcome);
            }
            let Some(deadline) = this.deadline else { return Poll::Pending };
            let sleep = this.sleep.get_or_insert_with(|| this.shared.clock.sleep_until(deadline));
            std::task::ready!(Pin::new(sleep).poll(cx));
            this.sleep = None;
        }
    }
}

impl<K: Eq + Clone> Drop for Drain<'_, K> {
    fn drop(&mut self) {
        let mut session = self.shared.begin();
        let waker = session.inner.drains.leave(self.place);
        drop(session);
        drop(waker);
    }
}
