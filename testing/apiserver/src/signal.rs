//! A signal for any number of waiters.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts how often it was raised, and wakes those who wait for the next time, in the order in which they began to wait:
/// tokio's `watch` wakes them in an order of chance, so that no run of a simulation would come again.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicU64,
    waiting: Notify,
}

impl Signal {
    /// Wakes all who wait. Not to be called under a lock.
    pub(crate) fn raise(&self) {
        self.raised.fetch_add(1, Ordering::AcqRel);
        self.waiting.notify_waiters();
    }

    pub(crate) fn count(&self) -> u64 {
        self.raised.load(Ordering::Acquire)
    }

    /// Waits until it is raised, if it was not since it stood at `seen`. Cancel-safe.
    pub(crate) async fn after(&self, seen: u64) {
        loop {
            // Made before the count is read, so that no raise between is missed.
            let woken = self.waiting.notified();
            if self.count() != seen {
                return;
            }
            woken.await;
        }
    }
}
