//! The queue as its users hold it.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kubewire_ratelimit::clock::after;

use crate::builder::QueueBuilder;
use crate::drain::Drain;
use crate::drains::DrainMode;
use crate::guard::Guard;
use crate::metrics::survive;
use crate::shared::Shared;
use crate::snapshot::{KeyStatus, Snapshot};
use crate::waiting::Get;

/// A queue of keys that are to be processed; as client-go's `Typed` work queue and delaying queue in one.
///
/// - **Stingy**: a key that waits already is not queued again; one added while it is processed waits again once it is
///   done. So a key is never processed by two workers at a time, and never more often than needed.
/// - **Fair**: keys come out in the order in which they went in (or another [`Order`](crate::Order)), and gets are served
///   in the order in which they came.
/// - **Delaying**: [`add_after`](Self::add_after) adds later. One timer for all delayed keys, one entry for each, no task.
///
/// A handle: cloning counts a reference, clones share the queue. It may be used from tasks and threads at once, and be
/// built outside a runtime.
///
/// # Cost
/// Every operation takes one lock for a moment. Where there are delays or metrics it reads the clock; otherwise a get,
/// and an add of a key that does not wait yet, read the kernel's last tick, a quarter of that, so that ages in
/// [`status`](Self::status) and [`snapshot`](Self::snapshot) may be some milliseconds too long, and are not of a
/// runtime's paused time.
/// With n keys: `add`, `get` and `done` are O(1) (one hash in `add`, none in `get` and in a guard's drop), delays O(log n).
/// A key is stored once, and cloned when it is handed out. An operation also adds the delayed keys that have become due
/// since the last one, O(log n) each.
///
/// ```
/// use kubewire_workqueue::Queue;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let queue = Queue::new();
/// queue.add("invoice 17");
/// queue.add("invoice 17"); // Waits already.
/// queue.shut_down();
/// while let Some(key) = queue.get().await {
///     println!("processing {key}");
/// } // `key` drops: done.
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct Queue<K: Eq + Clone> {
    pub(crate) shared: Arc<Shared<K>>,
}

impl<K: Eq + Hash + Clone> Queue<K> {
    /// The unnamed queue: first in first out, the system's clock, no metrics.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A queue with a name, metrics, a clock or an order of its own.
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }

    /// Adds `key`: it waits to be processed. If it waits already nothing changes; if it is being processed it will wait
    /// again once it is done.
    ///
    /// Once the queue is shutting down this does nothing.
    #[inline]
    pub fn add(&self, key: K) {
        self.add_at_priority(key, 0);
    }

    /// As [`add`](Self::add), at a priority; higher comes first in a queue whose order looks at it
    /// ([`QueueBuilder::prioritized`]). Of several adds of a key that waits the highest counts.
    pub fn add_at_priority(&self, key: K, priority: i32) {
        let hash = self.shared.hasher.hash_one(&key);
        let mut key = Some(key); // What is not taken drops last, outside the lock.
        self.shared.begin_untimed().add(hash, &mut key, priority);
    }

    /// Adds `key` once `delay` has passed; at once where it is zero.
    ///
    /// If the key is delayed already the earlier moment counts, and it is added once. A plain [`add`](Self::add) of the
    /// key does not take its delay back: it is added again at its moment. A delay that leads past the end of time never
    /// ends.
    ///
    /// Delayed keys are dropped when the queue shuts down; then this does nothing.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_at_priority(key, delay, 0);
    }

    /// As [`add_after`](Self::add_after), at a priority, see [`add_at_priority`](Self::add_at_priority).
    pub fn add_after_at_priority(&self, key: K, delay: Duration, priority: i32) {
        self.add_after_as_of(key, delay, priority, self.shared.clock.now());
    }

    /// Adds `key` at `moment`, at once where that has passed; otherwise as [`add_after`](Self::add_after).
    pub fn add_at(&self, key: K, moment: Instant) {
        self.add_delayed(key, 0, moment, self.shared.clock.now());
    }

    /// As [`add_after_at_priority`](Self::add_after_at_priority), where it is `now`.
    pub(crate) fn add_after_as_of(&self, key: K, delay: Duration, priority: i32, now: Instant) {
        self.add_delayed(key, priority, after(now, delay), now);
    }

    fn add_delayed(&self, key: K, priority: i32, due: Instant, now: Instant) {
        let hash = self.shared.hasher.hash_one(&key);
        let mut key = Some(key); // What is not taken drops last, outside the lock.
        let mut session = self.shared.begin_at(now);
        let retries = u64::from(!session.inner.state.is_shutting_down());
        if let Some(report) = session.after.report() {
            report.retries += retries;
        }
        if due <= now {
            session.add(hash, &mut key, priority);
        } else {
            session.inner.state.add_at(hash, &mut key, priority, due);
            self.shared.note_delays(&session);
        }
    }

    /// Takes back what [`add_after`](Self::add_after) wanted to do later; tells whether there was something. A key that
    /// waits or is processed is not touched.
    pub fn cancel_delayed(&self, key: &K) -> bool {
        let hash = self.shared.hasher.hash_one(key);
        let mut session = self.shared.begin();
        let cancelled = session.inner.state.cancel(hash, key);
        drop(session);
        cancelled.is_some()
    }

    /// Waits for a key to process; `None`: the queue is shutting down and no key waits.
    ///
    /// What is got is done when the [`Guard`] drops. Cancel-safe: a get that is dropped loses no key. Waiting gets are
    /// served in the order in which they came.
    ///
    /// With delayed keys and the system's clock it must be polled inside a tokio runtime with time.
    ///
    /// After `None` there can still be keys: those added again while they were processed, before the shut-down. Whoever
    /// processes one gets it again.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(&self.shared)
    }

    /// As [`get`](Self::get), without a guard: nobody else gets the key until [`done`](Self::done) is called for it.
    ///
    /// Cancel-safe.
    pub async fn get_key(&self) -> Option<K> {
        self.get().await.map(Guard::into_key)
    }

    /// As [`get`](Self::get), but blocks this thread. Needs no runtime. Not for async code.
    pub fn get_blocking(&self) -> Option<Guard<K>> {
        crate::waiting::get_blocking(&self.shared)
    }

    /// The next key, if one waits that is not reserved for a get that waits.
    ///
    /// # Errors
    /// There is none now, or there will be none.
    #[inline]
    pub fn try_get(&self) -> Result<Guard<K>, TryGetError> {
        let mut session = self.shared.begin_get();
        match session.take(None) {
            Some(hand_out) => Ok(Guard::new(&self.shared, &mut session, hand_out)),
            None if session.inner.state.is_shutting_down() => Err(TryGetError::ShutDown),
            None => Err(TryGetError::Empty),
        }
    }

    /// Says that `key`, got by [`get_key`](Self::get_key), is done; if it was added meanwhile it waits again.
    ///
    /// Tells whether the key was being processed; if not, nothing changes. (client-go queues a key twice that waits.)
    /// If a guard holds the key, that guard's drop then does nothing.
    pub fn done(&self, key: &K) -> bool {
        let hash = self.shared.hasher.hash_one(key);
        let mut spare = None; // Drops outside the lock.
        self.shared.begin_untimed().finish(|state| state.done_key(hash, key, &mut spare)).is_some()
    }

    /// How many keys wait to be handed out. Those added again while they are processed do not, nor do delayed ones.
    pub fn len(&self) -> usize {
        self.shared.begin_untimed().inner.state.len()
    }

    /// Whether no key waits to be handed out.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shuts the queue down and waits for nothing: adds do nothing from now on, and gets that find no key say so.
    ///
    /// Keys that wait are still handed out, and a key that was added while it was processed still waits again once it is
    /// done. Delayed keys are dropped; [`Snapshot::dropped_delayed`] counts them. Drains that wait end. May be called
    /// again.
    pub fn shut_down(&self) {
        self.begin_shut_down();
        let mut session = self.shared.begin();
        let wakers = session.inner.drains.overrule();
        session.after.wake(wakers);
    }

    /// Shuts down as [`shut_down`](Self::shut_down) does, at once, and gives a future that waits until no key is
    /// processed any more; keys that wait are not waited for. As client-go's `ShutDownWithDrain`.
    ///
    /// ```
    /// use kubewire_workqueue::{DrainOutcome, Queue};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
    /// let queue = Queue::new();
    /// queue.add("slow");
    /// let slow = queue.get().await;
    /// let outcome = queue.shut_down_with_drain().within(Duration::from_secs(30)).await;
    /// assert_eq!(outcome, DrainOutcome::TimedOut { processing: 1, waiting: 0 });
    /// drop(slow);
    /// assert_eq!(queue.shut_down_with_drain().await, DrainOutcome::Drained);
    /// # });
    /// # Ok::<_, std::io::Error>(())
    /// ```
    pub fn shut_down_with_drain(&self) -> Drain<'_, K> {
        self.begin_shut_down();
        Drain::new(&self.shared, DrainMode::Processing)
    }

    /// As [`shut_down_with_drain`](Self::shut_down_with_drain), but waits until no key waits either: workers have to go
    /// on until their gets say that the queue is shutting down. client-go has no such mode.
    pub fn shut_down_with_full_drain(&self) -> Drain<'_, K> {
        self.begin_shut_down();
        Drain::new(&self.shared, DrainMode::Everything)
    }

    fn begin_shut_down(&self) {
        let mut session = self.shared.begin();
        session.inner.state.shut_down();
        let wakers = session.inner.waiters.wake_all();
        session.after.wake(wakers);
        drop(session);
        loop {
            // A batch at a time, so that a million delayed keys hold nobody up; they drop outside the lock.
            let dropped = self.shared.begin().inner.state.drop_delayed();
            if dropped.is_empty() {
                break;
            }
        }
    }

    /// Whether the queue was shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.begin_untimed().inner.state.is_shutting_down()
    }

    /// The name of the queue; empty where it has none.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What is known of `key`. One hash.
    pub fn status(&self, key: &K) -> KeyStatus {
        let hash = self.shared.hasher.hash_one(key);
        let session = self.shared.begin();
        let now = session.now();
        session.inner.state.find(hash, key).map(|known| KeyStatus::of(&known, now)).unwrap_or_default()
    }

    /// What waits, is processed and is delayed, and for how long. O(n): clones all keys under the lock.
    pub fn snapshot(&self) -> Snapshot<K> {
        let session = self.shared.begin();
        let now = session.now();
        let mut snapshot = Snapshot::of(&session.inner.state, now);
        drop(session);
        snapshot.sort();
        snapshot
    }

    /// Tells the metrics how long the keys that are being processed have been so. O(those keys).
    ///
    /// There is no task that does it, as client-go has until the shut-down: call it when the metrics are asked for, or
    /// every half second as there. It works on while a drain waits.
    pub fn refresh_metrics(&self) {
        let Some(metrics) = &self.shared.metrics else { return };
        let session = self.shared.begin();
        let now = session.now();
        let ages = session.inner.state.processing_since().map(|since| now.saturating_duration_since(since));
        let (total, longest) = ages.fold((Duration::ZERO, Duration::ZERO), |(total, longest), age| {
            (total.saturating_add(age), longest.max(age))
        });
        drop(session);
        survive(|| {
            metrics.unfinished_work(total);
            metrics.longest_running_processor(longest);
        });
    }
}

/// Why [`Queue::try_get`] has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryGetError {
    /// No key waits now.
    #[error("no key waits: try again later, or wait with `get`")]
    Empty,
    /// No key waits, and the queue is shutting down.
    #[error("the queue is shutting down and no key waits: end the worker")]
    ShutDown,
}

impl<K: Eq + Clone> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Eq + Hash + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq + Clone> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.shared.begin();
        let state = &session.inner.state;
        let (waiting, processing, delayed) = (state.len(), state.processing(), state.delayed());
        let shutting_down = state.is_shutting_down();
        drop(session);
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .field("waiting", &waiting)
            .field("processing", &processing)
            .field("delayed", &delayed)
            .field("shutting_down", &shutting_down)
            .finish()
    }
}
