//! A flag that is set once and can be waited for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicBool, Notify};

/// Set once, never taken back. Clones share it. Reading it takes no lock.
#[derive(Clone, Default)]
pub(crate) struct Latch {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    set: AtomicBool,
    waiters: Notify,
}

impl Latch {
    /// Sets it, and wakes all who wait. Not to be called under a lock.
    pub(crate) fn set(&self) {
        // Read first: it is set once, and asked to be set at each event.
        if !self.is_set() && !self.shared.set.swap(true, Ordering::SeqCst) {
            self.shared.waiters.notify_waiters();
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::SeqCst)
    }

    /// Waits until it is set. Cancel-safe.
    pub(crate) async fn wait(&self) {
        loop {
            // Made before the flag is read, so that a set in between is not missed.
            let woken = self.shared.waiters.notified();
            if self.is_set() {
                return;
            }
            woken.await;
        }
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latch").field(&self.is_set()).finish()
    }
}
