//! Does what the stages say, and tells them what has happened: one future, with a task for each runnable.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::run_error::find_in_chain;
use super::runnable_groups::{Member, Settings, Shared};
use super::stages::{Ending, Event, MemberId, Step, Timer};
use crate::panic_text::panic_text;
use crate::{BoxError, Cancelled, Failure, Group, RunContext, RunError};

/// What a task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Task {
    Run(MemberId),
    /// Waits for what the member has spawned, after its run.
    Rest(MemberId),
    Ready(MemberId),
    WarmUp(MemberId),
    Elector,
}

type Outcome = Result<Result<(), BoxError>, Box<dyn Any + Send>>;

pub(super) struct Driver {
    shared: Arc<Shared>,
    settings: Settings,
    tasks: JoinSet<Outcome>,
    /// What runs.
    handles: HashMap<tokio::task::Id, (Task, AbortHandle)>,
    /// What those that run have spawned.
    spawned: HashMap<MemberId, TaskTracker>,
    /// The stop of each group.
    stops: BTreeMap<Group, CancellationToken>,
    stop_warm_ups: CancellationToken,
    stop_elector: CancellationToken,
    cancel: CancellationToken,
    /// The time that is being kept.
    timer: Option<(Timer, Instant)>,
    failures: Vec<Failure>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, settings: Settings, failure: Option<Failure>) -> Self {
        Self {
            shared,
            settings,
            tasks: JoinSet::new(),
            handles: HashMap::new(),
            spawned: HashMap::new(),
            stops: BTreeMap::new(),
            stop_warm_ups: CancellationToken::new(),
            stop_elector: CancellationToken::new(),
            cancel: CancellationToken::new(),
            timer: None,
            failures: failure.into_iter().collect(),
        }
    }

    /// Cancel-safe as far as there is nobody to call it again: dropping it ends everything.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), RunError> {
        let mut told_to_stop = false;
        while !self.apply_steps() {
            let due = self.timer.map(|(_, at)| at);
            let timer = async move {
                match due {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled(), if !told_to_stop => {
                    told_to_stop = true;
                    self.tell(Event::Stop);
                }
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => self.ended(ended),
                () = self.shared.changed.notified() => {}
                () = timer => self.time_over(),
            }
        }
        match std::mem::take(&mut self.failures) {
            failures if failures.is_empty() => Ok(()),
            failures => Err(RunError::new(failures)),
        }
    }

    fn tell(&self, event: Event) {
        self.shared.state.lock().stages.handle(event);
    }

    /// Does all there is to do. True once it is over.
    fn apply_steps(&mut self) -> bool {
        loop {
            let (step, member) = {
                let mut state = self.shared.state.lock();
                let Some(step) = state.stages.next() else { return false };
                let member = match step {
                    Step::Launch(id) | Step::WarmUp(id) => state.members.get(&id).cloned(),
                    _ => None,
                };
                (step, member)
            };
            match (step, member) {
                (Step::Launch(id), Some(member)) => self.launch(id, member),
                (Step::WarmUp(id), Some(member)) => self.warm_up(id, member),
                (Step::Launch(_) | Step::WarmUp(_), None) => {}
                (Step::Elect, _) => self.elect(),
                (Step::SayStarted, _) => self.shared.started.cancel(),
                (Step::SayElected, _) => self.shared.elected.cancel(),
                (Step::SaySynced, _) => self.shared.synced.cancel(),
                (Step::Arm(timer), _) => self.arm(timer),
                (Step::StopGroup(group), _) => {
                    tracing::debug!(?group, "stopping");
                    self.stop_of(group).cancel();
                }
                (Step::StopWarmUps, _) => {
                    self.abort(|task| matches!(task, Task::Ready(_)));
                    self.stop_warm_ups.cancel();
                }
                (Step::StopElector, _) => self.stop_elector.cancel(),
                (Step::CancelAll, _) => self.cancel_all(),
                (Step::Abort, _) => self.abort(|task| !matches!(task, Task::Elector | Task::Rest(_))),
                (Step::Finish, _) => return true,
            }
        }
    }

    fn stop_of(&mut self, group: Group) -> CancellationToken {
        self.stops.entry(group).or_default().clone()
    }

    fn context(&mut self, stop: CancellationToken) -> RunContext {
        RunContext { stop: stop.child_token(), cancel: self.cancel.child_token(), tasks: TaskTracker::new() }
    }

    fn spawn(&mut self, task: Task, name: &str, work: BoxFuture<'static, Result<(), BoxError>>) {
        let span = tracing::info_span!("runnable", name);
        let handle = self.tasks.spawn(AssertUnwindSafe(work).catch_unwind().instrument(span));
        self.handles.insert(handle.id(), (task, handle));
    }

    fn launch(&mut self, id: MemberId, Member { runnable, name, group }: Member) {
        let stop = self.stop_of(group);
        let cx = self.context(stop);
        self.spawned.insert(id, cx.tasks.clone());
        let (member, context) = (Arc::clone(&runnable), cx.clone());
        self.spawn(Task::Run(id), &name, Box::pin(async move { member.run(context).await }));
        self.spawn(Task::Ready(id), &name, Box::pin(async move { runnable.ready(&cx).await }));
    }

    fn warm_up(&mut self, id: MemberId, Member { runnable, name, .. }: Member) {
        let cx = self.context(self.stop_warm_ups.clone());
        let work = async move {
            match runnable.warm_up(cx) {
                Some(work) => work.await,
                None => Ok(()),
            }
        };
        self.spawn(Task::WarmUp(id), &name, Box::pin(work));
    }

    fn elect(&mut self) {
        let Some(elector) = self.settings.elector.clone() else { return };
        let shared = Arc::clone(&self.shared);
        let elected = Box::new(move || {
            shared.state.lock().stages.handle(Event::Elected);
            shared.changed.notify_one();
        });
        let stop = self.stop_elector.clone();
        self.spawn(Task::Elector, ELECTOR, Box::pin(async move { elector.run(stop, elected).await }));
    }

    fn arm(&mut self, timer: Timer) {
        let period = match timer {
            Timer::Grace => self.settings.grace_period,
            // Who has no grace has no time at all.
            Timer::Cancel if self.settings.grace_period == Some(Duration::ZERO) => Some(Duration::ZERO),
            Timer::Cancel => Some(self.settings.cancel_period),
            Timer::Abort => Some(self.settings.abort_period),
        };
        let now = Instant::now();
        // A period beyond what can be counted is endless.
        self.timer = period.and_then(|period| Some((timer, now.checked_add(period)?)));
    }

    fn time_over(&mut self) {
        let Some((timer, _)) = self.timer.take() else { return };
        if let (Timer::Grace, Some(period)) = (timer, self.settings.grace_period)
            && !period.is_zero()
        {
            let mut unfinished = self.names_of_running();
            if unfinished.is_empty() {
                unfinished.push(ELECTOR.to_owned());
            }
            self.failures.push(Failure::GracePeriodExceeded { period, unfinished });
        }
        if timer == Timer::Abort {
            let left = self.names_of_running();
            if !left.is_empty() {
                let failure = Failure::StillRunning { left };
                tracing::error!(%failure, "the lease is not given up");
                self.failures.push(failure);
            }
        }
        self.tell(Event::TimeOver(timer));
    }

    fn names_of_running(&self) -> Vec<String> {
        let state = self.shared.state.lock();
        let running = state.stages.running().filter_map(|id| state.members.get(&id));
        running.map(|member| member.name.to_string()).collect()
    }

    fn cancel_all(&mut self) {
        self.stops.values().for_each(CancellationToken::cancel);
        self.stop_warm_ups.cancel();
        self.cancel.cancel();
        self.abort(|task| matches!(task, Task::Ready(_)));
    }

    fn abort(&self, which: impl Fn(Task) -> bool) {
        let those = self.handles.values().filter(|(task, _)| which(*task));
        those.for_each(|(_, handle)| handle.abort());
    }

    /// A task has ended.
    fn ended(&mut self, ended: Result<(tokio::task::Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            // What it held panicked when it was dropped; or it was aborted, and has ended as it was asked to.
            Err(error) => (error.id(), error.try_into_panic().map_or(Ok(Ok(())), Err)),
        };
        let Some((task, _)) = self.handles.remove(&id) else { return };
        match task {
            Task::Elector => self.elector_ended(outcome),
            Task::Ready(id) => match self.failure(id, outcome, |name, source| Failure::NotReady { name, source }) {
                Ending::Ok => self.tell(Event::Ready(id)),
                Ending::Failed => self.tell(Event::NotReady),
            },
            Task::Run(id) => {
                let ending = self.failure(id, outcome, |name, source| Failure::Runnable { name, source });
                self.abort(|task| task == Task::Ready(id));
                self.run_ended(id, ending);
            }
            Task::Rest(id) => self.gone(id, Ending::Ok),
            Task::WarmUp(id) => {
                let ending = self.failure(id, outcome, |name, source| Failure::Runnable { name, source });
                self.tell(Event::WarmedUp(id, ending));
            }
        }
    }

    /// A member has ended when all that it has spawned has, too: what was aborted may be at something that blocks its thread.
    fn run_ended(&mut self, id: MemberId, ending: Ending) {
        let spawned = self.spawned.remove(&id).unwrap_or_default();
        if spawned.is_empty() {
            return self.gone(id, ending);
        }
        if ending == Ending::Failed {
            self.tell(Event::Stop);
        }
        spawned.close();
        let name = self.name_of(id);
        let rest = async move {
            spawned.wait().await;
            Ok(())
        };
        self.spawn(Task::Rest(id), &name, Box::pin(rest));
    }

    fn gone(&self, id: MemberId, ending: Ending) {
        self.tell(Event::Ended(id, ending));
        // Let go without the lock.
        let member = self.shared.state.lock().members.remove(&id);
        member.into_iter().for_each(Member::let_go);
    }

    /// Puts a failure down, if it is one: after the stop has begun it is only logged.
    fn failure(&mut self, id: MemberId, outcome: Outcome, fail: impl FnOnce(String, BoxError) -> Failure) -> Ending {
        let failure = match outcome {
            Ok(Ok(())) => return Ending::Ok,
            Ok(Err(source)) => fail(self.name_of(id), source),
            Err(panic) => Failure::Panicked { name: self.name_of(id), message: panic_text(&*panic) },
        };
        if !self.shared.state.lock().stages.is_stopping() {
            survive(|| tracing::error!(%failure, "stopping all"));
            self.failures.push(failure);
        } else {
            survive(move || {
                if !is_cancelled(&failure) {
                    tracing::warn!(%failure, "failed while it was stopping");
                }
            });
        }
        Ending::Failed
    }

    fn name_of(&self, id: MemberId) -> String {
        let state = self.shared.state.lock();
        state.members.get(&id).map_or_else(|| "a runnable".to_owned(), |member| member.name.to_string())
    }

    fn elector_ended(&mut self, outcome: Outcome) {
        let source: BoxError = match outcome {
            Ok(Ok(())) => "it ended by itself".into(),
            Ok(Err(error)) => error,
            Err(panic) => format!("it panicked: {}", panic_text(&*panic)).into(),
        };
        let asked = self.stop_elector.is_cancelled();
        let leads = self.shared.state.lock().stages.leads();
        match (asked, leads) {
            (_, true) => {
                survive(|| tracing::error!(%source, "leader election lost, cancelling all"));
                self.failures.push(Failure::LeaderElectionLost { source });
            }
            (true, false) => {}
            (false, false) => self.failures.push(Failure::LeaderElection { source }),
        }
        self.tell(Event::ElectorEnded);
    }
}

impl Drop for Driver {
    /// At the end, and where the future is dropped before.
    fn drop(&mut self) {
        self.stops.values().for_each(CancellationToken::cancel);
        self.stop_warm_ups.cancel();
        self.cancel.cancel();
        let members = {
            let mut state = self.shared.state.lock();
            state.stages.give_up();
            std::mem::take(&mut state.members)
        };
        members.into_values().for_each(Member::let_go);
        self.shared.ended.cancel();
    }
}

/// Tells of an error. It is the user's: its text, its chain and its end may panic, and harm nobody.
fn survive(tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() {
        tracing::error!("an error panicked when it was told");
    }
}

const ELECTOR: &str = "leader election";

fn is_cancelled(failure: &Failure) -> bool {
    find_in_chain::<Cancelled>(failure).is_some()
}
