//! Restores of the server from an older state.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewire_apiserver::ApiServer;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;

/// How far back a restore goes, in versions.
const DEPTH_MAX: u64 = 40;

/// How many there were, and whether writers may write. Clones are the same.
#[derive(Clone)]
pub(crate) struct Restores {
    count: Arc<AtomicUsize>,
    /// Held while versions are below what was given out before: two states of one object would have the same version, and
    /// no cache in the world could tell them apart. First come, first served.
    pen: Arc<Semaphore>,
}

impl Restores {
    pub(crate) fn new() -> Self {
        Self { count: Arc::default(), pen: Arc::new(Semaphore::new(1)) }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) async fn may_write(&self) {
        drop(self.pen.acquire().await);
    }

    /// Restores an older state: with versions that go on far above, or with versions that go back for a while.
    pub(crate) async fn restore(&self, server: &ApiServer, dice: &mut Dice, stop: &CancellationToken) {
        let present = server.resource_version();
        let version = present.saturating_sub(dice.below(DEPTH_MAX));
        if dice.chance(0.5) {
            self.count.fetch_add(usize::from(server.restore(version, present + 1000)), Ordering::Relaxed);
        } else {
            let _pen = self.pen.acquire().await;
            if !server.restore(version, version + 1) {
                return;
            }
            self.count.fetch_add(1, Ordering::Relaxed);
            let _ = stop.run_until_cancelled(tokio::time::sleep(dice.seconds(40))).await;
            server.skip_resource_versions(DEPTH_MAX + 1);
            // Who has not come back yet knows versions of the history that is lost. A server could not tell them from those of
            // the new one. Nor from those of a watch that was opened there meanwhile, behind a version that did not exist yet:
            // it would hear of what comes after, and never of what was undone.
            server.compact();
            server.reset_watches();
        }
    }
}
