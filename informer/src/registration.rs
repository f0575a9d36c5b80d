//! A handler's membership in an informer.

use std::fmt;
use std::sync::Arc;

use crate::HandlerStatus;
use crate::health::Health;
use crate::listener::AnyListener;

/// A handler that was added to an informer. Cloning gives another handle to the same one; dropping it changes
/// nothing.
#[derive(Clone)]
pub struct Registration {
    listener: Arc<dyn AnyListener>,
}

/// The informer has stopped, or the handler was removed: there will be nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the informer has stopped, or the handler was removed; a stopped informer cannot be used again, make a new one"
)]
pub struct Stopped;

impl Registration {
    pub(crate) fn new(listener: Arc<dyn AnyListener>) -> Self {
        Self { listener }
    }

    /// Whether the informer's first list is in the store, and the handler has returned from all calls for what
    /// was there when it was added. A call that panicked has returned.
    pub fn has_synced(&self) -> bool {
        self.listener.synced().is_set()
    }

    /// Waits until [`has_synced`](Self::has_synced); an error if that will never be. Cancel-safe.
    pub async fn synced(&self) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            () = self.listener.synced().wait() => Ok(()),
            () = self.listener.closed().wait() => Err(Stopped),
        }
    }

    /// Removes the handler: what waits for it is thrown away, and no further call begins. A call that is
    /// running, or was about to begin, ends by itself. May be called from within the handler. A second time it
    /// does nothing.
    pub fn remove(&self) {
        self.listener.remove();
    }

    /// Removes the handler and waits until its running call has ended. Not to be waited for from within that
    /// call, which would wait for itself.
    ///
    /// Cancel-safe: the handler is removed at the first poll.
    pub async fn shut_down(&self) {
        self.remove();
        self.listener.ended().wait().await;
    }

    /// Whether the handler was removed, or the informer has stopped.
    pub fn is_removed(&self) -> bool {
        self.listener.closed().is_set()
    }

    /// The handler's name, and of what its informer is.
    pub(crate) fn full_name(&self) -> String {
        format!("{} of {}", self.status().name, self.health().resource)
    }

    /// How its informer is doing.
    pub(crate) fn health(&self) -> &Health {
        self.listener.health()
    }

    /// How many notifications wait for the handler, or for how many keys where they are
    /// [coalesced](crate::Buffering::Coalescing).
    pub fn backlog(&self) -> usize {
        self.status().backlog
    }

    /// How the handler is doing. Cost: a short lock, one allocation.
    pub fn status(&self) -> HandlerStatus {
        self.listener.status()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.status()).finish()
    }
}
