//! The choices of an elector.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::{Clock, Random};
use tokio::sync::watch;

use crate::elector::Elector;
use crate::leadership::View;
use crate::local_clock::{LocalClock, suspended_since_now};
use crate::survive::survive;
use crate::sync::Mutex;
use crate::{Election, LeaderEvents, LeaderMetrics, Lock, Settings, SettingsError, Term};

/// Makes an [`Elector`].
#[must_use = "it does nothing until it is built"]
pub struct ElectorBuilder {
    lock: Arc<dyn Lock>,
    identity: String,
    settings: Settings,
    clock: Clock,
    suspended: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    seed: u64,
    hooks: Hooks,
}

type Work = Box<dyn Fn(Term) -> BoxFuture<'static, ()> + Send + Sync>;
type OnNewLeader = Box<dyn Fn(&str) + Send + Sync>;

/// What is the user's: called without a lock; a panic is caught.
pub(crate) struct Hooks {
    pub(crate) work: Option<Work>,
    pub(crate) work_grace: Duration,
    pub(crate) on_stopped: Option<Box<dyn Fn() + Send + Sync>>,
    pub(crate) on_new_leader: Option<OnNewLeader>,
    pub(crate) metrics: Option<Arc<dyn LeaderMetrics>>,
    pub(crate) events: Option<Arc<dyn LeaderEvents>>,
}

impl ElectorBuilder {
    pub(crate) fn new(lock: Arc<dyn Lock>, identity: String) -> Self {
        let hooks = Hooks {
            work: None,
            work_grace: Duration::from_secs(30),
            on_stopped: None,
            on_new_leader: None,
            metrics: None,
            events: None,
        };
        Self {
            lock,
            identity,
            settings: Settings::default(),
            clock: Clock::system(),
            suspended: None,
            wall: Arc::new(Timestamp::now),
            // Any seed will do, as long as candidates have different ones.
            seed: (Random::new().fraction() * (1_u64 << 53) as f64) as u64,
            hooks,
        }
    }

    /// The durations. Default 15 s, 10 s and 2 s.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Whether a leader that is stopped empties the lease: see [`Settings::release_on_stop`].
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.settings.release_on_stop = release;
        self
    }

    /// The leading work: runs in a task of its own while this candidate leads, once for each term.
    ///
    /// It should end when [`Term::token`] is cancelled. After a stop the lease is renewed until it has ended, for the
    /// [grace period](Self::work_grace) at most. After a loss it has as much time as the lease leaves it until somebody
    /// else can lead (5 s by the defaults), or none where somebody leads already; then it is aborted, which takes
    /// effect at its next await. A panic ends leadership with
    /// [`WorkPanicked`](crate::EndCause::WorkPanicked). If it ends by itself this candidate goes on leading.
    pub fn on_started_leading<F>(mut self, work: impl Fn(Term) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.hooks.work = Some(Box::new(move |term| work(term).boxed()));
        self
    }

    /// How long the work may take to end after a stop. Then it is aborted. Default 30 s.
    pub fn work_grace(mut self, grace: Duration) -> Self {
        self.hooks.work_grace = grace;
        self
    }

    /// Called once for each term, when leadership is off and before the lease is released. Who never led never hears it
    /// (client-go calls it then too). Renewals wait for it.
    pub fn on_stopped_leading(mut self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_stopped = Some(Box::new(call));
        self
    }

    /// Called with the holder's name whenever the lease is seen with another one than before, ourselves included, and
    /// with an empty one when it was released. Renewals wait for it: be quick.
    pub fn on_new_leader(mut self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hooks.on_new_leader = Some(Box::new(call));
        self
    }

    /// Who is told the metrics.
    pub fn metrics(mut self, metrics: Arc<dyn LeaderMetrics>) -> Self {
        self.hooks.metrics = Some(metrics);
        self
    }

    /// Who records that this candidate became the leader, or stopped leading.
    pub fn events(mut self, events: impl LeaderEvents + 'static) -> Self {
        self.hooks.events = Some(Arc::new(events));
        self
    }

    /// Another clock than the system's; with one, no time is missed by a suspended machine.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self.suspended.get_or_insert_with(|| Arc::new(|| Duration::ZERO));
        self
    }

    /// How long the clock has stood still in all, because the machine was suspended. By default the system is asked
    /// (Linux: `CLOCK_BOOTTIME` against `CLOCK_MONOTONIC`; elsewhere nothing is known of it).
    pub fn suspended(mut self, suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.suspended = Some(Arc::new(suspended));
        self
    }

    /// What is written into the lease as the time, for people to read; nothing is decided by it. By default the system's
    /// wall clock.
    pub fn wall_clock(mut self, wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.wall = Arc::new(wall);
        self
    }

    /// Fixes the jitter.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The elector.
    ///
    /// # Errors
    /// The settings are not valid, or the identity is empty.
    pub fn build(self) -> Result<Elector, SettingsError> {
        let election = Election::new(self.identity, self.settings, self.seed)?;
        if let Some(metrics) = &self.hooks.metrics {
            let name = self.lock.reference().name;
            survive("metrics", || metrics.master_status(&name, false));
        }
        let view = View {
            identity: election.identity().to_owned(),
            lease_duration: self.settings.lease_duration,
            seen: Mutex::default(),
        };
        let suspended = self.suspended.unwrap_or_else(suspended_since_now);
        Ok(Elector {
            lock: self.lock,
            settings: self.settings,
            clock: LocalClock::new(self.clock, suspended),
            wall: self.wall,
            hooks: self.hooks,
            election: Mutex::new(Some(election)),
            terms: watch::Sender::new(None),
            view: Arc::new(view),
        })
    }
}
