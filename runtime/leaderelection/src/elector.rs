//! The shell of an election: the lock is asked, time passes, and everybody is told.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::elector_builder::{ElectorBuilder, Hooks};
use crate::leadership::View;
use crate::local_clock::LocalClock;
use crate::run::Run;
use crate::sync::Mutex;
use crate::{Election, EndCause, Leadership, Lock, Settings, Term};

/// A candidate for leadership; as client-go's `LeaderElector`.
///
/// It has no task of its own: [`run`](Self::run) is the election. See the [crate](crate) for an example.
pub struct Elector {
    pub(crate) lock: Arc<dyn Lock>,
    pub(crate) settings: Settings,
    pub(crate) clock: LocalClock,
    pub(crate) wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub(crate) hooks: Hooks,
    /// `None` while it runs.
    pub(crate) election: Mutex<Option<Election>>,
    pub(crate) terms: watch::Sender<Option<Term>>,
    pub(crate) view: Arc<View>,
}

/// Why [`Elector::run`] ended before it was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// It led, and does not lead any more.
    #[error("leader election lost: {0}; end the leading work, then run again or exit")]
    Lost(EndCause),
    /// It runs already.
    #[error("this elector runs already: one run at a time")]
    AlreadyRunning,
}

impl Elector {
    /// A candidate of this name for this lock; everything else has defaults.
    ///
    /// The identity must be another one for each process: [`unique_identity`](crate::unique_identity) makes one.
    pub fn builder(lock: impl Lock, identity: impl Into<String>) -> ElectorBuilder {
        ElectorBuilder::new(Arc::new(lock), identity.into())
    }

    /// Whether this process leads, for all who want to know.
    pub fn leadership(&self) -> Leadership {
        Leadership { terms: self.terms.subscribe(), view: Arc::clone(&self.view) }
    }

    /// Contends until it leads, and leads until it is stopped or leadership is lost.
    ///
    /// `Ok`: `stop` was cancelled. The leading work has ended, leadership is off, and where
    /// [that is wanted](Settings::release_on_stop) the lease is released, or the try to do so took as long as the renew
    /// deadline. Who was stopped before ever leading has written nothing to somebody else's lease, and its callbacks were
    /// not called.
    ///
    /// It can be run again, after `Ok` and after [`ElectionError::Lost`].
    ///
    /// Dropping the future ends leadership at once, without a release, and aborts the leading work.
    ///
    /// # Errors
    /// Leadership was lost, or it runs already. Requests that fail are no errors: they are tried again, told by
    /// [`Leadership::last_error`] and logged.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), ElectionError> {
        let election = self.election.lock().take().ok_or(ElectionError::AlreadyRunning)?;
        Run::new(self, election).drive(&stop).await
    }

    /// [Runs](Self::run) again and again until it is stopped: who has lost leadership contends anew.
    pub async fn run_until_stopped(&self, stop: CancellationToken) -> Result<(), ElectionError> {
        loop {
            match self.run(stop.clone()).await {
                Err(ElectionError::Lost(cause)) if !stop.is_cancelled() => {
                    tracing::info!(lock = %self.lock.reference(), %cause, "contending for leadership again");
                }
                Err(ElectionError::Lost(_)) => return Ok(()),
                ended => return ended,
            }
        }
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector")
            .field("lock", &self.lock.reference().to_string())
            .field("identity", &self.view.identity)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
