//! Who leads, as far as a manager must know it.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::BoxError;

/// Decides which of several replicas leads. kubewire-leaderelection's [`Elector`](kubewire_leaderelection::Elector) does; a
/// manager without any leads always.
///
/// ```
/// use futures::future::BoxFuture;
/// use kubewire_controller::{BoxError, LeaderElection, OnElected};
/// use tokio_util::sync::CancellationToken;
///
/// /// Leads when somebody says so.
/// struct ByHand(CancellationToken);
///
/// impl LeaderElection for ByHand {
///     fn run(&self, stop: CancellationToken, elected: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
///         Box::pin(async move {
///             if stop.run_until_cancelled(self.0.cancelled()).await.is_some() {
///                 elected();
///             }
///             stop.cancelled().await;
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait LeaderElection: Send + Sync + 'static {
    /// Whether it can work at all. Asked before anything starts; an error is that of the start.
    ///
    /// # Errors
    /// What is wrong with its settings.
    fn check(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Tries to lead until `stop` is cancelled, and calls `elected` when it does. Called once.
    ///
    /// After the stop it gives its lease up, where it is set to, and ends. By ending unasked after it was elected it says
    /// that the lease is lost: everything is cancelled at once. Dropping the future must give nothing up: the lease then runs
    /// out by itself.
    fn run(&self, stop: CancellationToken, elected: OnElected) -> BoxFuture<'_, Result<(), BoxError>>;
}

/// What an [`LeaderElection`] calls when it leads. It is quick.
pub type OnElected = Box<dyn FnOnce() + Send>;
