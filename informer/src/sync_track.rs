//! Knowing when everything of a first list has been dealt with, beyond the informer's own handlers: client-go's
//! `synctrack`.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashSet;
use tokio::sync::OnceCell;

use crate::sync::{AtomicI64, Mutex};

/// Follows a first list whose items are dealt with in any order, by many tasks: it is synced when the source
/// is, and no item that was started is outstanding.
///
/// A handler calls [`start`](Self::start) for each addition of the initial list, whoever deals with it calls
/// [`finished`](Self::finished).
///
/// ```
/// use kubewire_informer::AsyncTracker;
///
/// let tracker = AsyncTracker::new();
/// tracker.start("a");
/// tracker.upstream_has_synced();
/// assert!(!tracker.has_synced());
/// tracker.finished(&"a");
/// assert!(tracker.has_synced());
/// ```
#[derive(Debug)]
pub struct AsyncTracker<T> {
    state: Mutex<AsyncState<T>>,
    synced: crate::latch::Latch,
}

/// Guarded by `AsyncTracker::state`.
#[derive(Debug)]
struct AsyncState<T> {
    outstanding: HashSet<T>,
    upstream_synced: bool,
}

impl<T: Eq + Hash> AsyncTracker<T> {
    /// Nothing is outstanding, and the source is not synced.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(AsyncState { outstanding: HashSet::new(), upstream_synced: false }),
            synced: crate::latch::Latch::default(),
        }
    }

    /// An item came that has to be dealt with before this is synced. Call it before the source is synced.
    pub fn start(&self, item: T) {
        let former = self.state.lock().outstanding.replace(item);
        drop(former);
    }

    /// An item is dealt with. One that was not started does no harm.
    pub fn finished(&self, item: &T) {
        let former = self.state.lock().outstanding.take(item);
        drop(former);
        self.check();
    }

    /// Everything of the first list was started.
    pub fn upstream_has_synced(&self) {
        self.state.lock().upstream_synced = true;
        self.check();
    }

    /// Whether it is synced; once true, it stays so.
    pub fn has_synced(&self) -> bool {
        self.synced.is_set()
    }

    /// Waits until it is synced. Cancel-safe.
    pub async fn synced(&self) {
        self.synced.wait().await;
    }

    fn check(&self) {
        let done = {
            let state = self.state.lock();
            state.upstream_synced && state.outstanding.is_empty()
        };
        if done {
            self.synced.set();
        }
    }
}

impl<T: Eq + Hash> Default for AsyncTracker<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Follows a first list whose items are dealt with in the order in which they come, by one task: it only
/// counts.
#[derive(Debug, Default)]
pub struct SingleFileTracker {
    outstanding: AtomicI64,
    upstream: crate::latch::Latch,
}

/// More items were finished than started: somebody counts wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an item was finished that had not been started; call `start` for each item before `finished`")]
pub struct NotStarted;

impl SingleFileTracker {
    /// Nothing is outstanding, and the source is not synced.
    pub fn new() -> Self {
        Self::default()
    }

    /// An item came that has to be dealt with.
    pub fn start(&self) {
        self.outstanding.fetch_add(1, Ordering::SeqCst);
    }

    /// An item is dealt with.
    ///
    /// # Errors
    ///
    /// There was none. It does not count then.
    pub fn finished(&self) -> Result<(), NotStarted> {
        let one_less = |outstanding: i64| (outstanding > 0).then(|| outstanding - 1);
        match self.outstanding.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(NotStarted),
        }
    }

    /// Everything of the first list was started.
    pub fn upstream_has_synced(&self) {
        self.upstream.set();
    }

    /// Whether the source is synced and nothing is outstanding.
    pub fn has_synced(&self) -> bool {
        // In this order: what was started before the source was synced is counted by then.
        self.upstream.is_set() && self.outstanding.load(Ordering::SeqCst) == 0
    }
}

/// A value that is computed when it is asked for and kept until it is [`invalidate`](Self::invalidate)d:
/// something made of a whole cache, say, that is to be made anew after changes and not at each of them.
///
/// A failure is not kept. Those who ask at the same time share one computation; one that was overtaken by an
/// invalidation is handed to those who wait for it, and not kept.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use kubewire_informer::Lazy;
///
/// let count = Lazy::new(|| async { Ok::<_, std::convert::Infallible>(42) });
/// assert_eq!(count.get().await, Ok(42));
/// count.invalidate();
/// # }
/// ```
pub struct Lazy<T, F> {
    evaluate: F,
    /// The present generation; the lock is held to clone or replace it.
    cell: Mutex<Arc<OnceCell<T>>>,
}

impl<T: Clone, F> Lazy<T, F> {
    /// A value that is computed by `evaluate`.
    pub fn new(evaluate: F) -> Self {
        Self { evaluate, cell: Mutex::default() }
    }

    /// The value, computed if need be. Cancel-safe: if the one who computes is dropped, another one begins.
    pub async fn get<E, Fut>(&self) -> Result<T, E>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let cell = Arc::clone(&self.cell.lock());
        cell.get_or_try_init(&self.evaluate).await.cloned()
    }

    /// The value is computed anew when it is asked for next.
    pub fn invalidate(&self) {
        let former = std::mem::take(&mut *self.cell.lock());
        drop(former);
    }
}

impl<T: std::fmt::Debug, F> std::fmt::Debug for Lazy<T, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lazy").field(&self.cell.lock().get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_trackers_need_the_source_and_all_items_in_whatever_order() {
        let tracker = AsyncTracker::new();
        tracker.start(1);
        tracker.finished(&1);
        assert!(!tracker.has_synced(), "without the source");
        tracker.start(2);
        tracker.upstream_has_synced();
        assert!(!tracker.has_synced(), "with an item outstanding");
        tracker.finished(&7);
        assert!(!tracker.has_synced(), "an unknown item");
        tracker.finished(&2);
        assert!(tracker.has_synced());

        let tracker = SingleFileTracker::new();
        tracker.start();
        tracker.finished().unwrap();
        assert!(!tracker.has_synced());
        tracker.start();
        tracker.upstream_has_synced();
        assert!(!tracker.has_synced());
        tracker.finished().unwrap();
        assert!(tracker.has_synced());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken_exactly_when_it_is_synced() {
        let tracker = Arc::new(AsyncTracker::new());
        let waiting = tokio::spawn({
            let tracker = Arc::clone(&tracker);
            async move { tracker.synced().await }
        });
        tracker.start("a");
        tracker.upstream_has_synced();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!tracker.has_synced() && !waiting.is_finished());
        tracker.finished(&"a");
        waiting.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_tasks_may_finish_what_they_have_started() {
        let tracker = Arc::new(AsyncTracker::new());
        let tasks: Vec<_> = (0..11)
            .map(|n| {
                let tracker = Arc::clone(&tracker);
                tokio::spawn(async move {
                    tracker.start(n);
                    tokio::task::yield_now().await;
                    tracker.finished(&n);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(!tracker.has_synced());
        tracker.upstream_has_synced();
        assert!(tracker.has_synced());
    }

    #[test]
    fn a_hundred_starts_need_a_hundred_finishes_and_one_more_is_an_error() {
        let tracker = SingleFileTracker::new();
        tracker.upstream_has_synced();
        (0..100).for_each(|_| tracker.start());
        for _ in 0..100 {
            assert!(!tracker.has_synced());
            tracker.finished().unwrap();
        }
        assert!(tracker.has_synced());
        assert_eq!(tracker.finished(), Err(NotStarted));
        assert!(tracker.has_synced());
    }

    #[tokio::test]
    async fn a_lazy_value_is_kept_until_it_is_invalidated_and_a_failure_is_not_kept() {
        let runs = AtomicUsize::new(0);
        let lazy = Lazy::new(|| async {
            match runs.fetch_add(1, Ordering::SeqCst) {
                0 => Err("not yet"),
                n => Ok(n),
            }
        });
        assert_eq!(lazy.get().await, Err("not yet"));
        assert_eq!(lazy.get().await, Ok(1));
        assert_eq!(lazy.get().await, Ok(1));
        lazy.invalidate();
        assert_eq!(lazy.get().await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_share_one_computation_and_an_overtaken_one_is_not_kept() {
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        let lazy = Arc::new(Lazy::new(move || {
            let n = counter.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, ()>(n)
            }
        }));
        let ask = || {
            let lazy = Arc::clone(&lazy);
            tokio::spawn(async move { lazy.get().await.unwrap() })
        };
        let early = [ask(), ask(), ask()];
        tokio::time::sleep(Duration::from_millis(500)).await;
        lazy.invalidate();
        let late = ask();
        for task in early {
            assert_eq!(task.await.unwrap(), 0, "they shared the first one");
        }
        assert_eq!(late.await.unwrap(), 1);
        assert_eq!(lazy.get().await, Ok(1), "the first one was overtaken");
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }
}
