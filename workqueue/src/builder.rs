//! A queue with more than the defaults.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use kubewire_ratelimit::{Clock, RateLimiter};

use crate::metrics::{MetricsProvider, metrics_provider};
use crate::order::{ByAddedPriority, Fifo, Order};
use crate::queue::Queue;
use crate::rate_limiting::RateLimitingQueue;
use crate::shared::Shared;

/// Builds a [`Queue`] or a [`RateLimitingQueue`]; what client-go's `…WithConfig` functions take as their config.
///
/// ```
/// use kubewire_workqueue::{Queue, RateLimitingQueue, ratelimit::ManualClock};
///
/// let time = ManualClock::new();
/// let queue: Queue<String> = Queue::builder().name("invoices").clock(time.clock()).build();
/// assert_eq!(queue.name(), "invoices");
///
/// // As `NewTypedRateLimitingQueueWithConfig(limiter, config)`.
/// let limiter = kubewire_workqueue::ratelimit::default_controller_rate_limiter();
/// let retried: RateLimitingQueue<String> = Queue::builder().name("invoices").build_rate_limiting(limiter);
/// assert_eq!(retried.num_requeues(&"invoice 17".to_owned()), 0);
/// ```
#[must_use = "a builder does nothing until `build` or `build_rate_limiting`"]
pub struct QueueBuilder<K> {
    name: String,
    metrics: Option<Arc<dyn MetricsProvider>>,
    clock: Clock,
    order: Box<dyn Order<K>>,
    prioritized: bool,
}

impl<K: Eq + Hash + Clone> QueueBuilder<K> {
    /// A queue without a name, by the system's clock, first in first out; [`Queue::builder`] is the same.
    pub fn new() -> Self {
        Self {
            name: String::new(),
            metrics: None,
            clock: Clock::system(),
            order: Box::new(Fifo::default()),
            prioritized: false,
        }
    }

    /// The name under which its metrics run. A queue without a name has no metrics.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Who makes its metrics; default: whom [`set_metrics_provider`](crate::set_metrics_provider) was given, if any.
    pub fn metrics(mut self, provider: Arc<dyn MetricsProvider>) -> Self {
        self.metrics = Some(provider);
        self
    }

    /// Its clock; default: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// In which order it hands out what waits; default: [`Fifo`].
    pub fn order(mut self, order: impl Order<K> + 'static) -> Self {
        self.order = Box::new(order);
        self
    }

    /// A queue of keys with priorities, as controller-runtime's: highest first, as `order` has it.
    ///
    /// A key has one pending entry, at the highest priority that it was added with and at the earliest of its moments: an
    /// add takes the delay of its key up, and what waits already is not delayed beside. What is added while it is processed
    /// is an entry of its own. The metrics are told of [`depth_of`](crate::QueueMetrics::depth_of) each priority too.
    pub fn prioritized(self, order: ByAddedPriority) -> Self {
        Self { prioritized: true, ..self.order(order) }
    }

    /// The queue.
    pub fn build(self) -> Queue<K> {
        let Self { name, metrics, clock, order, prioritized } = self;
        let provider = if name.is_empty() { None } else { metrics.or_else(metrics_provider) };
        let metrics = provider.map(|provider| provider.queue_metrics(&name));
        Queue { shared: Arc::new(Shared::new(name, clock, metrics, order, prioritized)) }
    }

    /// The queue with a limiter for [`add_rate_limited`](RateLimitingQueue::add_rate_limited).
    pub fn build_rate_limiting(self, limiter: impl RateLimiter<K> + Send + 'static) -> RateLimitingQueue<K> {
        RateLimitingQueue::with_queue(self.build(), limiter)
    }
}

impl<K: Eq + Hash + Clone> Default for QueueBuilder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for QueueBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder").field("name", &self.name).field("clock", &self.clock).finish_non_exhaustive()
    }
}
