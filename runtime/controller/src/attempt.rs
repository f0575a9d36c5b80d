//! One attempt to reconcile a request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// One attempt to reconcile a request, as the reconciler and whatever it calls see it. Cloning counts a reference.
///
/// It is given to the reconciler, and is [`current`](Self::current) in all that runs inside of its future.
#[derive(Clone, Debug)]
pub struct Attempt {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: ReconcileId,
    priority: i32,
    /// What it is requeued at; `UNSET` for the priority that it has. A priority has half the bits.
    requeue_priority: AtomicI64,
    failures: u32,
    deadline: Option<Instant>,
    stop: CancellationToken,
}

const UNSET: i64 = i64::MAX;

/// Tells one attempt from all others; prints as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReconcileId(uuid::Uuid);

impl ReconcileId {
    fn new() -> Self {
        Self(uuid::Uuid::new_v4())
    }
}

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

tokio::task_local! {
    static CURRENT: Attempt;
}

impl Attempt {
    pub(crate) fn new(priority: i32, failures: u32, deadline: Option<Instant>, stop: CancellationToken) -> Self {
        let requeue_priority = AtomicI64::new(UNSET);
        let inner = Inner { id: ReconcileId::new(), priority, requeue_priority, failures, deadline, stop };
        Self { inner: Arc::new(inner) }
    }

    /// An attempt by itself, for tests of a reconciler.
    pub fn for_test() -> Self {
        Self::new(0, 0, None, CancellationToken::new())
    }

    /// The attempt in whose future this runs, if it runs in one. A task that it spawns is none of it.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// The future with this as its [`current`](Self::current) attempt; for what a reconciler spawns.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// Tells this attempt from all others. It stands in the span of the attempt as `reconcile_id`.
    pub fn id(&self) -> ReconcileId {
        self.inner.id
    }

    /// The priority at which the request was taken; 0 unless the controller has a
    /// [priority queue](crate::ControllerOptions::priority_queue).
    pub fn priority(&self) -> i32 {
        self.inner.priority
    }

    /// Whatever becomes of the request, if it is to come back by that it does so at this priority: after an error too.
    /// Otherwise it comes back at the one at which it was taken.
    pub fn requeue_at_priority(&self, priority: i32) {
        self.inner.requeue_priority.store(priority.into(), Ordering::Relaxed);
    }

    pub(crate) fn requeue_priority(&self) -> i32 {
        i32::try_from(self.inner.requeue_priority.load(Ordering::Relaxed)).unwrap_or(self.inner.priority)
    }

    /// How often the request has failed, or asked to come back with a growing delay, since it last succeeded.
    pub fn failures(&self) -> u32 {
        self.inner.failures
    }

    /// When the attempt is given up: its future is dropped. `None`: it may take as long as it wants.
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.deadline
    }

    /// Cancelled when the controller is to stop. Nothing has to be done then: the attempt may go on for as long as the grace
    /// period lasts. What can be left for the next time should be.
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_at_the_priority_that_the_attempt_says_or_at_its_own() {
        let attempt = Attempt::new(10, 0, None, CancellationToken::new());
        assert_eq!(attempt.requeue_priority(), 10);
        for priority in [99, 0, -1, i32::MIN, i32::MAX] {
            attempt.requeue_at_priority(priority);
            assert_eq!(attempt.requeue_priority(), priority);
        }
    }
}
