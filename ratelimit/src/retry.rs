//! An operation that is tried again.

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::random::Random;

/// Tries `operation` until it succeeds, fails with an error that is not `is_retryable`, or the steps of `backoff` are
/// used up; answers its last outcome. As `retry.OnError`; with [`Backoff::default_retry`] and a test for conflicts it is
/// `retry.RetryOnConflict`.
///
/// `backoff.steps(n)` means n tries, at least one. A delay that reaches the cap ends them too.
///
/// Cancel-safe in that nothing is kept, but dropping it drops a try that has begun.
///
/// # Errors
/// The last error of the operation.
///
/// ```
/// use kubewire_ratelimit::{Backoff, retry};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let mut tries = 0;
/// let answer = retry(Backoff::default_retry(), |error: &&str| *error == "conflict", || {
///     tries += 1;
///     let outcome = if tries < 3 { Err("conflict") } else { Ok("written") };
///     async move { outcome }
/// });
/// assert_eq!(answer.await, Ok("written"));
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
pub async fn retry<T, E, F: FnMut() -> R, R: Future<Output = Result<T, E>>>(
    backoff: Backoff,
    is_retryable: impl FnMut(&E) -> bool,
    operation: F,
) -> Result<T, E> {
    retry_with(&Clock::system(), &mut Random::new(), backoff, is_retryable, operation).await
}

/// As [`retry`], by a clock and a source of jitter of the caller's.
///
/// # Errors
/// The last error of the operation.
pub async fn retry_with<T, E, F: FnMut() -> R, R: Future<Output = Result<T, E>>>(
    clock: &Clock,
    random: &mut Random,
    mut backoff: Backoff,
    mut is_retryable: impl FnMut(&E) -> bool,
    mut operation: F,
) -> Result<T, E> {
    loop {
        let outcome = operation().await;
        match &outcome {
            Err(error) if backoff.steps_left() > 1 && is_retryable(error) => {
                clock.sleep(backoff.step(random.fraction())).await;
                if backoff.steps_left() == 0 {
                    return outcome;
                }
            }
            _ => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Tries, and the milliseconds that they took, of an operation that fails so often.
    async fn tries(backoff: Backoff, failures: u32, error: &'static str) -> (Result<(), &'static str>, u32, u128) {
        let start = tokio::time::Instant::now();
        let tries = Cell::new(0);
        let operation = || {
            tries.set(tries.get() + 1);
            let outcome = if tries.get() <= failures { Err(error) } else { Ok(()) };
            async move { outcome }
        };
        let outcome = retry(backoff, |error| *error == "conflict", operation).await;
        (outcome, tries.get(), start.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_is_tried_as_often_as_there_are_steps() {
        let backoff = Backoff::new(10 * MS).factor(2.0).steps(4);
        assert_eq!(tries(backoff, 0, "conflict").await, (Ok(()), 1, 0));
        assert_eq!(tries(backoff, 2, "conflict").await, (Ok(()), 3, 30));
        assert_eq!(tries(backoff, 9, "conflict").await, (Err("conflict"), 4, 70));
        assert_eq!(tries(backoff, 9, "forbidden").await, (Err("forbidden"), 1, 0));
        assert_eq!(tries(Backoff::new(MS).steps(0), 9, "conflict").await, (Err("conflict"), 1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn reaching_the_cap_ends_the_tries() {
        let backoff = Backoff::new(10 * MS).factor(10.0).cap(50 * MS).steps(9);
        assert_eq!(tries(backoff, 9, "conflict").await, (Err("conflict"), 1, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn client_go_defaults_try_five_and_four_times() {
        let (outcome, count, millis) = tries(Backoff::default_retry(), 9, "conflict").await;
        assert_eq!((outcome, count), (Err("conflict"), 5));
        assert!((40..=48).contains(&millis), "{millis}");
        let (_, count, millis) = tries(Backoff::default_backoff(), 9, "conflict").await;
        assert_eq!(count, 4);
        assert!((310..=345).contains(&millis), "{millis}");
    }
}
