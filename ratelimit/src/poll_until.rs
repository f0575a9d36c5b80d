//! A loop that asks until it is so.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use crate::clock::{Clock, after};

/// Why [`poll_until`] ended without the condition having come true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PollError<E> {
    /// The time-out passed.
    #[error("the condition did not come true in time")]
    TimedOut,
    /// The stop became ready.
    #[error("stopped before the condition came true")]
    Stopped,
    /// The condition failed.
    #[error("the condition failed: {0}")]
    Condition(#[source] E),
}

/// How [`poll_until`] asks.
#[derive(Clone, Debug)]
#[must_use = "pass it to `poll_until`"]
pub struct Poller {
    interval: Duration,
    timeout: Option<Duration>,
    immediate: bool,
    clock: Clock,
}

impl Poller {
    /// Asks every `interval`, first after one, without end, by the system's clock.
    pub const fn new(interval: Duration) -> Self {
        Self { interval, timeout: None, immediate: false, clock: Clock::system() }
    }

    /// Gives up after `timeout`.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Asks at once too: at least once, even where the stop is ready or the time-out is zero.
    pub const fn immediate(mut self) -> Self {
        self.immediate = true;
        self
    }

    /// Waits by `clock`.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// Asks `condition` every so often until it answers true; as `wait.PollUntilContextTimeout`.
///
/// The intervals count from when the condition was asked; one that took longer than an interval is asked again at once.
/// A condition that is still at work when the stop is ready or the time is out is dropped.
///
/// Cancel-safe in that nothing is kept.
///
/// # Errors
/// It failed itself, time ran out, or the stop was ready first.
///
/// ```
/// use kubewire_ratelimit::{PollError, Poller, poll_until};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let mut asked = 0;
/// let poller = Poller::new(Duration::from_millis(100)).timeout(Duration::from_secs(10)).immediate();
/// let outcome = poll_until(poller, std::future::pending(), || {
///     asked += 1;
///     let ready = asked == 3;
///     async move { Ok::<_, std::io::Error>(ready) }
/// });
/// outcome.await?;
/// assert_eq!(asked, 3);
/// # Ok::<_, PollError<std::io::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub async fn poll_until<E, F: FnMut() -> R, R: Future<Output = Result<bool, E>>>(
    poller: Poller,
    stop: impl Future<Output = ()>,
    mut condition: F,
) -> Result<(), PollError<E>> {
    let Poller { interval, timeout, immediate, clock } = poller;
    let mut stop = pin!(stop);
    let start = clock.now();
    let deadline = timeout.map(|timeout| after(start, timeout));
    let mut end = pin!(ended(&mut stop, &clock, deadline));
    let mut due = start;
    let mut ask = immediate;
    loop {
        if ask {
            tokio::select! {
                biased;
                answer = condition() => match answer {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) => return Err(PollError::Condition(error)),
                },
                end = &mut end => return Err(end.error()),
            }
        }
        ask = true;
        due = after(due, interval).max(clock.now());
        tokio::select! {
            biased;
            end = &mut end => return Err(end.error()),
            () = clock.sleep_until(due) => {}
        }
    }
}

enum End {
    Stopped,
    TimedOut,
}

impl End {
    const fn error<E>(self) -> PollError<E> {
        match self {
            Self::Stopped => PollError::Stopped,
            Self::TimedOut => PollError::TimedOut,
        }
    }
}

async fn ended(stop: &mut Pin<&mut impl Future<Output = ()>>, clock: &Clock, deadline: Option<Instant>) -> End {
    let out_of_time = async {
        match deadline {
            Some(deadline) => clock.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = stop => End::Stopped,
        () = out_of_time => End::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_poll_that_is_stopped_before_it_begins_never_asks() {
        let asked = Cell::new(0);
        let condition = || {
            asked.set(asked.get() + 1);
            async { Ok::<_, ()>(false) }
        };
        let outcome = poll_until(Poller::new(SECOND), std::future::ready(()), condition).await;
        assert_eq!((outcome, asked.get()), (Err(PollError::Stopped), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_immediate_poll_asks_once_even_when_stopped_or_out_of_time() {
        let asked = Cell::new(0);
        let condition = || {
            asked.set(asked.get() + 1);
            async { Ok::<_, ()>(false) }
        };
        let poller = Poller::new(SECOND).immediate();
        assert_eq!(poll_until(poller.clone(), std::future::ready(()), condition).await, Err(PollError::Stopped));
        assert_eq!(asked.get(), 1);
        let outcome = poll_until(poller.timeout(Duration::ZERO), std::future::pending(), condition).await;
        assert_eq!((outcome, asked.get()), (Err(PollError::TimedOut), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_ends_with_its_condition_its_failure_or_its_time_out() {
        let start = tokio::time::Instant::now();
        let true_after = |elapsed| move || async move { Ok::<_, &str>(start.elapsed() >= elapsed) };
        let poller = Poller::new(SECOND).timeout(5 * SECOND);
        assert_eq!(poll_until(poller.clone(), std::future::pending(), true_after(3 * SECOND)).await, Ok(()));
        assert_eq!(start.elapsed().as_secs(), 3);
        let outcome = poll_until(poller.clone(), std::future::pending(), true_after(60 * SECOND)).await;
        assert_eq!(outcome, Err(PollError::TimedOut));
        assert_eq!(start.elapsed().as_secs(), 8);
        let outcome = poll_until(poller.clone(), std::future::pending(), || async { Err("broken") }).await;
        assert_eq!(outcome, Err(PollError::Condition("broken")));
        let hangs = || std::future::pending::<Result<bool, ()>>();
        assert_eq!(poll_until(poller, std::future::pending(), hangs).await, Err(PollError::TimedOut));
    }
}
