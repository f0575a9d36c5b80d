//! Where requests wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_ratelimit::{Clock, RateLimiter};
use kubewire_workqueue::{ByAddedPriority, Guard, MetricsProvider, Queue, RateLimitingQueue};

use crate::controller_metrics::ControllerMetrics;
use crate::event::{AnyObject, Event};
use crate::request::RequestKey;

/// The queue of a controller: what sources add to. A handle; cloning counts references.
///
/// It is a [`RateLimitingQueue`], first in first out or prioritized. In one that is not prioritized every priority is 0.
/// Once the controller stops, adds do nothing.
pub struct RequestQueue<R: RequestKey> {
    queue: RateLimitingQueue<R>,
    prioritized: bool,
}

/// The order in which a controller takes requests: highest priority first, as in controller-runtime.
///
/// What was there when the controller began and what a resync tells again is added at [`LOW_PRIORITY`](crate::LOW_PRIORITY),
/// so that a change that somebody waits for need not wait for all of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing before they are given to a controller"]
pub struct PriorityQueue {
    pub(crate) aging: Duration,
}

impl PriorityQueue {
    /// Without aging: low priorities wait as long as higher ones keep coming, as in controller-runtime.
    pub fn new() -> Self {
        Self::default()
    }

    /// With aging: a step of priority is worth so much waiting. With 100 ms the initial list (priority -100) waits 10 s
    /// longer than the changes that come meanwhile, and no longer. Zero: none.
    pub fn aging(self, step: Duration) -> Self {
        Self { aging: step }
    }
}

impl<R: RequestKey> RequestQueue<R> {
    pub(crate) fn new(
        name: &str,
        limiter: Box<dyn RateLimiter<R> + Send>,
        priorities: Option<PriorityQueue>,
        metrics: Arc<dyn MetricsProvider>,
        clock: Clock,
    ) -> Self {
        let mut builder = Queue::builder().name(name).clock(clock).metrics(metrics);
        if let Some(PriorityQueue { aging }) = priorities {
            builder = builder.prioritized(ByAddedPriority::new().aging(aging));
        }
        Self { queue: builder.build_rate_limiting(limiter), prioritized: priorities.is_some() }
    }

    /// A queue by itself, for tests of handlers and sources.
    pub fn for_test(priorities: Option<PriorityQueue>) -> Self {
        let limiter = kubewire_ratelimit::ItemExponentialFailureRateLimiter::new(FIRST_DELAY, LONGEST_DELAY);
        let metrics = ControllerMetrics::new().of_queue("", priorities.is_some());
        Self::new("", Box::new(limiter), priorities, metrics, Clock::system())
    }

    /// Adds a request at a priority.
    pub fn add(&self, request: R, priority: i32) {
        self.queue.add_at_priority(request, self.effective(priority));
    }

    /// Adds a request after a delay, at a priority.
    pub fn add_after(&self, request: R, delay: Duration, priority: i32) {
        self.queue.add_after_at_priority(request, delay, self.effective(priority));
    }

    /// Adds a request when its limiter says, or after `at_most` where that is less. Each call counts as a failure of the
    /// request, until it is forgotten. Answers the delay.
    pub fn add_rate_limited(&self, request: R, at_most: Duration, priority: i32) -> Duration {
        self.queue.add_rate_limited_at_priority(request, self.effective(priority), at_most)
    }

    /// The queue as a handler of `event` sees it.
    pub fn for_event<O: AnyObject + ?Sized>(&self, event: &Event<'_, O>) -> Enqueue<'_, R> {
        Enqueue { queue: self, priority: event.priority() }
    }

    /// The queue that this is made of, to look into.
    pub const fn queue(&self) -> &RateLimitingQueue<R> {
        &self.queue
    }

    fn effective(&self, priority: i32) -> i32 {
        if self.prioritized { priority } else { 0 }
    }

    pub(crate) async fn get(&self) -> Option<Guard<R>> {
        self.queue.get().await
    }
}

/// client-go's first and longest delay of a key.
pub(crate) const FIRST_DELAY: Duration = Duration::from_millis(5);
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(1000);

/// Where a handler adds requests while it is told of an event. What names no priority has the event's:
/// [`LOW_PRIORITY`](crate::LOW_PRIORITY) where nobody waits for it.
pub struct Enqueue<'a, R: RequestKey> {
    queue: &'a RequestQueue<R>,
    priority: i32,
}

impl<R: RequestKey> Enqueue<'_, R> {
    /// Adds a request.
    pub fn add(&self, request: R) {
        self.queue.add(request, self.priority);
    }

    /// Adds a request after a delay.
    pub fn add_after(&self, request: R, delay: Duration) {
        self.queue.add_after(request, delay, self.priority);
    }

    /// Adds a request when its limiter says.
    pub fn add_rate_limited(&self, request: R) {
        self.queue.add_rate_limited(request, Duration::MAX, self.priority);
    }

    /// The priority of the event.
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// The queue, to add at another priority.
    pub const fn queue(&self) -> &RequestQueue<R> {
        self.queue
    }
}

impl<R: RequestKey> Clone for RequestQueue<R> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), prioritized: self.prioritized }
    }
}

impl<R: RequestKey> fmt::Debug for RequestQueue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestQueue").field("queue", &self.queue).field("prioritized", &self.prioritized).finish()
    }
}

impl<R: RequestKey> fmt::Debug for Enqueue<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("queue", &self.queue).field("priority", &self.priority).finish()
    }
}
