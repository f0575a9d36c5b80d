//! Runs what a manager has, in groups: the shell of [`Stages`].

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::driver::Driver;
use super::stages::{Event, MemberId, Stages};
use crate::panic_text::panic_text;
use crate::{Activity, AddError, Ended, Failure, Group, LeaderElection, RunError, Runnable};

/// What runs: [`Runnable`]s in [`Group`](crate::Group)s, started and stopped in the documented order, within bounded time.
/// A [`Manager`](crate::Manager) is this with a cluster and servers. Cloning gives another handle.
///
/// # Start
///
/// The servers for health and metrics, webhooks, caches: each group when all of the one before are
/// [ready](Runnable::ready). Then what runs always; then warm-ups; then the elector, or, without one, what only a leader
/// runs. Who is added later begins at once, or with its group.
///
/// Nothing waits blindly: the stop, or an error of anybody, ends the start at any point of it. (controller-runtime waits for
/// ever for a cache that never syncs.)
///
/// # Stop
///
/// By the stop token, by an error or a panic of a runnable, or by the loss of the lease. Always and warm-ups, the leader's,
/// caches, webhooks, servers, each group when the one before has ended: so caches still answer while the controllers end
/// their work. The lease is given up when nothing of this runs any more; a standby gives it up first, so that it never comes
/// to lead while it ends.
///
/// All that together has the [grace period](Self::grace_period). When it is over, or at once where the lease was lost, all is
/// [cancelled](crate::RunContext::cancel), and has the [cancel period](Self::cancel_period) to end; then what is left is
/// dropped where it awaits. What never awaits, as it blocks its thread, survives that: it has two seconds more. Then the run
/// ends with [`Failure::StillRunning`], which names it, and the lease is not given up: it runs out. End the process in that
/// case: a runtime that is dropped waits for its threads. Let what blocks run by `tokio::task::spawn_blocking`.
///
/// ```
/// # use futures::future::BoxFuture;
/// # use kubewire_controller::{BoxError, RunContext, Runnable, RunnableGroups};
/// # use tokio_util::sync::CancellationToken;
/// # struct Worker;
/// # impl Runnable for Worker {
/// #     fn name(&self) -> &str { "worker" }
/// #     fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
/// #         Box::pin(async move { Ok(cx.stop.cancelled().await) })
/// #     }
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let groups = RunnableGroups::new();
/// groups.add(Worker)?;
///
/// let stop = CancellationToken::new();
/// let running = tokio::spawn({
///     let (groups, stop) = (groups.clone(), stop.clone());
///     async move { groups.run(stop).await }
/// });
/// groups.elected().await?;
/// stop.cancel();
/// running.await??;
/// assert!(groups.add(Worker).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct RunnableGroups {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) settings: Mutex<Settings>,
    /// Nothing is called, and no runnable dropped, under its lock.
    pub(super) state: Mutex<State>,
    /// The state has changed from outside of the driver.
    pub(super) changed: Notify,
    pub(super) started: CancellationToken,
    pub(super) elected: CancellationToken,
    pub(super) synced: CancellationToken,
    pub(super) ended: CancellationToken,
}

#[derive(Clone)]
pub(super) struct Settings {
    /// `None` is endless.
    pub(super) grace_period: Option<Duration>,
    pub(super) cancel_period: Duration,
    pub(super) abort_period: Duration,
    pub(super) elector: Option<Arc<dyn LeaderElection>>,
}

pub(super) struct State {
    pub(super) stages: Stages,
    /// Those that have not ended.
    pub(super) members: HashMap<MemberId, Member>,
}

/// Who is run, and what it said of itself when it was taken in: that is asked once.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) runnable: Arc<dyn Runnable>,
    pub(super) name: Arc<str>,
    pub(super) group: Group,
}

impl Member {
    /// Lets go of it: what is the user's is dropped, perhaps, and may panic.
    pub(super) fn let_go(self) {
        let name = Arc::clone(&self.name);
        if catch_unwind(AssertUnwindSafe(|| drop(self))).is_err() {
            tracing::error!(name = &*name, "a runnable panicked when it was dropped");
        }
    }
}

/// As controller-runtime's, and as long as Kubernetes gives a pod.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// Enough for a request that was just sent.
pub(crate) const CANCEL_PERIOD: Duration = Duration::from_secs(1);
/// So long after everything was aborted the lease must be given up, and what never awaits have awaited.
const ABORT_PERIOD: Duration = Duration::from_secs(2);

impl RunnableGroups {
    /// Without an elector: this replica leads. A grace period of 30 s, a cancel period of 1 s.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// What belongs to the leader runs when this elector says so.
    pub fn with_elector(elector: impl LeaderElection) -> Self {
        Self::with(Some(Arc::new(elector)))
    }

    pub(crate) fn with(elector: Option<Arc<dyn LeaderElection>>) -> Self {
        let stages = Stages::new(elector.is_some());
        let settings = Settings {
            grace_period: Some(GRACE_PERIOD),
            cancel_period: CANCEL_PERIOD,
            abort_period: ABORT_PERIOD,
            elector,
        };
        Self {
            shared: Arc::new(Shared {
                settings: Mutex::new(settings),
                state: Mutex::new(State { stages, members: HashMap::new() }),
                changed: Notify::new(),
                started: CancellationToken::new(),
                elected: CancellationToken::new(),
                synced: CancellationToken::new(),
                ended: CancellationToken::new(),
            }),
        }
    }

    /// How long all that runs has to end, once it is to: a time, zero for none, or `None` for as long as it takes. A pod
    /// whose `terminationGracePeriodSeconds` is as short as this is killed before it can give up its lease. To be set before
    /// the start.
    #[must_use = "it gives the groups back"]
    pub fn grace_period(self, period: impl Into<Option<Duration>>) -> Self {
        self.shared.settings.lock().grace_period = period.into();
        self
    }

    /// How long what was cancelled has to end, before it is dropped. Nothing where the grace period is zero. To be set before
    /// the start.
    #[must_use = "it gives the groups back"]
    pub fn cancel_period(self, period: Duration) -> Self {
        self.shared.settings.lock().cancel_period = period;
        self
    }

    /// Takes a runnable in: to be started with its group, or at once where that has begun. A leader's on a standby waits
    /// until this replica leads.
    ///
    /// # Errors
    /// The stop has begun.
    pub fn add(&self, runnable: impl Runnable) -> Result<(), AddError> {
        self.add_shared(Arc::new(runnable))
    }

    /// [`add`](Self::add) for one that others hold as well.
    ///
    /// # Errors
    /// The stop has begun.
    pub fn add_shared(&self, runnable: Arc<dyn Runnable>) -> Result<(), AddError> {
        // Asked without the lock: it is the user's.
        let member = Member { group: runnable.group(), name: runnable.name().into(), runnable };
        {
            let mut state = self.shared.state.lock();
            // Whether there is a warm-up shows when it is asked for.
            let id = state.stages.add(member.group, true).map_err(|_| AddError)?;
            state.members.insert(id, member);
        }
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Runs all of it, until `stop` is cancelled or something fails, and ends all of it. It runs once.
    ///
    /// Dropping the future is possible at any time: everything is cancelled and dropped, and the lease is not given up.
    ///
    /// # Errors
    /// All that went wrong, see [`Failure`]; an orderly stop is none.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), RunError> {
        let settings = self.shared.settings.lock().clone();
        let checked = catch_unwind(AssertUnwindSafe(|| settings.elector.as_ref().map_or(Ok(()), |it| it.check())));
        let checked = checked.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)).into()));
        {
            let mut state = self.shared.state.lock();
            // Where it fails it has begun, too: it runs once. Where it is stopped already, nothing is launched.
            if !state.stages.start() {
                return Err(RunError::new(vec![Failure::AlreadyStarted]));
            }
            if checked.is_err() || stop.is_cancelled() {
                state.stages.handle(Event::Stop);
            }
        }
        let failures = checked.err().map(|source| Failure::LeaderElection { source });
        Driver::new(Arc::clone(&self.shared), settings, failures).run(stop).await
    }

    /// Waits until all that needs not lead is launched, and what comes before it is ready: the start is over. Cancel-safe.
    ///
    /// # Errors
    /// It ended before.
    pub async fn started(&self) -> Result<(), Ended> {
        self.wait(&self.shared.started).await
    }

    /// Waits until this replica leads, or runs without an election, and what was there for the leader is launched.
    /// Cancel-safe.
    ///
    /// # Errors
    /// It ended before.
    pub async fn elected(&self) -> Result<(), Ended> {
        self.wait(&self.shared.elected).await
    }

    /// Waits until the start is over and all that is launched is ready, for the first time: on a standby, without what
    /// belongs to the leader. Cancel-safe.
    ///
    /// # Errors
    /// It ended before.
    pub async fn synced(&self) -> Result<(), Ended> {
        self.wait(&self.shared.synced).await
    }

    /// Waits until all was [ready](Self::synced) and then nothing had anything to do for as long as `quiet`: no event waited
    /// for a handler, no request for a worker, and nothing was begun meanwhile. For tests, in place of a sleep of some length;
    /// on paused time a millisecond of quiet will do. Cancel-safe.
    ///
    /// What it cannot see: an event that the server has not sent yet, so `quiet` has to be longer than a server takes, or
    /// wait for what you wrote by [`Cached::wait_for_version`](crate::Cached::wait_for_version) before; a request that is to
    /// come back at a later time, after a failure too; and [`Runnable`]s that tell no [activity](Runnable::activity). Where
    /// something is always at hand, it waits for ever: put a time-out around it.
    ///
    /// # Errors
    /// It ended before.
    pub async fn wait_idle(&self, quiet: Duration) -> Result<(), Ended> {
        self.synced().await?;
        let mut before = self.activity();
        loop {
            tokio::select! {
                biased;
                () = self.shared.ended.cancelled() => return Err(Ended),
                () = sleep(quiet) => {}
            }
            let now = self.activity();
            if before == now && now.at_hand == 0 {
                return Ok(());
            }
            before = now;
        }
    }

    /// What all that runs has done and has to do, in the order in which it was added: so what goes from a cache to a
    /// controller while this looks is seen there.
    fn activity(&self) -> Activity {
        let mut members: Vec<_> = {
            let state = self.shared.state.lock();
            state.members.iter().map(|(id, member)| (*id, Arc::clone(&member.runnable))).collect()
        };
        // Asked without the lock: they are the user's.
        members.sort_by_key(|(id, _)| *id);
        members.iter().map(|(_, member)| member.activity()).sum()
    }

    /// Waits until everything has ended, also where it was never started and is dropped. Cancel-safe.
    pub async fn ended(&self) {
        self.shared.ended.cancelled().await;
    }

    /// Whether the start is over.
    pub fn has_started(&self) -> bool {
        self.shared.started.is_cancelled()
    }

    /// Whether this replica has come to lead, or runs without an election.
    pub fn is_elected(&self) -> bool {
        self.shared.elected.is_cancelled()
    }

    /// Whether all was ready once.
    pub fn has_synced(&self) -> bool {
        self.shared.synced.is_cancelled()
    }

    /// Whether the stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.shared.state.lock().stages.is_stopping()
    }

    /// A handle that keeps nothing alive.
    pub(crate) fn downgrade(&self) -> WeakGroups {
        WeakGroups(Arc::downgrade(&self.shared))
    }

    async fn wait(&self, signal: &CancellationToken) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = signal.cancelled() => Ok(()),
            () = self.shared.ended.cancelled() => Err(Ended),
        }
    }
}

/// See [`RunnableGroups::downgrade`].
pub(crate) struct WeakGroups(Weak<Shared>);

impl WeakGroups {
    pub(crate) fn upgrade(&self) -> Option<RunnableGroups> {
        Some(RunnableGroups { shared: self.0.upgrade()? })
    }
}

impl Default for RunnableGroups {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RunnableGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("RunnableGroups")
            .field("members", &state.members.len())
            .field("running", &state.stages.running().count())
            .field("is_stopping", &state.stages.is_stopping())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
