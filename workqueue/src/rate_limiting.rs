//! The queue whose retries wait as a limiter says.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use kubewire_ratelimit::RateLimiter;

use crate::queue::Queue;
use crate::sync::Mutex;

/// A [`Queue`] with a limiter for retries; as client-go's rate limiting queue. Derefs to the queue: all its methods are
/// here too.
///
/// A handle: cloning counts two references, clones share queue and limiter.
///
/// The worker's part: when a key has succeeded, or is given up, [`forget`](Self::forget) it; when it has failed,
/// [`add_rate_limited`](Self::add_rate_limited). Neither replaces *done*. A key whose object is gone succeeds in finding
/// nothing to do, so it is forgotten too; then the limiter keeps nothing of it.
///
/// ```
/// use kubewire_workqueue::RateLimitingQueue;
/// use kubewire_workqueue::ratelimit::default_item_based_rate_limiter;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let queue = RateLimitingQueue::new(default_item_based_rate_limiter());
/// queue.add("flaky".to_owned());
/// let mut tries = 0;
/// while let Some(key) = queue.get().await {
///     tries += 1;
///     let outcome = if tries < 3 { Err("not yet") } else { Ok(()) };
///     match outcome {
///         Ok(()) => {
///             queue.forget(&key);
///             queue.shut_down();
///         }
///         Err(_) if queue.num_requeues(&key) < 5 => queue.add_rate_limited(key.clone()),
///         Err(error) => {
///             queue.forget(&key);
///             println!("{key} is given up: {error}");
///         }
///     }
/// }
/// assert_eq!(tries, 3);
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct RateLimitingQueue<K: Eq + Clone> {
    queue: Queue<K>,
    /// Never held together with the queue's lock.
    limiter: Arc<Mutex<Box<dyn RateLimiter<K> + Send>>>,
}

impl<K: Eq + Hash + Clone> RateLimitingQueue<K> {
    /// The unnamed queue whose retries wait as `limiter` says. For one with a name, metrics, a clock or an order see
    /// [`QueueBuilder::build_rate_limiting`](crate::QueueBuilder::build_rate_limiting).
    pub fn new(limiter: impl RateLimiter<K> + Send + 'static) -> Self {
        Self::with_queue(Queue::new(), limiter)
    }

    /// A limiter for a queue that there is already. Queues with different limiters may share one.
    pub fn with_queue(queue: Queue<K>, limiter: impl RateLimiter<K> + Send + 'static) -> Self {
        Self { queue, limiter: Arc::new(Mutex::new(Box::new(limiter))) }
    }

    /// Adds `key` after the delay that the limiter says, as [`Queue::add_after`] does.
    ///
    /// The limiter counts it in any case: also where the key is delayed already, and where the queue is shutting down.
    pub fn add_rate_limited(&self, key: K) {
        self.add_rate_limited_after(key);
    }

    /// As [`add_rate_limited`](Self::add_rate_limited); answers the delay that the limiter said.
    pub fn add_rate_limited_after(&self, key: K) -> Duration {
        self.add_rate_limited_at_priority(key, 0, Duration::MAX)
    }

    /// As [`add_rate_limited_after`](Self::add_rate_limited_after), at a priority (see
    /// [`Queue::add_at_priority`]), and after `at_most` where the limiter says more.
    pub fn add_rate_limited_at_priority(&self, key: K, priority: i32, at_most: Duration) -> Duration {
        let now = self.queue.shared.clock.now();
        let delay = self.limiter.lock().when(&key, now).min(at_most);
        self.queue.add_after_as_of(key, delay, priority, now);
        delay
    }

    /// The limiter forgets `key`: its next failure is the first again. Whether the key waits, is delayed or is processed
    /// does not change.
    pub fn forget(&self, key: &K) {
        self.limiter.lock().forget(key);
    }

    /// How often `key` was added rate limited since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.lock().num_requeues(key)
    }

    /// The queue without the limiter.
    pub const fn queue(&self) -> &Queue<K> {
        &self.queue
    }
}

impl<K: Eq + Clone> Deref for RateLimitingQueue<K> {
    type Target = Queue<K>;

    fn deref(&self) -> &Queue<K> {
        &self.queue
    }
}

impl<K: Eq + Clone> Clone for RateLimitingQueue<K> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), limiter: Arc::clone(&self.limiter) }
    }
}

impl<K: Eq + Clone> fmt::Debug for RateLimitingQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitingQueue").field("queue", &self.queue).finish_non_exhaustive()
    }
}
