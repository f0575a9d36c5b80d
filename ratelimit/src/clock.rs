//! The clock that every shell of this workspace reads, and that tests can move.
//!
//! Pure cores take `now: Instant` as an argument and never read a clock. Shells hold a [`Clock`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::sleep::Sleep;
use crate::sync::{Mutex, thread};

/// A monotonic clock: the system's, or one that a test moves by hand.
///
/// Cloning is cheap (a reference count for a manual clock, nothing for the system's).
#[derive(Clone, Default)]
pub struct Clock {
    /// `None` is the system's clock.
    manual: Option<Arc<Manual>>,
}

impl Clock {
    /// The system's monotonic clock. Inside a tokio runtime whose time is paused, it is that paused time.
    pub const fn system() -> Self {
        Self { manual: None }
    }

    /// The present moment.
    ///
    /// Cost: one clock read; for a manual clock one uncontended lock.
    pub fn now(&self) -> Instant {
        match &self.manual {
            Some(manual) => manual.now(),
            #[cfg(not(loom))]
            None => tokio::time::Instant::now().into_std(),
            #[cfg(loom)]
            None => Instant::now(),
        }
    }

    /// A moment at most some milliseconds (a tick of the kernel) before the present one, for ages that need not be exact. It
    /// does not follow a runtime whose time is paused; a manual clock's is exact.
    ///
    /// Cost: on Linux a quarter of [`now`](Self::now), elsewhere the same.
    pub fn coarse_now(&self) -> Instant {
        match &self.manual {
            Some(manual) => manual.now(),
            None => crate::coarse::now(),
        }
    }

    /// Waits until `due`; ready at once when it has passed. For the system's clock it must be polled inside a tokio
    /// runtime with time (else it panics, as tokio's own sleep), for a manual clock anywhere.
    ///
    /// Cancel-safe: dropping the future forgets the wait, nothing else.
    pub fn sleep_until(&self, due: Instant) -> Sleep {
        match &self.manual {
            Some(manual) => Sleep::manual(Arc::clone(manual), due),
            None => Sleep::system(due),
        }
    }

    /// Waits for `delay`, as [`sleep_until`](Self::sleep_until) does.
    ///
    /// Cancel-safe.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        self.sleep_until(after(self.now(), delay))
    }

    /// Parks this thread until `due`, or until somebody unparks it, or for no reason: look at the time, then call it
    /// again, as with [`std::thread::park`]. Needs no runtime.
    pub fn park_until(&self, due: Instant) {
        let Some(manual) = &self.manual else {
            #[cfg(not(loom))]
            return thread::park_timeout(due.saturating_duration_since(self.now()));
            // Under loom there is no timer but a manual clock's.
            #[cfg(loom)]
            return thread::park();
        };
        let waker = unpark_this_thread();
        let mut sleep = Sleep::manual(Arc::clone(manual), due);
        if std::pin::Pin::new(&mut sleep).poll(&mut std::task::Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.manual.is_some() { "Clock(manual)" } else { "Clock(system)" })
    }
}

/// `delay` after `start`; a thousand years after it where the delay leads past the end of time, or further than that.
///
/// For delays that stand for "never", so that no sum overflows.
pub fn after(start: Instant, delay: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(1000 * 365 * 86_400);
    start.checked_add(delay.min(FAR)).unwrap_or(start)
}

/// A clock that stands still until a test moves it.
///
/// ```
/// use kubewire_ratelimit::ManualClock;
/// use std::time::Duration;
///
/// let time = ManualClock::new();
/// let clock = time.clock();
/// let start = clock.now();
/// time.advance(Duration::from_secs(5));
/// assert_eq!(clock.now() - start, Duration::from_secs(5));
/// ```
#[derive(Clone)]
pub struct ManualClock {
    manual: Arc<Manual>,
}

impl ManualClock {
    /// A clock that stands at some moment (the system's present one, so that its instants mix with others).
    pub fn new() -> Self {
        Self { manual: Arc::new(Manual { start: Instant::now(), state: Mutex::default() }) }
    }

    /// A [`Clock`] that shows this time.
    pub fn clock(&self) -> Clock {
        Clock { manual: Some(Arc::clone(&self.manual)) }
    }

    /// The present moment of this clock.
    pub fn now(&self) -> Instant {
        self.manual.now()
    }

    /// Lets `by` pass at once and wakes, in the order of their times, all sleepers that are due then (the new
    /// moment included). A sleeper that begins while this runs is not waited for.
    ///
    /// The clock jumps: a sleeper that wakes reads the new moment, not its own. A test that wants to run through time
    /// advances to [`next_wake`](Self::next_wake), lets everybody settle, and repeats.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut state = self.manual.state.lock();
            state.elapsed = after(self.manual.start, state.elapsed.saturating_add(by)) - self.manual.start;
            let now = self.manual.start + state.elapsed;
            let later = state.sleepers.split_off(&(now, u64::MAX));
            std::mem::replace(&mut state.sleepers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// The earliest moment for which somebody sleeps, if anybody does.
    pub fn next_wake(&self) -> Option<Instant> {
        self.manual.state.lock().sleepers.first_key_value().map(|((due, _), _)| *due)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("elapsed", &self.manual.state.lock().elapsed).finish_non_exhaustive()
    }
}

/// What a [`ManualClock`], the [`Clock`]s made from it and their sleepers share.
pub(crate) struct Manual {
    start: Instant,
    /// Wakers are cloned, woken and dropped outside this lock.
    state: Mutex<ManualState>,
}

/// Guarded by `Manual::state`.
#[derive(Default)]
struct ManualState {
    /// Time passed since `Manual::start`.
    elapsed: Duration,
    /// Who sleeps, by due time and then by a number that tells sleepers of one time apart.
    sleepers: BTreeMap<(Instant, u64), Waker>,
    next_id: u64,
}

impl Manual {
    pub(crate) fn now(&self) -> Instant {
        self.start + self.state.lock().elapsed
    }

    /// Has `waker` woken at `due`, under the sleeper's `id` (given at the first call). Answers whether `due` has come
    /// already; then nothing is kept.
    pub(crate) fn wake_at(&self, due: Instant, id: &mut Option<u64>, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = self.state.lock();
        if due <= self.start + state.elapsed {
            return true;
        }
        let id = *id.get_or_insert_with(|| {
            state.next_id += 1;
            state.next_id
        });
        let replaced = state.sleepers.insert((due, id), waker);
        drop(state);
        drop(replaced);
        false
    }

    pub(crate) fn forget(&self, due: Instant, id: u64) {
        let waker = self.state.lock().sleepers.remove(&(due, id));
        drop(waker);
    }
}

/// A waker that unparks this thread: to poll by hand in blocking code, and to wait in between by
/// [`Clock::park_until`] or [`std::thread::park`].
///
/// Cost: one allocation.
pub fn unpark_this_thread() -> Waker {
    struct Unpark(thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(Arc::new(Unpark(thread::current())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_the_order_of_their_times_the_new_moment_included() {
        use std::pin::Pin;
        use std::task::{Context, Wake};

        struct Note(u64, Arc<Mutex<Vec<u64>>>);
        impl Wake for Note {
            fn wake(self: Arc<Self>) {
                self.1.lock().push(self.0);
            }
        }

        let time = ManualClock::new();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut sleeps: Vec<_> = [30, 10, 20, 40]
            .map(|millis| {
                let mut sleep = time.clock().sleep(Duration::from_millis(millis));
                let waker = Waker::from(Arc::new(Note(millis, Arc::clone(&woken))));
                assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending());
                sleep
            })
            .into();
        drop(sleeps.remove(2));
        assert_eq!(time.next_wake(), Some(time.now() + Duration::from_millis(10)));
        time.advance(Duration::from_millis(30));
        assert_eq!(*woken.lock(), [10, 30], "the dropped one is forgotten, the later one sleeps on");
        assert_eq!(time.next_wake(), Some(time.now() + Duration::from_millis(10)));
    }

    #[test]
    fn neither_clock_nor_delay_leads_past_the_end_of_time() {
        let time = ManualClock::new();
        time.advance(Duration::MAX);
        time.advance(Duration::MAX);
        assert!(after(time.now(), Duration::MAX) > time.now());
        assert_eq!(time.clock().sleep(Duration::MAX).due(), after(time.now(), Duration::MAX));
    }

    #[test]
    fn parking_ends_when_the_clock_gets_there() {
        let time = ManualClock::new();
        let clock = time.clock();
        let due = time.now() + Duration::from_secs(3600);
        let thread = thread::spawn(move || {
            while clock.now() < due {
                clock.park_until(due);
            }
        });
        while time.next_wake().is_none() {
            thread::yield_now();
        }
        time.advance(Duration::from_secs(3600));
        thread.join().unwrap();
        Clock::system().park_until(Clock::system().now());
    }

    #[tokio::test(start_paused = true)]
    async fn the_systems_clock_follows_a_paused_runtime() {
        let clock = Clock::system();
        let start = clock.now();
        clock.sleep(Duration::from_secs(3600)).await;
        assert!(clock.now() - start >= Duration::from_secs(3600));
        clock.sleep_until(start).await;
    }
}
