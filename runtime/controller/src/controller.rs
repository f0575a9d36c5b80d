//! The controller: sources, a queue, workers.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::BoxFuture;
use kubewire_ratelimit::Clock;
use tokio::task::JoinSet;

use crate::builder::Builder;
use crate::controller_metrics::{ControllerMetrics, ControllerSeries};
use crate::controller_options::{ControllerOptions, Settings};
use crate::reconciler::{AnyReconciler, Reconciler};
use crate::request::{Request, RequestKey};
use crate::request_queue::RequestQueue;
use crate::runnable::{Activity, BoxError, Group, RunContext, Runnable};
use crate::source::Source;
use crate::sources::{Progress, Sources};
use crate::start_error::StartError;

/// Sources that add requests to a queue, and workers that take them out and reconcile them: controller-runtime's
/// `Controller`. Cloning gives another handle to the same one.
///
/// It is a [`Runnable`]: give it to a manager, or [`run`](Self::run) it. It runs once.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{
///     Attempt, Channel, Controller, ControllerOptions, EnqueueRequestForObject, Outcome, Request, RunContext,
/// };
/// use kubewire_indexer::{Id, Meta};
///
/// struct Pod;
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", "web")
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let cx = RunContext::new();
/// let stop = cx.stop.clone();
/// let reconcile = move |pod: Request, _: Attempt| {
///     let stop = stop.clone();
///     async move {
///         assert_eq!(pod.to_string(), "default/web");
///         stop.cancel();
///         Ok::<_, std::io::Error>(Outcome::Done)
///     }
/// };
/// let controller = Controller::new("pods", reconcile, ControllerOptions::new());
/// let pods = Channel::new();
/// controller.watch(pods.source("pods", EnqueueRequestForObject)).await.unwrap();
/// pods.send(Arc::new(Pod)).await.unwrap();
/// controller.run(cx).await.unwrap();
/// # });
/// ```
///
/// # How it ends
/// Once `stop` of its [`RunContext`] is cancelled no attempt begins; what waits stays undone. Attempts that are being made go
/// on, until `cancel` is cancelled: then their futures are dropped. It has ended when they have.
pub struct Controller<R: RequestKey = Request> {
    inner: Arc<Inner<R>>,
}

pub(crate) struct Inner<R: RequestKey> {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) reconciler: Box<dyn AnyReconciler<R>>,
    pub(crate) queue: RequestQueue<R>,
    sources: Arc<Sources<R>>,
    pub(crate) series: ControllerSeries,
    pub(crate) clock: Clock,
    run: AtomicBool,
    /// How many attempts were begun.
    pub(crate) attempts: AtomicU64,
}

impl Controller<Request> {
    /// Builds a controller of informers.
    pub fn builder() -> Builder<Request> {
        Builder::new()
    }
}

impl<R: RequestKey> Controller<R> {
    /// A controller without sources, whose metrics nobody reads. Nothing runs before it is started.
    pub fn new(name: impl Into<String>, reconciler: impl Reconciler<R>, options: ControllerOptions<R>) -> Self {
        Self::with_metrics(name, reconciler, options, &ControllerMetrics::new())
    }

    /// A controller without sources. Its series are made at once.
    pub fn with_metrics(
        name: impl Into<String>,
        reconciler: impl Reconciler<R>,
        options: ControllerOptions<R>,
        metrics: &ControllerMetrics,
    ) -> Self {
        let (name, clock) = (name.into(), Clock::system());
        let (settings, limiter) = options.resolve();
        let of_queue = metrics.of_queue(&name, settings.priority_queue.is_some());
        let queue = RequestQueue::new(&name, limiter, settings.priority_queue, of_queue, clock.clone());
        let inner = Arc::new(Inner {
            sources: Arc::new(Sources::new(&name, queue.clone(), settings.cache_sync_timeout)),
            series: metrics.of_controller(&name, settings.max_concurrent_reconciles),
            reconciler: Box::new(reconciler),
            run: AtomicBool::new(false),
            attempts: AtomicU64::new(0),
            name,
            settings,
            queue,
            clock,
        });
        let refreshed = Arc::downgrade(&inner);
        metrics.at_refresh(move || {
            let Some(inner) = refreshed.upgrade() else { return false };
            inner.queue.queue().refresh_metrics();
            true
        });
        Self { inner }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Adds a source. Before the start it is kept until then; after it the source is started at once, and not waited for.
    ///
    /// # Errors
    /// The source could not be started, or the controller has ended.
    pub async fn watch(&self, source: impl Source<R>) -> Result<(), StartError> {
        self.inner.sources.add(Box::new(source)).await
    }

    pub(crate) fn watch_before_start(&self, source: Box<dyn Source<R>>) {
        self.inner.sources.add_before_start(source);
    }

    /// Runs until `cx.stop` is cancelled: starts the sources, waits until all are synced, then works.
    ///
    /// A stop before that is no error. Dropping the future ends it at once.
    ///
    /// # Errors
    /// A source could not be started or was not synced in time, or the controller was started before. After a failure every
    /// start answers the same.
    ///
    /// # Panics
    /// With the panic of a reconciler, if the controller does not [recover](ControllerOptions::recover_panic).
    pub async fn run(&self, cx: RunContext) -> Result<(), StartError> {
        let inner = &self.inner;
        if inner.run.swap(true, Ordering::AcqRel) {
            return Err(match inner.sources.progress() {
                Progress::Failed(error) => error,
                _ => StartError::AlreadyStarted { controller: inner.name.clone() },
            });
        }
        let end = EndOnDrop(inner);
        if !inner.sources.ensure_synced(&cx.stop).await? {
            return Ok(());
        }
        tracing::info!(controller = inner.name, workers = inner.settings.max_concurrent_reconciles, "workers start");
        let mut workers = JoinSet::new();
        for _ in 0..inner.settings.max_concurrent_reconciles {
            workers.spawn(cx.track(Arc::clone(inner).work(cx.clone())));
        }
        let mut panicked = None;
        tokio::select! {
            biased;
            () = cx.stop.cancelled() => {}
            ended = workers.join_next() => panicked = panic_of(ended),
        }
        inner.queue.queue().shut_down();
        if panicked.is_some() {
            workers.shutdown().await;
        }
        while let Some(ended) = workers.join_next().await {
            panicked = panicked.or_else(|| panic_of(Some(ended)));
        }
        drop(end);
        match panicked {
            Some(panic) => resume_unwind(panic),
            None => Ok(()),
        }
    }

    /// Starts the sources and waits until they are synced, without workers: for a replica that does not lead yet. A later
    /// [`run`](Self::run) begins with what is queued then. The sources end with `cx.stop`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn warm_up(&self, cx: RunContext) -> Result<(), StartError> {
        self.inner.sources.ensure_synced(&cx.stop).await.map(|_| ())
    }

    /// Waits until all sources are synced, or the controller has stopped before. Cancel-safe.
    ///
    /// # Errors
    /// A source could not be started or was not synced in time.
    pub async fn synced(&self) -> Result<(), StartError> {
        self.inner.sources.synced().await.map(|_| ())
    }

    /// Whether all sources that were there at the start are synced.
    pub fn has_synced(&self) -> bool {
        matches!(self.inner.sources.progress(), Progress::Synced)
    }

    /// The queue, to look into and to add to.
    pub fn queue(&self) -> &RequestQueue<R> {
        &self.inner.queue
    }
}

fn panic_of(ended: Option<Result<(), tokio::task::JoinError>>) -> Option<Box<dyn Any + Send>> {
    ended?.err()?.try_into_panic().ok()
}

/// Ends sources and queue, also where a run is dropped.
struct EndOnDrop<'a, R: RequestKey>(&'a Inner<R>);

impl<R: RequestKey> Drop for EndOnDrop<'_, R> {
    fn drop(&mut self) {
        self.0.queue.queue().shut_down();
        self.0.sources.end();
    }
}

impl<R: RequestKey> Runnable for Controller<R> {
    fn name(&self) -> &str {
        self.name()
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.run(cx).await?) })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.synced().await?) })
    }

    fn warm_up(&self, cx: RunContext) -> Option<BoxFuture<'_, Result<(), BoxError>>> {
        let warm_up =
            || -> BoxFuture<'_, Result<(), BoxError>> { Box::pin(async move { Ok(self.warm_up(cx).await?) }) };
        self.inner.settings.warm_up.then(warm_up)
    }

    /// The attempts, and the requests that wait or are being reconciled; nothing while it does not run, as on a standby. Cost:
    /// a clone of each such request.
    fn activity(&self) -> Activity {
        let done = self.inner.attempts.load(Ordering::Relaxed);
        if !self.inner.run.load(Ordering::Acquire) {
            return Activity { done, at_hand: 0 };
        }
        // A request that cannot be cloned waits, or is being reconciled.
        let snapshot = || self.inner.queue.queue().snapshot();
        let Ok(queue) = catch_unwind(AssertUnwindSafe(snapshot)) else { return Activity { done, at_hand: 1 } };
        let at_hand = if queue.shutting_down { 0 } else { queue.waiting.len() };
        Activity { done, at_hand: at_hand + queue.processing.len() }
    }

    fn group(&self) -> Group {
        if self.inner.settings.need_leader_election { Group::Leader } else { Group::Always }
    }
}

impl<R: RequestKey> Clone for Controller<R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<R: RequestKey> fmt::Debug for Controller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.inner.name)
            .field("settings", &self.inner.settings)
            .field("sources", &self.inner.sources.progress())
            .field("queue", &self.inner.queue)
            .finish()
    }
}
