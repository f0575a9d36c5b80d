//! The clock that every shell of this workspace reads, and that tests can move.
//!
//! Pure cores take `now: Instant` as an argument and never read a clock. Shells hold a [`Clock`].

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A monotonic clock: the system's, or one that a test moves by hand.
///
/// Cloning is cheap (a reference count for a manual clock, nothing for the system's).
#[derive(Clone, Default)]
pub struct Clock {
    /// `None` is the system's clock.
    manual: Option<Arc<Manual>>,
}

/// What a [`ManualClock`] and the [`Clock`]s made from it share.
struct Manual {
    start: Instant,
    state: Mutex<ManualState>,
}

/// Guarded by `Manual::state`.
#[derive(Default)]
struct ManualState {
    /// Time passed since `Manual::start`.
    elapsed: Duration,
    #[cfg(not(loom))]
    sleepers: Vec<Sleeper>,
    #[cfg(not(loom))]
    next_id: u64,
}

#[cfg(not(loom))]
struct Sleeper {
    id: u64,
    due: Instant,
    waker: std::task::Waker,
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
            Some(manual) => manual.start + manual.state.lock().elapsed,
            #[cfg(not(loom))]
            None => tokio::time::Instant::now().into_std(),
            #[cfg(loom)]
            None => Instant::now(),
        }
    }

    /// Waits until `due`; returns at once when it has passed. For the system clock a tokio runtime with time
    /// is needed, a manual clock needs none.
    ///
    /// Cancel-safe: dropping the future forgets the wait, nothing else.
    #[cfg(not(loom))]
    pub async fn sleep_until(&self, due: Instant) {
        match &self.manual {
            Some(manual) => ManualSleep { manual: Arc::clone(manual), due, id: None }.await,
            None => tokio::time::sleep_until(due.into()).await,
        }
    }

    /// Waits for `delay`, as [`sleep_until`](Self::sleep_until) does. A delay that leads past the end of time
    /// never ends.
    ///
    /// Cancel-safe.
    #[cfg(not(loom))]
    pub async fn sleep(&self, delay: Duration) {
        match self.now().checked_add(delay) {
            Some(due) => self.sleep_until(due).await,
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.manual.is_some() { "Clock(manual)" } else { "Clock(system)" })
    }
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
        self.clock().now()
    }

    /// Lets `by` pass at once and wakes, in the order of their times, all sleepers that are due then (the new
    /// moment included). A sleeper that begins while this runs is not waited for.
    pub fn advance(&self, by: Duration) {
        let mut state = self.manual.state.lock();
        state.elapsed += by;
        #[cfg(not(loom))]
        {
            let now = self.manual.start + state.elapsed;
            let mut due: Vec<Sleeper> = state.sleepers.extract_if(.., |sleeper| sleeper.due <= now).collect();
            drop(state);
            due.sort_by_key(|sleeper| (sleeper.due, sleeper.id));
            for sleeper in due {
                sleeper.waker.wake();
            }
        }
    }

    /// The earliest moment for which somebody sleeps, if anybody does. A test that wants to run through time
    /// rather than jump advances to it, settles, and repeats.
    #[cfg(not(loom))]
    pub fn next_wake(&self) -> Option<Instant> {
        self.manual.state.lock().sleepers.iter().map(|sleeper| sleeper.due).min()
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

#[cfg(not(loom))]
struct ManualSleep {
    manual: Arc<Manual>,
    due: Instant,
    /// The entry in `ManualState::sleepers`, once there is one.
    id: Option<u64>,
}

#[cfg(not(loom))]
impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let this = &mut *self;
        let mut state = this.manual.state.lock();
        if this.due <= this.manual.start + state.elapsed {
            return std::task::Poll::Ready(());
        }
        let waker = cx.waker().clone();
        match this.id.and_then(|id| state.sleepers.iter_mut().find(|sleeper| sleeper.id == id)) {
            Some(sleeper) => sleeper.waker = waker,
            None => {
                let id = state.next_id;
                state.next_id += 1;
                this.id = Some(id);
                state.sleepers.push(Sleeper { id, due: this.due, waker });
            }
        }
        std::task::Poll::Pending
    }
}

#[cfg(not(loom))]
impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.manual.state.lock().sleepers.retain(|sleeper| sleeper.id != id);
        }
    }
}
