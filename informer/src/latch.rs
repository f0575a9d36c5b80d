//! A flag that is set once and can be waited for.

use tokio_util::sync::CancellationToken;

/// Set once, never taken back. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latch(CancellationToken);

impl Latch {
    /// Sets it, and wakes all who wait. Not to be called under a lock.
    pub(crate) fn set(&self) {
        self.0.cancel();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is set. Cancel-safe.
    pub(crate) async fn wait(&self) {
        self.0.cancelled().await;
    }
}
