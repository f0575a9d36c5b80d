//! What a manager runs.

use std::error::Error;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Any error that can be sent to another thread.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a manager runs: a controller, an informer factory, a server, a task of one's own. One task each.
///
/// It depends on no manager: whoever has a [`RunContext`] can run it.
///
/// ```
/// use futures::future::BoxFuture;
/// use kubewire_controller::{BoxError, Group, RunContext, Runnable};
///
/// /// Says every minute that it is there, on every replica.
/// struct Heartbeat;
///
/// impl Runnable for Heartbeat {
///     fn name(&self) -> &str {
///         "heartbeat"
///     }
///
///     fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
///         Box::pin(async move {
///             let mut minutes = tokio::time::interval(std::time::Duration::from_secs(60));
///             while cx.stop.run_until_cancelled(minutes.tick()).await.is_some() {
///                 println!("here");
///             }
///             Ok(())
///         })
///     }
///
///     fn group(&self) -> Group {
///         Group::Always
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let cx = RunContext::new();
/// cx.stop.cancel();
/// Heartbeat.run(cx).await.unwrap();
/// # });
/// ```
pub trait Runnable: Send + Sync + 'static {
    /// What it is called in logs and errors.
    fn name(&self) -> &str;

    /// Runs until `cx.stop` is cancelled. It is called once.
    ///
    /// `Ok` before the stop just ends it; an error stops the manager. After the stop it may end the work that it has in
    /// hand, until `cx.cancel` says to give that up too. The future is polled to its end, unless the manager gives it up
    /// after the grace period.
    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Completes once it is ready, e.g. its caches are synced; the groups behind its own wait for that. It is called once,
    /// when [`run`](Self::run) is being polled elsewhere, and bounds itself: an error, also that it took too long, stops the
    /// manager. Ready at once unless told otherwise. May be dropped at any time.
    fn ready(&self, cx: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        let _ = cx;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Work to be done before this replica leads, if there is any: sources are started and caches filled, so that a new
    /// leader begins at once. It ends when that is done, or with an error, which stops the manager. Asked for once, before
    /// [`run`](Self::run); only what is in [`Group::Leader`] is asked.
    fn warm_up(&self, cx: RunContext) -> Option<BoxFuture<'_, Result<(), BoxError>>> {
        let _ = cx;
        None
    }

    /// What it has done and has to do, for [`wait_idle`](crate::RunnableGroups::wait_idle). Nothing, unless told otherwise.
    /// Asked again and again while it runs; it answers at once.
    fn activity(&self) -> Activity {
        Activity::default()
    }

    /// With what it is started and stopped. [`Group::Leader`] unless told otherwise, as in controller-runtime.
    fn group(&self) -> Group {
        Group::Leader
    }
}

/// What a [`Runnable`] has done and has to do, as of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// How often it has done something: grows with each piece of work that was begun.
    pub done: u64,
    /// How much waits to be done at once, or is being done. What is to be done at a later time does not count.
    pub at_hand: usize,
}

impl std::iter::Sum for Activity {
    fn sum<I: Iterator<Item = Self>>(activities: I) -> Self {
        activities.fold(Self::default(), |sum, one| Self {
            done: sum.done.wrapping_add(one.done),
            at_hand: sum.at_hand.saturating_add(one.at_hand),
        })
    }
}

/// What is started together; in the order of starting. What is in a group starts once those before it are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// Servers for health and metrics: they answer first and last.
    Http,
    /// Webhooks: a conversion may be needed for the first list.
    Webhooks,
    /// Caches: everything behind may rely on them.
    Caches,
    /// What runs on every replica.
    Always,
    /// What runs on the leader alone; where there is no election, on every replica.
    Leader,
}

/// How a running thing is told to end, in two steps.
///
/// Cloning it counts three references.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// Take no new work, and end.
    pub stop: CancellationToken,
    /// Give up what is in flight. Comes after the grace period, or at once where going on would do harm, as when the lease
    /// was lost. Always cancelled together with, or after, `stop`.
    pub cancel: CancellationToken,
    /// What was spawned, and has not ended.
    pub(crate) tasks: TaskTracker,
}

impl RunContext {
    /// Two tokens that nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A context that ends with this one, and can be ended alone.
    #[must_use = "a child that is dropped ends nothing"]
    pub fn child(&self) -> Self {
        Self { stop: self.stop.child_token(), cancel: self.cancel.child_token(), tasks: self.tasks.clone() }
    }

    /// For what a runnable spawns: a manager takes the runnable for ended when all that it has tracked so is gone, too.
    /// So a lease is not given up beside a task that was aborted and is still at it, as it blocks its thread.
    ///
    /// ```
    /// # use futures::future::BoxFuture;
    /// # use kubewire_controller::{BoxError, RunContext, Runnable};
    /// use tokio::task::JoinSet;
    ///
    /// struct Workers;
    ///
    /// impl Runnable for Workers {
    ///     fn name(&self) -> &str {
    ///         "workers"
    ///     }
    ///
    ///     fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
    ///         Box::pin(async move {
    ///             // Dropped with the future, it aborts them, but cannot wait for them.
    ///             let mut workers = JoinSet::new();
    ///             for _ in 0..4 {
    ///                 let stop = cx.stop.clone();
    ///                 workers.spawn(cx.track(async move { stop.cancelled().await }));
    ///             }
    ///             workers.join_all().await;
    ///             Ok(())
    ///         })
    ///     }
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let cx = RunContext::new();
    /// # cx.stop.cancel();
    /// # Workers.run(cx).await.unwrap();
    /// # });
    /// ```
    pub fn track<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.tasks.track_future(future)
    }
}
