//! What everybody else sees of an elector.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::Term;
use crate::sync::Mutex;

/// Whether this process leads, for all who want to know. Made by [`Elector::leadership`](crate::Elector::leadership);
/// cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub(crate) terms: watch::Receiver<Option<Term>>,
    pub(crate) view: Arc<View>,
}

/// What an elector tells beside its terms.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) identity: String,
    pub(crate) lease_duration: Duration,
    pub(crate) seen: Mutex<Seen>,
}

/// Guarded by `View::seen`.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) holder: String,
    pub(crate) last_error: Option<String>,
}

impl Leadership {
    /// Whether this process leads at this moment: a comparison with the clock, not a flag. See [`Term::is_valid`].
    pub fn is_leader(&self) -> bool {
        self.term().is_some()
    }

    /// The term, if there is one.
    pub fn term(&self) -> Option<Term> {
        // The clock is read without the lock: what it adds for a suspended machine is the user's.
        let term = self.terms.borrow().clone();
        term.filter(Term::is_valid)
    }

    /// Waits until this process leads; `None` when the elector is gone. Cancel-safe.
    pub async fn wait_for_leadership(&self) -> Option<Term> {
        let mut terms = self.terms.clone();
        loop {
            let term = terms.borrow_and_update().clone();
            if let Some(term) = term.filter(Term::is_valid) {
                return Some(term);
            }
            terms.changed().await.ok()?;
        }
    }

    /// Who holds the lease, as far as it was seen; empty where nobody does, or nothing was seen yet.
    pub fn holder(&self) -> String {
        self.view.seen.lock().holder.clone()
    }

    /// The name of this candidate.
    pub fn identity(&self) -> &str {
        &self.view.identity
    }

    /// What went wrong with the last request for the lease; `None` when it worked.
    pub fn last_error(&self) -> Option<String> {
        self.view.seen.lock().last_error.clone()
    }

    /// Whether the elector is alive, as client-go's `Check`: an error if it thinks that it leads though its last renewal
    /// is older than the lease and this tolerance. (It may not act then anyway.) Whoever does not lead is healthy.
    ///
    /// # Errors
    /// So it is.
    pub fn check(&self, tolerance: Duration) -> Result<(), HealthError> {
        let term = self.terms.borrow().clone();
        let Some(term) = term else { return Ok(()) };
        let age = term.now().saturating_duration_since(term.renewed());
        if age <= self.view.lease_duration.saturating_add(tolerance) {
            return Ok(());
        }
        Err(HealthError { age })
    }
}

/// An elector stands still: it did not notice the end of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was last renewed {age:?} ago and the elector did not notice: restart this process")]
pub struct HealthError {
    age: Duration,
}

/// A health check that can be registered before there is an elector; as client-go's `HealthzAdaptor`.
///
/// ```
/// use kubewire_leaderelection::{Elector, LeaderHealth, fake::FakeLock};
/// use std::time::Duration;
///
/// let health = LeaderHealth::new(Duration::from_secs(20));
/// assert!(health.check().is_ok(), "no elector, no harm");
/// let elector = Elector::builder(FakeLock::new(), "a").build()?;
/// health.set(elector.leadership());
/// assert!(health.check().is_ok());
/// # Ok::<_, kubewire_leaderelection::SettingsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LeaderHealth {
    tolerance: Duration,
    leadership: Arc<Mutex<Option<Leadership>>>,
}

impl LeaderHealth {
    /// With this tolerance beyond the lease duration. client-go's components take 20 s.
    pub fn new(tolerance: Duration) -> Self {
        Self { tolerance, leadership: Arc::default() }
    }

    /// The elector to look at from now on.
    pub fn set(&self, leadership: Leadership) {
        let before = self.leadership.lock().replace(leadership);
        drop(before);
    }

    /// See [`Leadership::check`].
    ///
    /// # Errors
    /// The elector stands still.
    pub fn check(&self) -> Result<(), HealthError> {
        let leadership = self.leadership.lock().clone();
        leadership.map_or(Ok(()), |leadership| leadership.check(self.tolerance))
    }
}
