//! A cluster, what runs over it, and the servers that tell of it.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use kubewire_events::Recorder;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::event_writing::EventWriting;
use super::manager_options::ManagerOptions;
use super::run_error::{AddError, Ended, RunError};
use super::runnable_groups::RunnableGroups;
use super::running_manager::RunningManager;
use crate::{
    BoxError, Cache, Cluster, ControllerDefaults, ControllerHost, ControllerMetrics, GroupKind, HealthChecks,
    HealthServer, MetricsRegistry, MetricsServer, Runnable,
};

/// Runs controllers over a cluster: [`RunnableGroups`] with a [`Cluster`], checks, metrics, and the servers of both. Whoever
/// wants less makes these parts alone. Cloning gives another handle.
///
/// ```
/// # use futures::future::BoxFuture;
/// # use kubewire_controller::{BoxError, RunContext, Runnable};
/// # struct Worker;
/// # impl Runnable for Worker {
/// #     fn name(&self) -> &str { "worker" }
/// #     fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
/// #         Box::pin(async move { Ok(cx.stop.cancelled().await) })
/// #     }
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::{Manager, ManagerOptions};
/// use tokio_util::sync::CancellationToken;
///
/// let server = ApiServer::builder().pods(2).start().await?;
/// let options = ManagerOptions::new()
///     .health_address(([127, 0, 0, 1], 0).into())
///     .metrics_address(([127, 0, 0, 1], 0).into());
/// let manager = Manager::new(server.client(), options);
/// let pods = manager.cache().watch::<Arc<Pod>>()?;
/// manager.add(Worker)?;
///
/// let stop = CancellationToken::new(); // or kubewire_controller::stop_on_signal()?
/// let running = manager.spawn(stop); // or manager.run(stop).await
/// manager.synced().await?;
/// assert!(pods.has_synced());
/// assert!(manager.readyz().run("readyz", "").await.0);
/// assert!(manager.health_bound().is_some());
/// running.stop().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Manager {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    groups: RunnableGroups,
    metrics: MetricsRegistry,
    metrics_server: Option<MetricsServer>,
    health: HealthServer,
    serves_health: bool,
    controllers: ControllerDefaults,
    concurrency: HashMap<GroupKind, usize>,
    /// The names of its controllers. Nothing is called under its lock.
    names: Mutex<BTreeSet<String>>,
}

/// Two controllers of one manager have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is a controller {0:?} in this manager already: give one of them another name, as names tell metrics and logs apart"
)]
pub struct NameTaken(pub String);

impl Manager {
    /// A manager of this cluster, which it runs; a client will do where nothing is to be said about its cache. Nothing is
    /// started, and no port is opened, before [`run`](Self::run).
    pub fn new(cluster: impl Into<Cluster>, options: ManagerOptions) -> Self {
        let cluster = cluster.into();
        let groups = RunnableGroups::with(options.elector.clone())
            .grace_period(options.grace_period)
            .cancel_period(options.cancel_period);
        let health = HealthServer::new(options.health_address.unwrap_or_else(|| ([127, 0, 0, 1], 0).into()));
        if options.default_checks {
            add_default_checks(&health, &groups, &cluster, &options);
        }
        let metrics_server = options.metrics_address.map(|address| {
            let mut server = MetricsServer::new(address, options.metrics.clone());
            if let Some(access) = options.metrics_access.clone() {
                server = server.access(access);
            }
            #[cfg(feature = "rustls-tls")]
            if let Some(certificate) = options.metrics_tls.clone() {
                server = server.tls(certificate);
            }
            server
        });
        let shared = Shared {
            groups,
            metrics: options.metrics,
            metrics_server,
            health,
            serves_health: options.health_address.is_some(),
            controllers: options.controllers,
            concurrency: options.concurrency,
            names: Mutex::default(),
            cluster,
        };
        let this = Self { shared: Arc::new(shared) };
        this.add_own();
        this
    }

    fn add_own(&self) {
        let shared = &self.shared;
        // None of them is refused: it has just been made.
        let _ = shared.groups.add(shared.cluster.clone());
        if shared.serves_health {
            let _ = shared.groups.add(shared.health.clone());
        }
        if let Some(server) = &shared.metrics_server {
            let _ = shared.groups.add(server.clone());
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The client of the cluster.
    pub fn client(&self) -> &Client {
        self.cluster().client()
    }

    /// What is kept of the cluster.
    pub fn cache(&self) -> &Cache {
        self.cluster().cache()
    }

    /// The metrics; there also where nobody serves them.
    pub fn metrics(&self) -> &MetricsRegistry {
        &self.shared.metrics
    }

    /// The server of the metrics, to add paths to; none without an address.
    pub fn metrics_server(&self) -> Option<&MetricsServer> {
        self.shared.metrics_server.as_ref()
    }

    /// Whether the process lives; there also where nobody serves it.
    pub fn healthz(&self) -> &HealthChecks {
        self.shared.health.healthz()
    }

    /// Whether it is ready; there also where nobody serves it.
    pub fn readyz(&self) -> &HealthChecks {
        self.shared.health.readyz()
    }

    /// The server of the checks; it runs only where an address was given.
    pub fn health_server(&self) -> &HealthServer {
        &self.shared.health
    }

    /// Where the checks are served, once they are: another port than that of the options where that was 0.
    pub fn health_bound(&self) -> Option<SocketAddr> {
        self.shared.health.bound()
    }

    /// Where the metrics are served, once they are: another port than that of the options where that was 0.
    pub fn metrics_bound(&self) -> Option<SocketAddr> {
        self.metrics_server()?.bound()
    }

    /// What runs.
    pub fn groups(&self) -> &RunnableGroups {
        &self.shared.groups
    }

    /// Takes a runnable in, see [`RunnableGroups::add`]: a controller, another cluster, a webhook server.
    ///
    /// # Errors
    /// The stop has begun.
    pub fn add(&self, runnable: impl Runnable) -> Result<(), AddError> {
        self.shared.groups.add(runnable)
    }

    /// A recorder of events for a controller (such as `example.com/foo-controller`), which writes to `events.k8s.io/v1` of the
    /// cluster while this runs. What is recorded before waits for that; at the end, when all that may record something has
    /// ended, what is left is written; later ones are dropped and counted. The process needs the rights to create and patch
    /// `events`.
    ///
    /// # Errors
    /// The stop has begun.
    pub fn event_recorder(&self, controller: &str) -> Result<Recorder, AddError> {
        let (recorder, writer) = Recorder::builder(self.cluster().client().clone(), controller).build();
        self.add(EventWriting::new(controller, writer))?;
        Ok(recorder)
    }

    /// Takes a name for a controller of this manager: no other one gets it. (controller-runtime's names are taken in the whole
    /// process.)
    ///
    /// # Errors
    /// It is taken.
    pub fn take_name(&self, name: &str) -> Result<(), NameTaken> {
        if self.shared.names.lock().insert(name.to_owned()) { Ok(()) } else { Err(NameTaken(name.to_owned())) }
    }

    /// Runs all of it, see [`RunnableGroups::run`].
    ///
    /// # Errors
    /// All that went wrong.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), RunError> {
        self.shared.groups.run(stop).await
    }

    /// [Runs](Self::run) all of it in a task, until `stop` is cancelled or the answer is [stopped](RunningManager::stop) or
    /// dropped.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn(&self, stop: CancellationToken) -> RunningManager {
        RunningManager::of(self, &stop)
    }

    /// See [`RunnableGroups::started`].
    ///
    /// # Errors
    /// It ended before.
    pub async fn started(&self) -> Result<(), Ended> {
        self.shared.groups.started().await
    }

    /// See [`RunnableGroups::elected`].
    ///
    /// # Errors
    /// It ended before.
    pub async fn elected(&self) -> Result<(), Ended> {
        self.shared.groups.elected().await
    }

    /// See [`RunnableGroups::synced`].
    ///
    /// # Errors
    /// It ended before.
    pub async fn synced(&self) -> Result<(), Ended> {
        self.shared.groups.synced().await
    }

    /// See [`RunnableGroups::wait_idle`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewire_apiserver::ApiServer;
    /// use kubewire_controller::{Attempt, Controller, Manager, ManagerOptions, Outcome, Request};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let server = ApiServer::builder().pods(3).start().await?;
    /// let manager = Manager::new(server.client(), ManagerOptions::new());
    /// let pods = manager.cache().watch::<Arc<Pod>>()?;
    /// Controller::builder().for_(&pods).complete(&manager, |_: Request, _: Attempt| async {
    ///     Ok::<_, std::io::Error>(Outcome::Done)
    /// })?;
    /// let running = manager.spawn(CancellationToken::new());
    /// manager.wait_idle(Duration::from_millis(1)).await?;
    /// let metrics = manager.metrics().text()?;
    /// assert!(metrics.contains(r#"controller_runtime_reconcile_total{controller="pod",result="success"} 3"#));
    /// running.stop().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// It ended before.
    pub async fn wait_idle(&self, quiet: Duration) -> Result<(), Ended> {
        self.shared.groups.wait_idle(quiet).await
    }

    /// See [`RunnableGroups::ended`].
    pub async fn ended(&self) {
        self.shared.groups.ended().await;
    }
}

impl ControllerHost for Manager {
    fn controller_defaults(&self) -> ControllerDefaults {
        self.shared.controllers.clone()
    }

    fn concurrency_of(&self, kind: &GroupKind) -> Option<usize> {
        self.shared.concurrency.get(kind).copied()
    }

    fn controller_metrics(&self) -> ControllerMetrics {
        self.shared.metrics.controllers().clone()
    }

    fn add_controller(&self, controller: Arc<dyn Runnable>) -> Result<(), BoxError> {
        self.take_name(controller.name())?;
        Ok(self.shared.groups.add_shared(controller)?)
    }
}

fn add_default_checks(health: &HealthServer, groups: &RunnableGroups, cluster: &Cluster, options: &ManagerOptions) {
    // None of them is refused: the server has not started.
    let _ = health.healthz().add("ping", || Ok::<(), Ended>(()));
    // Checks are held by what they look at: a weak handle to it is enough.
    let groups = groups.downgrade();
    let _ = health.readyz().add("manager", move || match groups.upgrade() {
        Some(groups) if groups.is_stopping() => Err("it is stopping"),
        Some(groups) if !groups.has_started() => Err("it has not started yet"),
        Some(_) => Ok(()),
        None => Err("it is gone"),
    });
    let cache = cluster.cache().clone();
    let _ = health.readyz().add("caches", move || cache.check_synced());
    let (cache, tolerance) = (cluster.cache().clone(), options.watch_tolerance);
    let _ = health.readyz().add("watches", move || cache.check_watches(tolerance));
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("cluster", &self.shared.cluster)
            .field("groups", &self.shared.groups)
            .field("names", &*self.shared.names.lock())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
