//! A get: for tasks and for threads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kubewire_ratelimit::Sleep;

use crate::guard::Guard;
use crate::shared::{Look, Shared};
use crate::sync::park;

/// The future of [`Queue::get`](crate::Queue::get).
///
/// Cancel-safe: a key is bound to a get only in the poll that returns it, so dropping one loses none. Its place in line
/// passes to the next.
///
/// Do not keep one without polling it: it may be called for a key, which then waits for it, or keep the time for all.
#[must_use = "a get does nothing unless awaited"]
pub struct Get<'a, K: Eq + Clone> {
    waiting: Waiting<'a, K>,
    /// Runs while this get keeps the time.
    sleep: Option<Sleep>,
}

impl<'a, K: Eq + Clone> Get<'a, K> {
    pub(crate) const fn new(shared: &'a Arc<Shared<K>>) -> Self {
        Self { waiting: Waiting { shared, place: None }, sleep: None }
    }
}

impl<K: Eq + Clone> Future for Get<'_, K> {
    type Output = Option<Guard<K>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A worker that always finds a key lets others run from time to time.
        #[cfg(not(loom))]
        let coop = std::task::ready!(tokio::task::coop::poll_proceed(cx));
        let this = &mut *self;
        let outcome = loop {
            let due = match this.waiting.look(cx.waker()) {
                Ok(outcome) => break outcome,
                Err(due) => due,
            };
            let Some(due) = due else {
                this.sleep = None;
                return Poll::Pending;
            };
            let sleep = this.sleep.take().filter(|sleep| sleep.due() == due);
            let mut sleep = sleep.unwrap_or_else(|| this.waiting.shared.clock.sleep_until(due));
            if Pin::new(&mut sleep).poll(cx).is_pending() {
                this.sleep = Some(sleep);
                return Poll::Pending;
            }
        };
        #[cfg(not(loom))]
        coop.made_progress();
        Poll::Ready(outcome)
    }
}

/// A get's place in line, which it leaves when dropped.
struct Waiting<'a, K: Eq + Clone> {
    shared: &'a Arc<Shared<K>>,
    place: Option<usize>,
}

impl<K: Eq + Clone> Waiting<'_, K> {
    /// The outcome of the get, or the moment at which it has to look again by itself, if it has to.
    fn look(&mut self, waker: &Waker) -> Result<Option<Guard<K>>, Option<std::time::Instant>> {
        match self.shared.look(&mut self.place, waker) {
            Look::Got(guard) => Ok(Some(guard)),
            Look::ShutDown => Ok(None),
            Look::Wait(due) => Err(due),
        }
    }
}

impl<K: Eq + Clone> Drop for Waiting<'_, K> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut session = self.shared.begin();
            let waker = session.inner.waiters.hush(place);
            session.inner.waiters.leave(place);
            drop(session);
            drop(waker);
        }
    }
}

/// Blocks this thread until the get has its outcome.
pub(crate) fn get_blocking<K: Eq + Clone>(shared: &Arc<Shared<K>>) -> Option<Guard<K>> {
    let waker = kubewire_ratelimit::clock::unpark_this_thread();
    let mut waiting = Waiting { shared, place: None };
    loop {
        match waiting.look(&waker) {
            Ok(outcome) => return outcome,
            Err(Some(due)) => shared.clock.park_until(due),
            Err(None) => park(),
        }
    }
}
