//! The shared index informer: one cache, many handlers.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use kubewire_indexer::{IndexConflict, Indexer, Indexers, Lister, Object};
use kubewire_listwatch::ListerWatcher;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::core::{Core, RunReflector};
use crate::health::Health;
use crate::informer_store::InformerStore;
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::reflector::resource_version::{is_number, is_older};
use crate::reflector::{Reflector, ReflectorMonitor};
use crate::sync::{AtomicBool, Handle, Mutex};
use crate::type_name::short_type_name;
use crate::{
    DeltaFifo, DeltaFifoOptions, HandlerOptions, InformerName, InformerOptions, InformerStatus, Registration,
    ResourceEventHandler, RunningInformer, Stopped, Subscription,
};

/// Keeps a store in step with what a server has, and tells handlers of each change: client-go's
/// `SharedIndexInformer`. Cloning gives another handle to the same informer.
///
/// It does nothing before [`start`](Self::start), and runs once. The store can be read at any time by
/// [`indexer`](Self::indexer); handlers come and go at any time. See the [crate] for a complete example.
pub struct Informer<O: Object> {
    core: Arc<Core<O>>,
}

/// Why no indices were added.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexersError {
    /// A name is taken.
    #[error(transparent)]
    Conflict(#[from] IndexConflict),
    /// The informer has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a version will not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitForVersionError {
    /// It, or the one that the store has come to, is no decimal number, so nothing can be said to be older or newer.
    #[error("the version {0:?} is no decimal number, so that none can be said to be newer")]
    NotComparable(String),
    /// The informer has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl<O: Object> Informer<O> {
    /// An informer of what this lists and watches, with the default options.
    pub fn new(lister_watcher: impl ListerWatcher<Object = O>) -> Self {
        let indexer = Indexer::new();
        Self::with_indexer(lister_watcher, indexer, InformerOptions::new())
    }

    /// An informer with these options. The error names an index that was given twice.
    pub fn with_options(
        lister_watcher: impl ListerWatcher<Object = O>,
        mut options: InformerOptions<O>,
    ) -> Result<Self, IndexConflict> {
        let indexer = Indexer::with_indexers(std::mem::take(&mut options.indexers))?;
        Ok(Self::with_indexer(lister_watcher, indexer, options))
    }

    pub(crate) fn with_indexer(
        lister_watcher: impl ListerWatcher<Object = O>,
        indexer: Indexer<O>,
        options: InformerOptions<O>,
    ) -> Self {
        let listed = lister_watcher.resource();
        let resource = options.description.unwrap_or_else(|| listed.clone());
        let health = Arc::new(Health::new(resource));
        let fifo = DeltaFifo::new(DeltaFifoOptions {
            delivery: options.delivery,
            known_objects: Some(Arc::new(indexer.clone())),
            transform: options.transform,
            ..DeltaFifoOptions::default()
        });
        let run: RunReflector<O> = Box::new(move |store, options, stop| {
            let reflector = Reflector::with_options(lister_watcher, store, options);
            (reflector.monitor(), reflector.run(stop).boxed())
        });
        Self {
            core: Arc::new(Core {
                listeners: Listeners::new(options.resync_period, Arc::clone(&health), options.clock.clone()),
                health,
                indexer,
                fifo,
                reflector: Mutex::new(Some((run, options.reflector.clock(options.clock.clone())))),
                clock: options.clock,
                name: options.name,
                metrics: options.metrics,
                listed,
                refreshing: AtomicBool::new(false),
                slow_handler_after: options.slow_handler_after,
                stop: CancellationToken::new(),
            }),
        }
    }

    /// Adds a handler, before the start or while it runs. It is told of everything that is in the store, as part
    /// of its initial list, and then of each change: none is left out, and none comes twice.
    ///
    /// The same kind of handler may be added any number of times; each is by itself. One that holds a handle to
    /// this informer keeps it in memory until it is removed or the informer is stopped.
    pub fn add_handler(&self, handler: impl ResourceEventHandler<O>) -> Result<Registration, Stopped> {
        self.add_handler_with(handler, HandlerOptions::new())
    }

    /// Adds a handler with these options, see [`add_handler`](Self::add_handler).
    pub fn add_handler_with<H: ResourceEventHandler<O>>(
        &self,
        handler: H,
        options: HandlerOptions,
    ) -> Result<Registration, Stopped> {
        let name = options.name.clone().unwrap_or_else(short_type_name::<H>);
        let listener = self.core.listeners.add(name, &options, Some(Box::new(handler)))?;
        Ok(Registration::new(listener))
    }

    /// A stream of what a handler would be told, see [`Subscription`].
    pub fn subscribe(&self) -> Result<Subscription<O>, Stopped> {
        self.subscribe_with(HandlerOptions::new())
    }

    /// A stream with these options, see [`Subscription`].
    pub fn subscribe_with(&self, options: HandlerOptions) -> Result<Subscription<O>, Stopped> {
        let name = options.name.clone().unwrap_or_else(|| "subscription".to_owned());
        let listener = self.core.listeners.add(name, &options, None)?;
        Ok(Subscription::new(listener))
    }

    /// Begins to list and watch, in tasks of its own on the present runtime, until `stop` is cancelled or what
    /// is returned is dropped. An informer runs once: a second call logs a warning and changes nothing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(&self, stop: CancellationToken) -> RunningInformer {
        let runtime = Handle::current();
        let core = Arc::clone(&self.core);
        let Some((run_reflector, options)) = core.reflector.lock().take() else {
            tracing::warn!(resource = %core.health.resource, "the informer has been started before; it runs only once");
            return RunningInformer::inert();
        };
        let metrics = Metrics::of_informer(core.name.as_ref(), core.metrics.clone(), &core.listed);
        let _ = core.health.set_metrics(metrics.clone());
        let check_period = core.listeners.start(runtime.clone());
        let store = Arc::new(InformerStore::new(core.fifo.clone(), Arc::clone(&core.listeners), core.clock.clone()));
        let (monitor, reflector) =
            run_reflector(store, options.told(check_period, metrics, core.name.clone()), core.stop.clone());
        // It was empty: only the one start gets here.
        let _ = core.health.monitor.set(monitor);
        let own_stop = core.stop.clone();
        let span = tracing::info_span!(
            "informer",
            resource = core.health.resource,
            name = core.name.as_ref().map(InformerName::as_str)
        );
        let task = runtime.spawn(core.run(reflector, stop).instrument(span));
        RunningInformer::new(own_stop, task)
    }

    /// Stops it for ever, also where it has not been started. Handlers that are being called end by themselves;
    /// what waits for them is thrown away. The store stays as it is and can be read.
    pub fn stop(&self) {
        self.core.stop.cancel();
        let never_started = self.core.reflector.lock().take();
        if never_started.is_some() {
            self.core.end();
            self.core.health.ended.set();
        }
    }

    /// Whether both are handles to one informer.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// Waits until it has stopped and all its tasks have ended. Cancel-safe.
    pub(crate) async fn ended(&self) {
        self.core.health.ended.wait().await;
    }

    /// The store. Whoever writes into it cheats all others.
    pub fn indexer(&self) -> Indexer<O> {
        self.core.indexer.clone()
    }

    /// A read-only view of the store, by namespace and label selector; as client-go's generated listers. Lists of one
    /// namespace want the index [`Indexers::by_namespace`], or they look at every object.
    ///
    /// Cost: it allocates; keep it.
    pub fn lister(&self) -> Lister<O> {
        Lister::new(self.indexer(), self.resource())
    }

    /// Adds indices, also while it runs.
    pub fn add_indexers(&self, indexers: Indexers<O>) -> Result<(), AddIndexersError> {
        if self.is_stopped() {
            return Err(Stopped.into());
        }
        Ok(self.core.indexer.add_indexers(indexers)?)
    }

    /// What keeps it from being synced.
    pub(crate) fn health(&self) -> &Health {
        &self.core.health
    }

    /// What is listed and watched.
    pub fn resource(&self) -> &str {
        &self.core.health.resource
    }

    /// Whether the first list is in the store. Of the handlers it says nothing, see
    /// [`Registration::has_synced`].
    pub fn has_synced(&self) -> bool {
        self.core.health.store_synced.is_set()
    }

    /// Waits until [`has_synced`](Self::has_synced); an error if it stops before. Cancel-safe.
    pub async fn synced(&self) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            () = self.core.health.store_synced.wait() => Ok(()),
            () = self.core.health.stopped.wait() => Err(Stopped),
        }
    }

    /// Whether it has stopped: the store does not change any more.
    pub fn is_stopped(&self) -> bool {
        self.core.health.stopped.is_set()
    }

    /// The version that the reflector has come to; empty before the first list.
    pub fn last_sync_resource_version(&self) -> String {
        self.core.health.monitor.get().map(ReflectorMonitor::resource_version).unwrap_or_default()
    }

    /// Waits until the store has taken in all that the server sent up to this version: with the version that a
    /// write has answered, the store then has that write or something newer.
    ///
    /// The version has to be one of the resource that is watched. It is reached by the next event or bookmark at
    /// or after it. Cancel-safe.
    pub async fn wait_for_version(&self, version: &str) -> Result<(), WaitForVersionError> {
        if !is_number(version) {
            return Err(WaitForVersionError::NotComparable(version.to_owned()));
        }
        loop {
            let moved = self.core.fifo.version_moved();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let applied = self.core.fifo.applied_version();
            match &*applied {
                "" => {}
                // The server's versions are not of the kind of this one.
                applied if !is_number(applied) => {
                    return Err(WaitForVersionError::NotComparable(applied.to_owned()));
                }
                applied if !is_older(applied, version) => return Ok(()),
                _ => {}
            }
            tokio::select! {
                biased;
                () = moved => {}
                () = self.core.health.stopped.wait() => return Err(Stopped.into()),
            }
        }
    }

    /// How it is doing. Cost: a few short locks and allocations.
    pub fn status(&self) -> InformerStatus {
        let core = &self.core;
        let reflector = core.health.monitor.get().map(ReflectorMonitor::status).unwrap_or_default();
        let now = core.clock.now();
        InformerStatus {
            resource: core.health.resource.clone(),
            at: now,
            phase: core.health.phase(),
            synced: self.has_synced(),
            staleness: reflector.last_heard.map(|heard| now.saturating_duration_since(heard)),
            reflector,
            objects: core.indexer.len(),
            pending: core.fifo.len(),
            applied_version: core.fifo.applied_version(),
            handlers: core.listeners.status(),
            panic: core.health.panic_text(),
        }
    }

    /// Tells the metrics of the present state: gauges, and what was added to the counts of handlers. It is done each half
    /// second by itself; call it before the metrics are read where that is too seldom. Where somebody else is at it, it
    /// does nothing. Cost: as [`status`](Self::status), and three calls of the metrics and five for each handler.
    pub fn refresh_metrics(&self) {
        self.core.refresh_metrics();
    }
}

impl<O: Object> Clone for Informer<O> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

impl<O: Object> fmt::Debug for Informer<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&self.status()).finish()
    }
}
