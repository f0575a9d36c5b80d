//! A replica: a network and a clock of its own, and one manager after the other, as a process that is started again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kubewire_apiserver::{ApiServer, Network};
use kubewire_controller::{
    CacheOptions, Cluster, Controller, ControllerOptions, Failure, Manager, ManagerOptions, Request, RunError,
};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_leaderelection::{Elector, Leadership, LeaseLock};
use kubewire_ratelimit::ManualClock;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::keeper::{Keeper, NAMESPACE};
use crate::ledger::{Ledger, Run};

pub(crate) const LEASE: &str = "controller";

/// How long an attempt may take: a lost answer is noticed by nothing else.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(30);
/// What a manager may need beyond its grace period: to cancel, to drop, and a tick of its clock.
const END_PERIOD: Duration = Duration::from_millis(1_000 + 2_000 + 200);

pub(crate) struct Replica {
    number: usize,
    pub(crate) network: Network,
    /// What its elector reads.
    time: ManualClock,
    rate: f64,
    wall: Timestamp,
    ledger: Ledger,
    dice: Dice,
    runs: u64,
    running: Option<Running>,
    /// When the next run begins, where none is.
    begins: Instant,
    /// How many runs ended how.
    ends: BTreeMap<&'static str, u64>,
}

struct Running {
    stop: CancellationToken,
    leadership: Leadership,
    task: JoinHandle<Result<(), RunError>>,
    grace: Duration,
    /// When it was told to stop.
    stopped: Option<Instant>,
}

impl Replica {
    pub(crate) fn new(server: &ApiServer, number: usize, ledger: &Ledger, dice: &mut Dice) -> Self {
        let mut dice = dice.fork();
        let network = Network::new(server, dice.below(1 << 30));
        network.bad(true);
        let time = ManualClock::new();
        time.advance(dice.seconds(1_000_000));
        Self {
            number,
            network,
            time,
            // The fastest and the slowest differ by less than lease duration and renew deadline.
            rate: 0.85 + 0.35 * (dice.below(1000) as f64 / 1000.0),
            wall: Timestamp::from_second(dice.below(2_000_000_000) as i64).unwrap_or_default(),
            ledger: ledger.clone(),
            begins: Instant::now() + dice.seconds(5),
            dice,
            runs: 0,
            running: None,
            ends: BTreeMap::new(),
        }
    }

    /// Time passes: by its own clock, and for what is to begin or has ended.
    pub(crate) async fn pass(&mut self, by: Duration) {
        self.time.advance(by.mul_f64(self.rate));
        if self.running.as_ref().is_some_and(|running| running.task.is_finished())
            && let Some(running) = self.running.take()
        {
            self.note_end(running.task.await.expect("a manager does not panic"), running.stopped.is_some());
            self.begins = Instant::now() + self.dice.seconds(8);
        }
        if let Some(Running { stopped: Some(stopped), grace, .. }) = &self.running {
            let took = stopped.elapsed();
            assert!(took <= *grace + END_PERIOD, "replica {} is not down after {took:?} of {grace:?}", self.number);
        }
        if self.running.is_none() && Instant::now() >= self.begins {
            self.running = Some(self.begin());
        }
    }

    fn note_end(&mut self, ended: Result<(), RunError>, was_stopped: bool) {
        match ended {
            Ok(()) => {
                assert!(was_stopped, "a manager ended though nobody asked for it");
                self.count_end("manager stopped");
            }
            Err(error) if error.is_leader_election_lost() => self.count_end("manager lost its lease"),
            Err(error) => {
                let is_known = |failure: &Failure| match failure {
                    Failure::GracePeriodExceeded { .. } => was_stopped,
                    // Its cache was not synced in time.
                    Failure::NotReady { .. } | Failure::Runnable { .. } => true,
                    _ => false,
                };
                assert!(error.failures().iter().all(is_known), "a manager ended so: {error}");
                self.count_end("manager failed");
            }
        }
    }

    fn count_end(&mut self, how: &'static str) {
        *self.ends.entry(how).or_default() += 1;
    }

    pub(crate) fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.ends.iter().map(|(how, count)| (*how, *count))
    }

    pub(crate) fn leads(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.leadership.is_leader())
    }

    /// It dies, as by SIGKILL: its connections end, its lease stays.
    pub(crate) async fn kill(&mut self, away: Duration) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            let _ = running.task.await;
            self.count_end("manager killed");
        }
        self.begins = Instant::now() + away;
    }

    /// It is told to stop, as by SIGTERM.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.as_mut().filter(|running| running.stopped.is_none()) {
            running.stop.cancel();
            running.stopped = Some(Instant::now());
        }
    }

    /// For the end, in calm: it has stopped, or is told to, and comes no more.
    pub(crate) fn retire(&mut self) {
        self.stop();
        self.begins += Duration::from_secs(1_000_000);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.running.is_none()
    }

    /// A new process.
    fn begin(&mut self) -> Running {
        self.runs += 1;
        let run: Run = format!("{}.{}", self.number, self.runs).into();
        let client = self.network.client();
        let wall = self.wall;
        let elector = Elector::builder(LeaseLock::new(client.clone(), NAMESPACE, LEASE), &*run)
            .clock(self.time.clock())
            .wall_clock(move || wall)
            .seed(self.dice.below(1 << 30))
            .release_on_stop(self.dice.chance(0.7))
            .build()
            .expect("the settings are the defaults");
        let leadership = elector.leadership();
        let reflector =
            ReflectorOptions::new().random(self.dice.jitter()).watch_list(self.dice.chance(0.5)).page_size(3);
        let cluster = Cluster::with_cache("cluster", client.clone(), CacheOptions::new().reflector(reflector));
        let grace = Duration::from_secs(1) + self.dice.seconds(40);
        let manager = Manager::new(cluster, ManagerOptions::new().elector(elector).grace_period(grace));
        let configs = manager.cluster().cache().watch::<Arc<ConfigMap>>().expect("it has not stopped");
        let keeper = Keeper {
            run,
            client,
            configs: configs.clone(),
            leadership: leadership.clone(),
            ledger: self.ledger.clone(),
            dice: Arc::new(Mutex::new(self.dice.fork())),
        };
        let options = ControllerOptions::new()
            .max_concurrent_reconciles(2)
            .reconcile_timeout(RECONCILE_TIMEOUT)
            .warm_up(self.dice.chance(0.5));
        Controller::builder()
            .for_(&configs)
            .options(options)
            .complete(&manager, move |request: Request, _| keeper.clone().reconcile(request))
            .expect("its name is its own");
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        Running { stop, leadership, task, grace, stopped: None }
    }
}
