//! The controller: sources, a queue, workers.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use kubewire_ratelimit::Clock;
use kubewire_ratelimit::clock::after;
use kubewire_workqueue::Guard;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::attempt::Attempt;
use crate::builder::Builder;
use crate::controller_metrics::{ControllerMetrics, ControllerSeries};
use crate::controller_options::{ControllerOptions, Settings};
use crate::decision::{ComesBack, decide};
use crate::outcome::Outcome;
use crate::panic_text::panic_text;
use crate::reconcile_error::ReconcileError;
use crate::reconciler::{AnyReconciler, Reconciler};
use crate::request::{Request, RequestKey};
use crate::request_queue::RequestQueue;
use crate::runnable::{BoxError, Group, RunContext, Runnable};
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

struct Inner<R: RequestKey> {
    name: String,
    settings: Settings,
    reconciler: Box<dyn AnyReconciler<R>>,
    queue: RequestQueue<R>,
    sources: Arc<Sources<R>>,
    series: ControllerSeries,
    clock: Clock,
    run: AtomicBool,
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
            workers.spawn(Arc::clone(inner).work(cx.clone()));
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

impl<R: RequestKey> Inner<R> {
    /// A worker.
    async fn work(self: Arc<Self>, cx: RunContext) {
        loop {
            // The stop comes first, so that no attempt begins after it.
            let request = tokio::select! {
                biased;
                () = cx.stop.cancelled() => return,
                request = self.queue.get() => request,
            };
            let Some(request) = request else { return };
            self.process(request, &cx).await;
        }
    }

    /// One attempt, and what becomes of its request. The request is done when this returns or unwinds.
    async fn process(&self, request: Guard<R>, cx: &RunContext) {
        let _active = self.series.active();
        let began = self.clock.now();
        let deadline = self.settings.reconcile_timeout.map(|timeout| after(began, timeout));
        let failures = self.queue.queue().num_requeues(&request);
        let attempt = Attempt::new(request.priority(), failures, deadline, cx.stop.clone());
        let span = tracing::info_span!(
            "reconcile",
            controller = self.name,
            request = ?request.key(),
            reconcile_id = %attempt.id(),
        );
        let ended = self.attempt(request.key().clone(), &attempt, cx).instrument(span.clone()).await;
        let now = self.clock.now();
        self.series.took(now.saturating_duration_since(began));
        if deadline.is_some_and(|deadline| now >= deadline) {
            self.series.timeouts.inc();
        }
        let ended = ended.unwrap_or_else(|panic| {
            self.series.panics.inc();
            if !self.settings.recover_panic {
                resume_unwind(panic);
            }
            Err(ReconcileError::Panicked(panic_text(&*panic)))
        });
        span.in_scope(|| self.apply(&request, &ended, attempt.requeue_priority()));
    }

    /// The outer error is a panic.
    async fn attempt(
        &self,
        request: R,
        attempt: &Attempt,
        cx: &RunContext,
    ) -> Result<Result<Outcome, ReconcileError>, Box<dyn Any + Send>> {
        let reconcile = attempt.clone().scope(self.reconciler.reconcile_boxed(request, attempt.clone()));
        let mut reconcile = Box::pin(AssertUnwindSafe(reconcile).catch_unwind());
        let time_is_up = async {
            match attempt.deadline() {
                Some(deadline) => self.clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            ended = &mut reconcile => ended.map(|ended| ended.map_err(ReconcileError::Failed)),
            () = cx.cancel.cancelled() => Ok(Err(ReconcileError::Cancelled)),
            () = time_is_up => {
                Ok(Err(ReconcileError::TimedOut(self.settings.reconcile_timeout.unwrap_or_default())))
            }
        };
        // What it owns is the user's, and may panic.
        if catch_unwind(AssertUnwindSafe(|| drop(reconcile))).is_err() {
            tracing::error!("what the reconciler held panicked when it was dropped");
        }
        ended
    }

    /// Applies to queue and metrics what becomes of the request.
    fn apply(&self, request: &Guard<R>, ended: &Result<Outcome, ReconcileError>, priority: i32) {
        let decision = decide(ended);
        self.series.count(decision.label);
        if decision.forget {
            self.queue.queue().forget(request);
        }
        let request = request.key().clone();
        let delay = match decision.comes_back {
            ComesBack::Not => None,
            ComesBack::After(delay) => {
                self.queue.add_after(request, delay, priority);
                Some(delay)
            }
            ComesBack::RateLimited => Some(self.queue.add_rate_limited(request, std::time::Duration::MAX, priority)),
        };
        match ended {
            Ok(outcome) => tracing::debug!(?outcome, ?delay, "reconciled"),
            Err(error) => {
                self.series.errors.inc();
                if decision.terminal {
                    self.series.terminal_errors.inc();
                }
                match error {
                    ReconcileError::Cancelled => tracing::warn!(%error, "gave up"),
                    _ if decision.terminal => tracing::error!(%error, "failed, and is not tried again"),
                    _ => tracing::error!(%error, ?delay, "failed, and is tried again"),
                }
            }
        }
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
