//! Polling by hand: what a future does is seen at once, without a runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kubewire_workqueue::ratelimit::ManualClock;
use kubewire_workqueue::{Guard, Queue};

/// A millisecond.
pub(crate) const MS: Duration = Duration::from_millis(1);
/// A second.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is polled by hand.
pub(crate) struct Polled<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    wakes: Arc<Wakes>,
    seen: usize,
}

impl<'a, T> Polled<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default(), seen: 0 }
    }

    /// Polls it, woken or not.
    pub(crate) fn poll(&mut self) -> Option<T> {
        self.seen = self.wakes.0.load(Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.wakes));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Whether it was woken since it was last polled.
    pub(crate) fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::SeqCst) > self.seen
    }

    /// Polls it as long as it is woken, as an executor does.
    pub(crate) fn settle(&mut self) -> Option<T> {
        while self.is_woken() {
            if let Some(output) = self.poll() {
                return Some(output);
            }
        }
        None
    }

    /// How often it was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// A queue and its clock.
pub(crate) fn timed() -> (ManualClock, Queue<&'static str>) {
    let time = ManualClock::new();
    let queue = Queue::builder().clock(time.clock()).build();
    (time, queue)
}

/// A get that waits.
pub(crate) fn waiting<'a>(queue: &'a Queue<&'static str>) -> Polled<'a, Option<&'static str>> {
    let mut get = Polled::new(queue.get_key());
    assert_eq!(get.poll(), None, "nothing to get");
    get
}

/// The key that is got now; it stays in processing.
pub(crate) fn get<K: Eq + Clone + std::hash::Hash>(queue: &Queue<K>) -> Option<K> {
    queue.try_get().ok().map(Guard::into_key)
}

/// All keys that can be got now, each done at once.
pub(crate) fn drain<K: Eq + Clone + std::hash::Hash>(queue: &Queue<K>) -> Vec<K> {
    std::iter::from_fn(|| queue.try_get().ok().map(|key| key.key().clone())).collect()
}
