//! The sources of a controller: started and synced once, together.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use kubewire_informer::{CacheSyncReason, wait_for_cache_sync};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::panic_text::panic_text;
use crate::request::RequestKey;
use crate::request_queue::RequestQueue;
use crate::source::{Source, SourceContext, Started};
use crate::start_error::StartError;

/// The sources of a controller.
pub(crate) struct Sources<R: RequestKey> {
    controller: String,
    queue: RequestQueue<R>,
    /// How long each may take.
    timeout: Duration,
    /// Nothing is called, awaited or dropped under its lock.
    state: Mutex<State<R>>,
    progress: watch::Sender<Progress>,
}

/// Guarded by `Sources::state`.
struct State<R: RequestKey> {
    /// Before the start: what is to be started.
    waiting: Vec<Box<dyn Source<R>>>,
    /// From the start on: cancelled when all is to end.
    life: Option<CancellationToken>,
    /// What keeps the sources going.
    kept: Vec<Box<dyn Any + Send>>,
    ended: bool,
}

/// How far the sources are.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    NotStarted,
    Starting,
    Synced,
    /// Stopped before they were synced.
    Stopped,
    Failed(StartError),
}

impl<R: RequestKey> Sources<R> {
    pub(crate) fn new(controller: &str, queue: RequestQueue<R>, timeout: Duration) -> Self {
        let state = State { waiting: Vec::new(), life: None, kept: Vec::new(), ended: false };
        let (progress, _) = watch::channel(Progress::NotStarted);
        Self { controller: controller.to_owned(), queue, timeout, state: Mutex::new(state), progress }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Adds a source: it is started with the others, or at once if they have been; then its sync is not waited for.
    pub(crate) async fn add(&self, source: Box<dyn Source<R>>) -> Result<(), StartError> {
        let (source, life) = {
            let mut state = self.state.lock();
            if state.ended {
                drop(state);
                return Err(self
                    .failure()
                    .unwrap_or_else(|| StartError::Ended { controller: self.controller.clone() }));
            }
            let Some(life) = state.life.clone() else {
                state.waiting.push(source);
                return Ok(());
            };
            (source, life)
        };
        let started = Starter::of(self, life).start(source.name(), source).await?;
        let mut kept = started.into_kept();
        let mut state = self.state.lock();
        if !state.ended {
            state.kept.append(&mut kept);
        }
        drop(state);
        drop(kept);
        Ok(())
    }

    /// As [`add`](Self::add), before the start.
    pub(crate) fn add_before_start(&self, source: Box<dyn Source<R>>) {
        self.state.lock().waiting.push(source);
    }

    /// Starts the sources, if nobody has, and waits until all are synced: `true`, or `stop` comes first.
    pub(crate) async fn ensure_synced(self: &Arc<Self>, stop: &CancellationToken) -> Result<bool, StartError> {
        self.begin(stop);
        match stop.run_until_cancelled(self.synced()).await {
            Some(ended) => ended,
            None => Ok(false),
        }
    }

    /// Waits until all sources are synced: `true`, or they will never be.
    pub(crate) async fn synced(&self) -> Result<bool, StartError> {
        let mut progress = self.progress.subscribe();
        let ended = progress.wait_for(|now| !matches!(now, Progress::NotStarted | Progress::Starting)).await;
        match ended.as_deref() {
            Ok(Progress::Failed(error)) => Err(error.clone()),
            Ok(Progress::Synced) => Ok(true),
            // The sender lives as long as this.
            _ => Ok(false),
        }
    }

    fn begin(self: &Arc<Self>, stop: &CancellationToken) {
        let mut state = self.state.lock();
        if state.life.is_some() || state.ended {
            return;
        }
        let life = stop.child_token();
        state.life = Some(life.clone());
        let sources = std::mem::take(&mut state.waiting);
        drop(state);
        self.progress.send_replace(Progress::Starting);
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let progress = this.start_all(sources, &life).await;
            let goes_on = matches!(progress, Progress::Synced);
            this.progress.send_replace(progress);
            if goes_on {
                life.cancelled().await;
            }
            this.end();
        });
    }

    /// Starts all in parallel; the first failure ends the others.
    async fn start_all(&self, sources: Vec<Box<dyn Source<R>>>, life: &CancellationToken) -> Progress {
        let mut tasks = JoinSet::new();
        for source in sources {
            let starter = Starter::of(self, life.clone());
            tasks.spawn(async move { starter.start_and_sync(source).await });
        }
        let all = async {
            let mut kept = Vec::new();
            while let Some(ended) = tasks.join_next().await {
                match ended {
                    Ok(Ok(Some(started))) => kept.extend(started.into_kept()),
                    Ok(Ok(None)) => return Progress::Stopped,
                    Ok(Err(error)) => return Progress::Failed(error),
                    Err(error) => {
                        return Progress::Failed(StartError::of_source(
                            &self.controller,
                            "without a name",
                            error.into(),
                        ));
                    }
                }
            }
            let mut state = self.state.lock();
            state.kept.append(&mut kept);
            Progress::Synced
        };
        let progress = life.run_until_cancelled(all).await.unwrap_or(Progress::Stopped);
        tasks.shutdown().await;
        progress
    }

    /// Ends all sources, for ever.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        let (waiting, kept) = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.kept));
        let life = state.life.clone();
        drop(state);
        if let Some(life) = life {
            life.cancel();
        }
        drop((waiting, kept));
    }

    fn failure(&self) -> Option<StartError> {
        match &*self.progress.borrow() {
            Progress::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }
}

/// What it takes to start one source.
struct Starter<R: RequestKey> {
    cx: SourceContext<R>,
    timeout: Duration,
}

impl<R: RequestKey> Starter<R> {
    fn of(sources: &Sources<R>, life: CancellationToken) -> Self {
        let cx = SourceContext::new(sources.queue.clone(), sources.controller.clone(), life);
        Self { cx, timeout: sources.timeout }
    }

    async fn start(&self, name: String, source: Box<dyn Source<R>>) -> Result<Started, StartError> {
        let controller = self.cx.controller.clone();
        let cx = self.cx.clone();
        // In a task of its own, so that one that blocks its thread is noticed too.
        let start = AbortOnDropHandle::new(tokio::spawn(async move { source.start(cx).await }));
        match timeout(self.timeout, start).await {
            Ok(Ok(Ok(started))) => Ok(started.watched(&name, &self.cx)),
            Ok(Ok(Err(error))) => Err(StartError::of_source(&controller, &name, error)),
            Ok(Err(ended)) => {
                let panic = ended.try_into_panic().map_or_else(|ended| ended.to_string(), |panic| panic_text(&*panic));
                let text = format!("it panicked: {panic}");
                Err(StartError::of_source(&controller, &name, text.into()))
            }
            Err(_) => Err(StartError::StartTimedOut { controller, source_name: name, timeout: self.timeout }),
        }
    }

    /// `None`: stopped before it was synced.
    async fn start_and_sync(self, source: Box<dyn Source<R>>) -> Result<Option<Started>, StartError> {
        let (began, name) = (Instant::now(), source.name());
        let started = self.start(name.clone(), source).await?;
        let left = self.timeout.saturating_sub(began.elapsed());
        match wait_for_cache_sync(&self.cx.stop, left, started.syncs()).await {
            Ok(()) => Ok(Some(started)),
            Err(error) if error.reason == CacheSyncReason::Cancelled => Ok(None),
            Err(error) => {
                let unsynced = error.unsynced.iter().map(|(name, hindrance)| format!("{name}: {hindrance}"));
                Err(StartError::NotSynced {
                    controller: self.cx.controller,
                    source_name: name,
                    timeout: self.timeout,
                    reason: unsynced.collect::<Vec<_>>().join("; "),
                })
            }
        }
    }
}
