//! Loops that run something again and again until told to stop.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::backoff::with_jitter;
use crate::clock::{Clock, after};
use crate::random::Random;

/// Runs `f` again and again, `period` after it has returned each time, until `stop` is ready; as `wait.Until`.
///
/// `f` is not called where `stop` is ready already, and never interrupted: what is begun ends. A panic of `f` is
/// reported and counts as a return, so that a worker comes back after the period. [`Every`] has more to set.
///
/// `stop` is any future: `token.cancelled_owned()` of a `CancellationToken`, or `std::future::pending()`.
///
/// Cancel-safe in that nothing is kept, but dropping it drops a run of `f` that has begun.
///
/// ```
/// use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let mut runs = 0;
/// let stop = tokio::time::sleep(Duration::from_millis(2500));
/// kubewire_ratelimit::until(stop, Duration::from_secs(1), || {
///     runs += 1;
///     async {}
/// })
/// .await;
/// assert_eq!(runs, 3);
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
pub async fn until<F: FnMut() -> R, R: Future<Output = ()>>(stop: impl Future<Output = ()>, period: Duration, f: F) {
    Every::new(period).run(stop, f).await;
}

/// As [`until`], each wait prolonged at random by up to `jitter` times the period; as `wait.JitterUntil`.
pub async fn jitter_until<F: FnMut() -> R, R: Future<Output = ()>>(
    stop: impl Future<Output = ()>,
    period: Duration,
    jitter: f64,
    f: F,
) {
    Every::new(period).jitter(jitter).run(stop, f).await;
}

/// As [`until`], but the period counts from when `f` was called, not from when it returned; as `wait.NonSlidingUntil`.
pub async fn non_sliding_until<F: FnMut() -> R, R: Future<Output = ()>>(
    stop: impl Future<Output = ()>,
    period: Duration,
    f: F,
) {
    Every::new(period).non_sliding().run(stop, f).await;
}

/// A loop that runs something every so often; what [`until`] and its kin are made of.
///
/// ```
/// use kubewire_ratelimit::{Every, Random};
/// use std::time::Duration;
///
/// let gently = Every::new(Duration::from_secs(30)).jitter(0.2).random(Random::seeded(1)).non_sliding();
/// # async fn run(every: Every) {
/// every.run(std::future::pending(), || async { println!("tick") }).await;
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs until `run` is called and awaited"]
pub struct Every {
    period: Duration,
    jitter: f64,
    random: Random,
    sliding: bool,
    clock: Clock,
}

impl Every {
    /// Every `period` after the last run has ended, without jitter, by the system's clock.
    pub fn new(period: Duration) -> Self {
        Self { period, jitter: 0.0, random: Random::new(), sliding: true, clock: Clock::system() }
    }

    /// Each wait is prolonged at random by up to `factor` times the period.
    pub fn jitter(mut self, factor: f64) -> Self {
        self.jitter = factor;
        self
    }

    /// Where the jitter comes from; a test fixes it.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// The period counts from when a run began, not from when it ended. A run longer than the period is followed by the
    /// next one at once.
    pub fn non_sliding(mut self) -> Self {
        self.sliding = false;
        self
    }

    /// Waits by `clock`.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Runs `f` until `stop` is ready; see [`until`].
    pub async fn run<F: FnMut() -> R, R: Future<Output = ()>>(mut self, stop: impl Future<Output = ()>, mut f: F) {
        let mut stop = pin!(stop);
        let mut panics = 0_u64;
        while !is_ready(&mut stop).await {
            let began = self.clock.now();
            if !survive(&mut f).await {
                panics += 1;
                // One that panics each time writes 17 lines in 100,000 times.
                if panics.is_power_of_two() {
                    tracing::error!(panics, "a looped function panicked; it runs again after the period");
                }
            }
            let from = if self.sliding { self.clock.now() } else { began };
            let wait = if self.jitter > 0.0 {
                with_jitter(self.period, self.jitter, self.random.fraction())
            } else {
                self.period
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.clock.sleep_until(after(from, wait)) => {}
            }
        }
    }
}

/// Whether `future` is ready now. Not to be polled again after it was.
async fn is_ready(future: &mut Pin<&mut impl Future<Output = ()>>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

/// Runs `f` to its end or its panic; says whether it was its end.
async fn survive<R: Future<Output = ()>>(f: &mut impl FnMut() -> R) -> bool {
    let Ok(run) = std::panic::catch_unwind(AssertUnwindSafe(f)) else { return false };
    let mut run = pin!(run);
    std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
        Ok(poll) => poll.map(|()| true),
        Err(_) => Poll::Ready(false),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// When each run began, in milliseconds, where a run takes `takes`.
    async fn beginnings(every: Every, stop_after: Duration, takes: Duration) -> Vec<u128> {
        let start = tokio::time::Instant::now();
        let runs = RefCell::new(Vec::new());
        every
            .run(tokio::time::sleep(stop_after), || async {
                runs.borrow_mut().push(start.elapsed().as_millis());
                tokio::time::sleep(takes).await;
            })
            .await;
        runs.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn period_counts_from_the_end_of_a_run_unless_non_sliding() {
        let stop = Duration::from_millis(4100);
        let takes = Duration::from_millis(500);
        assert_eq!(beginnings(Every::new(SECOND), stop, takes).await, [0, 1500, 3000]);
        assert_eq!(beginnings(Every::new(SECOND).non_sliding(), stop, takes).await, [0, 1000, 2000, 3000, 4000]);
        let long = Duration::from_millis(1500);
        assert_eq!(beginnings(Every::new(SECOND).non_sliding(), stop, long).await, [0, 1500, 3000]);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_prolongs_each_wait_by_up_to_its_factor() {
        let every = Every::new(SECOND).jitter(0.5).random(Random::seeded(5));
        let begun = beginnings(every, 60 * SECOND, Duration::ZERO).await;
        let waits: Vec<_> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(waits.iter().all(|wait| (1000..=1501).contains(wait)), "{waits:?}");
        assert!(waits.iter().min() != waits.iter().max());
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_stopped_before_it_begins_never_runs() {
        let run = |kind: i32| async move {
            let stop = std::future::ready(());
            let never = || async { panic!("must not run") };
            match kind {
                0 => until(stop, SECOND, never).await,
                1 => jitter_until(stop, SECOND, 1.0, never).await,
                _ => non_sliding_until(stop, SECOND, never).await,
            }
        };
        for kind in 0..3 {
            run(kind).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_run_comes_back_after_the_period() {
        let runs = Cell::new(0);
        until(tokio::time::sleep(SECOND * 7 / 2), SECOND, || {
            runs.set(runs.get() + 1);
            assert!(runs.get() != 1, "before its first await");
            async {
                tokio::task::yield_now().await;
                assert!(runs.get() != 2, "after its first await");
            }
        })
        .await;
        assert_eq!(runs.get(), 4);
    }
}
