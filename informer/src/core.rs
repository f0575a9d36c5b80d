//! What runs of an informer: from the FIFO into the store, and to the handlers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use kubewire_indexer::{Indexer, Object};
use kubewire_ratelimit::{Clock, FailureLog};
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::informer_store::InformerStore;
use crate::listeners::Listeners;
use crate::metrics::{MetricsProvider, version_number};
use crate::processing::Applier;
use crate::reflector::{ReflectorMonitor, ReflectorOptions, RunError};
use crate::sync::{AtomicBool, Handle, Mutex};
use crate::upkeep::Upkeep;
use crate::{DeltaFifo, InformerName};

/// What the handles of an [`Informer`](crate::Informer) share.
pub(crate) struct Core<O: Object> {
    pub(crate) health: Arc<Health>,
    pub(crate) indexer: Indexer<O>,
    pub(crate) fifo: DeltaFifo<O>,
    pub(crate) listeners: Arc<Listeners<O>>,
    pub(crate) clock: Clock,
    pub(crate) name: Option<InformerName>,
    pub(crate) metrics: Option<Arc<dyn MetricsProvider>>,
    /// What is listed and watched, as the lister-watcher says.
    pub(crate) listed: String,
    /// Somebody tells the metrics of the present state.
    pub(crate) refreshing: AtomicBool,
    pub(crate) slow_handler_after: Duration,
    /// Taken by the start. Nothing is called under its lock.
    pub(crate) reflector: Mutex<Option<(RunReflector<O>, ReflectorOptions)>>,
    /// Ends everything.
    pub(crate) stop: CancellationToken,
}

/// What makes and runs the reflector, once it is known how often to resync.
pub(crate) type RunReflector<O> = Box<
    dyn FnOnce(
            Arc<InformerStore<O>>,
            ReflectorOptions,
            CancellationToken,
        ) -> (ReflectorMonitor, BoxFuture<'static, Result<(), RunError>>)
        + Send,
>;

impl<O: Object> Core<O> {
    /// Runs until it is stopped: the reflector in a task of its own, the handlers each in theirs, and the store
    /// in this one.
    pub(crate) fn run(
        self: Arc<Self>,
        reflector: impl Future<Output = Result<(), RunError>> + Send + 'static,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send {
        // Both also where the runtime is shut down and drops this future, before its first poll too, and where an
        // object panics.
        let ended = EndedOnDrop(Arc::clone(&self.health));
        let end = EndOnDrop(Arc::clone(&self));
        async move {
            let _ended = ended;
            let this = Arc::clone(&self);
            let reflector = Handle::current().spawn(async move {
                // However it ends: without a reflector the rest would wait for ever.
                let _stop = this.stop.clone().drop_guard();
                if let Err(panic) = reflector.await {
                    let _ = this.health.panic.set(panic);
                }
            });
            self.process(&stop).await;
            drop(end);
            // It has caught its panics itself.
            let _ = reflector.await;
            self.handlers_ended().await;
        }
    }

    /// Moves what the reflector has queued into the store, and tells the handlers.
    async fn process(&self, stop: &CancellationToken) {
        let mut applier = Applier::new(self.indexer.clone());
        let listeners = &*self.listeners;
        let mut upkeep = Upkeep::new(self);
        loop {
            upkeep.set_alarm();
            let mut popped = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.stop.cancelled() => return,
                () = listeners.joining() => {
                    listeners.welcome(&self.indexer);
                    upkeep.slow_calls.told(self.clock.now());
                    continue;
                }
                () = self.fifo.synced(), if !self.health.store_synced.is_set() => {
                    listeners.store_is_synced();
                    continue;
                }
                () = upkeep.alarm.ring() => {
                    upkeep.rang(self);
                    continue;
                }
                popped = self.fifo.pop_batch(BATCH_LEN_MAX) => match popped {
                    Ok(popped) => popped,
                    Err(_) => return,
                },
            };
            let began = self.clock.now();
            let initial = popped.is_initial();
            let mut anybody = false;
            applier.apply(popped.take_entries(), initial, &mut |told| anybody = listeners.tell(told));
            drop(popped);
            if anybody {
                upkeep.slow_calls.told(began);
            }
            if let Some(metrics) = &upkeep.metrics {
                let took = self.clock.now().saturating_duration_since(began);
                metrics.tell(|metrics| metrics.processing_latency(took));
            }
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Waits until all handlers' calls have returned, and says now and then that it does.
    async fn handlers_ended(&self) {
        let mut waits = FailureLog::new();
        loop {
            let look = async {
                match self.slow_handler_after {
                    Duration::ZERO => std::future::pending().await,
                    after => self.clock.sleep(after).await,
                }
            };
            tokio::select! {
                biased;
                () = self.listeners.ended() => return,
                () = look => {}
            }
            if waits.failed((), self.clock.now()).is_some() {
                let (resource, handlers) = (&*self.health.resource, self.listeners.running());
                tracing::warn!(
                    resource,
                    handlers,
                    "the informer has stopped and still waits for handlers to return from their last call"
                );
            }
        }
    }

    pub(crate) fn refresh_metrics(&self) {
        let Some(metrics) = self.health.metrics() else { return };
        if self.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let _done = ResetOnDrop(&self.refreshing);
        let reflector = self.health.monitor.get().map(ReflectorMonitor::status).unwrap_or_default();
        let staleness = reflector.last_heard.map(|heard| self.clock.now().saturating_duration_since(heard));
        let version = version_number(&self.fifo.applied_version());
        let (objects, queued) = (self.indexer.len() as u64, self.fifo.len() as u64);
        metrics.tell(|metrics| {
            metrics.failures_in_a_row(reflector.failures_in_a_row);
            metrics.queued_items(queued);
            metrics.objects(objects);
            if let Some(version) = version {
                metrics.store_resource_version(version);
            }
            if let Some(staleness) = staleness {
                metrics.staleness(staleness);
            }
        });
        self.listeners.tell_metrics(&metrics);
    }

    /// The store will not change any more.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.fifo.close();
        self.health.stopped.set();
        // A last time, since handlers leave now.
        self.refresh_metrics();
        drop(self.health.set_metrics(None));
        self.listeners.stop();
    }
}

struct EndOnDrop<O: Object>(Arc<Core<O>>);

impl<O: Object> Drop for EndOnDrop<O> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Says that all tasks have ended.
struct EndedOnDrop(Arc<Health>);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.ended.set();
    }
}

struct ResetOnDrop<'a>(&'a AtomicBool);

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The most entries that go into the store in one step. A newcomer among the handlers waits for no more.
const BATCH_LEN_MAX: usize = 256;
