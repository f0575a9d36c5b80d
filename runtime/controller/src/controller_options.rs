//! How a controller is to behave.

use std::fmt;
use std::time::Duration;

use kubewire_ratelimit::{ItemExponentialFailureRateLimiter, RateLimiter, default_controller_rate_limiter};

use crate::request::{Request, RequestKey};
use crate::request_queue::{FIRST_DELAY, LONGEST_DELAY, PriorityQueue};

/// How a controller is to behave. What is left unset is taken from its manager's [`ControllerDefaults`], and what that leaves
/// unset has the default that is named here.
#[must_use = "options do nothing before they are given to a controller"]
pub struct ControllerOptions<R: RequestKey = Request> {
    defaults: ControllerDefaults,
    limiter: Option<Box<dyn RateLimiter<R> + Send>>,
}

/// The part of [`ControllerOptions`] that all controllers of a manager can have in common. As controller-runtime's
/// `config.Controller`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing before they are given to a manager or a controller"]
pub struct ControllerDefaults {
    max_concurrent_reconciles: Option<usize>,
    cache_sync_timeout: Option<Duration>,
    reconcile_timeout: Option<Duration>,
    recover_panic: Option<bool>,
    need_leader_election: Option<bool>,
    warm_up: Option<bool>,
    priority_queue: Option<Option<PriorityQueue>>,
}

impl ControllerDefaults {
    /// Everything unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`ControllerOptions::max_concurrent_reconciles`].
    pub fn max_concurrent_reconciles(self, count: usize) -> Self {
        Self { max_concurrent_reconciles: (count > 0).then_some(count), ..self }
    }

    /// See [`ControllerOptions::cache_sync_timeout`].
    pub fn cache_sync_timeout(self, timeout: Duration) -> Self {
        Self { cache_sync_timeout: (!timeout.is_zero()).then_some(timeout), ..self }
    }

    /// See [`ControllerOptions::reconcile_timeout`].
    pub fn reconcile_timeout(self, timeout: Duration) -> Self {
        Self { reconcile_timeout: Some(timeout), ..self }
    }

    /// See [`ControllerOptions::recover_panic`].
    pub fn recover_panic(self, recover: bool) -> Self {
        Self { recover_panic: Some(recover), ..self }
    }

    /// See [`ControllerOptions::need_leader_election`].
    pub fn need_leader_election(self, needed: bool) -> Self {
        Self { need_leader_election: Some(needed), ..self }
    }

    /// See [`ControllerOptions::warm_up`].
    pub fn warm_up(self, warm_up: bool) -> Self {
        Self { warm_up: Some(warm_up), ..self }
    }

    /// See [`ControllerOptions::priority_queue`].
    pub fn priority_queue(self, priorities: impl Into<Option<PriorityQueue>>) -> Self {
        Self { priority_queue: Some(priorities.into()), ..self }
    }

    /// What is unset here is taken from there.
    pub fn or(self, others: &Self) -> Self {
        Self {
            max_concurrent_reconciles: self.max_concurrent_reconciles.or(others.max_concurrent_reconciles),
            cache_sync_timeout: self.cache_sync_timeout.or(others.cache_sync_timeout),
            reconcile_timeout: self.reconcile_timeout.or(others.reconcile_timeout),
            recover_panic: self.recover_panic.or(others.recover_panic),
            need_leader_election: self.need_leader_election.or(others.need_leader_election),
            warm_up: self.warm_up.or(others.warm_up),
            priority_queue: self.priority_queue.or(others.priority_queue),
        }
    }
}

impl<R: RequestKey> ControllerOptions<R> {
    /// Everything unset.
    pub fn new() -> Self {
        Self { defaults: ControllerDefaults::new(), limiter: None }
    }

    /// How many requests are reconciled at a time. Default 1; 0 is unset.
    pub fn max_concurrent_reconciles(self, count: usize) -> Self {
        Self { defaults: self.defaults.max_concurrent_reconciles(count), ..self }
    }

    /// How long each source may take to be started and synced, before the controller fails. Default 2 minutes; zero is
    /// unset.
    pub fn cache_sync_timeout(self, timeout: Duration) -> Self {
        Self { defaults: self.defaults.cache_sync_timeout(timeout), ..self }
    }

    /// How long an attempt may take before it is given up and tried again. Default and zero: as long as it wants.
    pub fn reconcile_timeout(self, timeout: Duration) -> Self {
        Self { defaults: self.defaults.reconcile_timeout(timeout), ..self }
    }

    /// Whether a panic of the reconciler counts as an error of the attempt. Default yes; no: it ends the controller.
    pub fn recover_panic(self, recover: bool) -> Self {
        Self { defaults: self.defaults.recover_panic(recover), ..self }
    }

    /// Whether it runs on the leader alone, where there is an election. Default yes.
    pub fn need_leader_election(self, needed: bool) -> Self {
        Self { defaults: self.defaults.need_leader_election(needed), ..self }
    }

    /// Whether its sources are started and synced before this replica leads, so that it begins at once when it does. The
    /// queue of a replica that waits then grows up to one request for each object. Default no.
    pub fn warm_up(self, warm_up: bool) -> Self {
        Self { defaults: self.defaults.warm_up(warm_up), ..self }
    }

    /// Takes requests by priority; `None`, the default, as they came.
    ///
    /// (controller-runtime's default is a priority queue without [aging](PriorityQueue::aging), in which the initial list
    /// can wait for ever.)
    pub fn priority_queue(self, priorities: impl Into<Option<PriorityQueue>>) -> Self {
        Self { defaults: self.defaults.priority_queue(priorities), ..self }
    }

    /// How long a request that failed waits. Default: each by itself, 5 ms, doubled with each failure, up to 1000 s; without
    /// a priority queue also a bucket for all, of 10 a second and a burst of 100, as client-go's.
    pub fn rate_limiter(self, limiter: impl RateLimiter<R> + Send + 'static) -> Self {
        Self { limiter: Some(Box::new(limiter)), ..self }
    }

    /// What is unset here is taken from there.
    pub fn or(self, defaults: &ControllerDefaults) -> Self {
        Self { defaults: self.defaults.or(defaults), ..self }
    }

    /// What was set, but for the limiter.
    pub const fn set(&self) -> &ControllerDefaults {
        &self.defaults
    }

    pub(crate) fn is_concurrency_unset(&self) -> bool {
        self.defaults.max_concurrent_reconciles.is_none()
    }

    pub(crate) fn resolve(self) -> (Settings, Box<dyn RateLimiter<R> + Send>) {
        let Self { defaults, limiter } = self;
        let settings = Settings::of(&defaults);
        let limiter = limiter.unwrap_or_else(|| match settings.priority_queue {
            Some(_) => Box::new(ItemExponentialFailureRateLimiter::new(FIRST_DELAY, LONGEST_DELAY)),
            None => Box::new(default_controller_rate_limiter()),
        });
        (settings, limiter)
    }
}

/// The settings that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) max_concurrent_reconciles: usize,
    pub(crate) cache_sync_timeout: Duration,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) recover_panic: bool,
    pub(crate) need_leader_election: bool,
    pub(crate) warm_up: bool,
    pub(crate) priority_queue: Option<PriorityQueue>,
}

impl Settings {
    fn of(set: &ControllerDefaults) -> Self {
        Self {
            max_concurrent_reconciles: set.max_concurrent_reconciles.unwrap_or(1),
            cache_sync_timeout: set.cache_sync_timeout.unwrap_or(Duration::from_secs(120)),
            reconcile_timeout: set.reconcile_timeout.filter(|timeout| !timeout.is_zero()),
            recover_panic: set.recover_panic.unwrap_or(true),
            need_leader_election: set.need_leader_election.unwrap_or(true),
            warm_up: set.warm_up.unwrap_or(false),
            priority_queue: set.priority_queue.unwrap_or(None),
        }
    }
}

impl<R: RequestKey> Default for ControllerOptions<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: RequestKey> fmt::Debug for ControllerOptions<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerOptions")
            .field("set", &self.defaults)
            .field("rate_limiter", &self.limiter.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_is_unset_comes_from_the_manager_and_then_from_the_defaults() {
        let (settings, _) = ControllerOptions::<Request>::new().resolve();
        let bare = Settings {
            max_concurrent_reconciles: 1,
            cache_sync_timeout: Duration::from_secs(120),
            reconcile_timeout: None,
            recover_panic: true,
            need_leader_election: true,
            warm_up: false,
            priority_queue: None,
        };
        assert_eq!(settings, bare);
        let aged = PriorityQueue::new().aging(Duration::from_secs(1));
        let manager = ControllerDefaults::new()
            .max_concurrent_reconciles(7)
            .cache_sync_timeout(Duration::from_secs(9))
            .reconcile_timeout(Duration::from_secs(3))
            .recover_panic(false)
            .need_leader_election(false)
            .warm_up(true)
            .priority_queue(aged);
        let all = Settings {
            max_concurrent_reconciles: 7,
            cache_sync_timeout: Duration::from_secs(9),
            reconcile_timeout: Some(Duration::from_secs(3)),
            recover_panic: false,
            need_leader_election: false,
            warm_up: true,
            priority_queue: Some(aged),
        };
        let inherits = ControllerOptions::<Request>::new().or(&manager);
        assert_eq!(inherits.resolve().0, all);
        // What stands for unset does not overrule; an explicit no does.
        let unset = ControllerOptions::<Request>::new().max_concurrent_reconciles(0).cache_sync_timeout(Duration::ZERO);
        assert_eq!(unset.or(&manager).resolve().0, all);
        let own = ControllerOptions::<Request>::new()
            .max_concurrent_reconciles(1)
            .cache_sync_timeout(Duration::from_secs(120))
            .reconcile_timeout(Duration::ZERO)
            .recover_panic(true)
            .need_leader_election(true)
            .warm_up(false)
            .priority_queue(None);
        assert_eq!(own.or(&manager).resolve().0, bare);
    }

    #[test]
    fn only_without_priorities_is_there_a_bucket_for_all_requests() {
        let delay_of_the_101st = |options: ControllerOptions<u32>| {
            let (_, mut limiter) = options.resolve();
            let now = Instant::now();
            (0..101).map(|request| limiter.when(&request, now)).last()
        };
        let by_priority = ControllerOptions::new().priority_queue(PriorityQueue::new());
        assert_eq!(delay_of_the_101st(by_priority), Some(Duration::from_millis(5)));
        assert_eq!(delay_of_the_101st(ControllerOptions::new()), Some(Duration::from_millis(100)));
    }
}
