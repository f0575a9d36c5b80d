//! A token bucket that waits.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::clock::{Clock, after, unpark_this_thread};
use crate::sync::{Mutex, Notify};
use crate::token_bucket::{Reservation, ReserveError, TokenBucket};

/// A [`TokenBucket`] that several tasks and threads share and wait on; as client-go's `flowcontrol.RateLimiter`.
///
/// | client-go | here |
/// |---|---|
/// | `TryAccept` | [`try_accept`](Self::try_accept): a token now, or none |
/// | `Accept` | [`accept`](Self::accept): blocks the thread |
/// | `Wait(ctx)` | [`wait`](Self::wait), [`wait_until`](Self::wait_until) with a deadline; cancelled by dropping |
/// | `Stop`, `QPS` | [`stop`](Self::stop), [`qps`](Self::qps) |
/// | `NewFakeAlwaysRateLimiter`, `NewFakeNeverRateLimiter` | [`always`](Self::always), [`never`](Self::never) |
///
/// Waiters are served in the order in which they came. Cloning counts a reference; clones share the bucket.
///
/// ```
/// use kubewire_ratelimit::Throttle;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let throttle = Throttle::new(50.0, 100); // 50 a second, 100 at once.
/// throttle.wait().await?;
/// // Send the request.
/// # Ok::<_, kubewire_ratelimit::WaitError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Throttle {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    qps: f64,
    /// Nothing is called under this lock but the bucket's arithmetic.
    state: Mutex<State>,
    /// Told once, when `State::stopped` is set.
    stop: Notify,
}

/// Guarded by `Shared::state`.
struct State {
    bucket: TokenBucket,
    stopped: bool,
}

/// Why a wait ended without a token. Nothing was taken from the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// No token, or none in time.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// The throttle was stopped.
    #[error("the throttle was stopped: build a new one to go on")]
    Stopped,
}

impl Throttle {
    /// Lets `qps` pass each second, and `burst` at once, by the system's clock.
    pub fn new(qps: f64, burst: u32) -> Self {
        Self::with_clock(qps, burst, Clock::system())
    }

    /// The same by a clock of the caller's.
    pub fn with_clock(qps: f64, burst: u32, clock: Clock) -> Self {
        let bucket = TokenBucket::new(qps, burst);
        let state = Mutex::new(State { bucket, stopped: false });
        Self { shared: Arc::new(Shared { clock, qps, state, stop: Notify::new() }) }
    }

    /// Lets everything pass; for tests.
    pub fn always() -> Self {
        Self::new(f64::INFINITY, 1)
    }

    /// Lets nothing pass; for tests.
    pub fn never() -> Self {
        Self::new(0.0, 0)
    }

    /// Tokens that come each second.
    pub fn qps(&self) -> f64 {
        self.shared.qps
    }

    /// Takes a token if one is there, and never waits. False after a [`stop`](Self::stop).
    pub fn try_accept(&self) -> bool {
        let now = self.shared.clock.now();
        let mut state = self.shared.state.lock();
        !state.stopped && state.bucket.try_accept(now)
    }

    /// Waits for a token. Answers how long that took by the bucket's reckoning.
    ///
    /// Cancel-safe: a wait that is dropped gives its token back, as far as nobody waits behind it.
    ///
    /// # Errors
    /// The throttle is stopped, or never has a token.
    pub async fn wait(&self) -> Result<Duration, WaitError> {
        self.wait_reserved(None).await
    }

    /// Waits for a token, but not beyond `deadline`: where it would come later the wait fails at once and takes nothing.
    ///
    /// Cancel-safe, as [`wait`](Self::wait).
    ///
    /// # Errors
    /// The token comes too late, the throttle is stopped, or never has a token.
    pub async fn wait_until(&self, deadline: Instant) -> Result<Duration, WaitError> {
        self.wait_reserved(Some(deadline)).await
    }

    /// Blocks this thread until there is a token. Not for async code: use [`wait`](Self::wait) there.
    ///
    /// # Errors
    /// The throttle is stopped. One that never has a token blocks until then.
    pub fn accept(&self) -> Result<(), WaitError> {
        let waker = unpark_this_thread();
        let mut stopped = std::pin::pin!(self.shared.stop.notified());
        let (ready, held) = match self.reserve(None) {
            Ok(held) => (held.reservation.ready(), Some(held)),
            Err(WaitError::Reserve(_)) => (after(self.shared.clock.now(), Duration::MAX), None),
            Err(stopped) => return Err(stopped),
        };
        loop {
            if self.shared.state.lock().stopped {
                return Err(WaitError::Stopped);
            }
            if stopped.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
                return Err(WaitError::Stopped);
            }
            if self.shared.clock.now() >= ready {
                held.into_iter().for_each(Held::take);
                return Ok(());
            }
            self.shared.clock.park_until(ready);
        }
    }

    /// Ends all waits, those to come too, with [`WaitError::Stopped`].
    pub fn stop(&self) {
        self.shared.state.lock().stopped = true;
        self.shared.stop.notify_waiters();
    }

    async fn wait_reserved(&self, deadline: Option<Instant>) -> Result<Duration, WaitError> {
        // Registered before the look at `stopped` in `reserve`, so that no stop is missed between the two.
        let mut stopped = std::pin::pin!(self.shared.stop.notified());
        stopped.as_mut().enable();
        let held = self.reserve(deadline)?;
        let delay = held.reservation.delay();
        if !delay.is_zero() {
            tokio::select! {
                biased;
                () = self.shared.clock.sleep_until(held.reservation.ready()) => {}
                () = stopped => return Err(WaitError::Stopped),
            }
        }
        held.take();
        Ok(delay)
    }

    fn reserve(&self, deadline: Option<Instant>) -> Result<Held<'_>, WaitError> {
        let now = self.shared.clock.now();
        let max_wait = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now));
        let mut state = self.shared.state.lock();
        if state.stopped {
            return Err(WaitError::Stopped);
        }
        let reservation = state.bucket.reserve_within(now, max_wait)?;
        Ok(Held { shared: &self.shared, reservation, taken: false })
    }
}

/// A reservation that is given back when dropped before it was taken.
struct Held<'a> {
    shared: &'a Shared,
    reservation: Reservation,
    taken: bool,
}

impl Held<'_> {
    fn take(mut self) {
        self.taken = true;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.taken {
            let now = self.shared.clock.now();
            self.shared.state.lock().bucket.cancel(self.reservation, now);
        }
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Throttle").field("bucket", &state.bucket).field("stopped", &state.stopped).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn try_accept_takes_the_burst_and_what_refills() {
        let time = ManualClock::new();
        let throttle = Throttle::with_clock(1.0, 3, time.clock());
        assert_eq!((0..4).map(|_| throttle.try_accept()).collect::<Vec<_>>(), [true, true, true, false]);
        time.advance(SECOND);
        assert!(throttle.try_accept());
        assert!(!throttle.try_accept());
        assert_eq!(throttle.qps(), 1.0);
    }

    #[tokio::test(start_paused = true)]
    async fn ten_tasks_at_a_hundred_a_second_take_the_time_that_their_tokens_need() {
        let throttle = Throttle::new(100.0, 1);
        let start = tokio::time::Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let throttle = throttle.clone();
            tasks.spawn(async move {
                for _ in 0..10 {
                    throttle.wait().await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        assert!(start.elapsed() >= Duration::from_millis(989), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_would_exceed_its_deadline_fails_at_once() {
        let throttle = Throttle::new(0.0001, 1);
        let start = tokio::time::Instant::now();
        let deadline = start.into_std() + SECOND;
        throttle.wait_until(deadline).await.unwrap();
        let error = throttle.wait_until(deadline).await.unwrap_err();
        assert!(matches!(error, WaitError::Reserve(ReserveError::TooLate { .. })), "{error}");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_wait_gives_its_token_back() {
        let throttle = Throttle::new(1.0, 1);
        assert_eq!(throttle.wait().await, Ok(Duration::ZERO));
        for _ in 0..10 {
            tokio::time::timeout(Duration::from_millis(1), throttle.wait()).await.unwrap_err();
        }
        let waited = throttle.wait().await.unwrap();
        assert!(waited <= SECOND, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn stop_ends_waits_of_tasks_and_those_to_come() {
        let throttle = Throttle::new(0.001, 1);
        throttle.wait().await.unwrap();
        let waiter = tokio::spawn({
            let throttle = throttle.clone();
            async move { throttle.wait().await }
        });
        tokio::task::yield_now().await;
        throttle.stop();
        assert_eq!(waiter.await.unwrap(), Err(WaitError::Stopped));
        assert_eq!(throttle.wait().await, Err(WaitError::Stopped));
        assert!(!throttle.try_accept());
    }

    #[test]
    fn a_throttle_that_never_lets_pass_blocks_until_it_is_stopped() {
        let time = ManualClock::new();
        let throttle = Throttle::with_clock(0.0, 0, time.clock());
        assert!(!throttle.try_accept());
        let thread = std::thread::spawn({
            let throttle = throttle.clone();
            move || throttle.accept()
        });
        // A stop before the thread waits would be found without being told.
        while time.next_wake().is_none() {
            std::thread::yield_now();
        }
        throttle.stop();
        assert_eq!(thread.join().unwrap(), Err(WaitError::Stopped));
    }

    #[test]
    fn blocked_threads_get_their_tokens_when_the_clock_moves() {
        let time = ManualClock::new();
        let throttle = Throttle::with_clock(1.0, 1, time.clock());
        throttle.accept().unwrap();
        let thread = std::thread::spawn({
            let throttle = throttle.clone();
            move || throttle.accept()
        });
        while time.next_wake().is_none() {
            std::thread::yield_now();
        }
        time.advance(SECOND);
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn always_and_never_answer_at_once() {
        let always = Throttle::always();
        assert!((0..1000).all(|_| always.try_accept()));
        assert_eq!(always.accept(), Ok(()));
        assert_eq!(Throttle::never().wait().await, Err(WaitError::Reserve(ReserveError::Never)));
    }
}
