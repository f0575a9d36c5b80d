//! kubewire-leaderelection's elector decides who leads of the replicas of a manager.

use futures::future::BoxFuture;
use kubewire_leaderelection::Elector;
use tokio_util::sync::CancellationToken;

use super::leader_election::{LeaderElection, OnElected};
use crate::BoxError;

/// Contends once: a lease that is lost ends the manager. It is given up after the stop as the elector was
/// [built](kubewire_leaderelection::ElectorBuilder::release_on_stop) to; leading work of the elector's own ends with it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::{Cluster, Manager, ManagerOptions};
/// use kubewire_leaderelection::{Elector, LeaseLock, unique_identity};
/// use tokio_util::sync::CancellationToken;
///
/// let client = ApiServer::start().await.client();
/// let lock = LeaseLock::new(client.clone(), "default", "my-controller");
/// let elector = Elector::builder(lock, unique_identity()).release_on_stop(true).build()?;
/// let manager = Manager::new(Cluster::new("cluster", client), ManagerOptions::new().elector(elector));
///
/// let stop = CancellationToken::new();
/// let running = tokio::spawn({
///     let (manager, stop) = (manager.clone(), stop.clone());
///     async move { manager.run(stop).await }
/// });
/// manager.elected().await?;
/// stop.cancel();
/// running.await??;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl LeaderElection for Elector {
    fn run(&self, stop: CancellationToken, elected: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            let leadership = self.leadership();
            let run = Elector::run(self, stop);
            tokio::pin!(run);
            tokio::select! {
                biased;
                ended = &mut run => return Ok(ended?),
                // It is not gone before its run is over.
                Some(_) = leadership.wait_for_leadership() => elected(),
            }
            Ok(run.await?)
        })
    }
}

#[cfg(test)]
mod tests;
