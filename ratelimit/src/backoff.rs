//! A walk of growing delays, as `wait.Backoff`.

use std::time::Duration;

use crate::nanos::times;

/// A walk of delays: each [`step`](Self::step) gives the present one and makes the next one `factor` times as
/// long, up to `cap`; as `wait.Backoff`.
///
/// A plain value without a clock: copy it to start anew. [`retry`](crate::retry) walks it around an operation,
/// [`DelayWithReset`](crate::DelayWithReset) starts it anew from time to time.
///
/// ```
/// use kubewire_ratelimit::Backoff;
/// use std::time::Duration;
///
/// let mut backoff = Backoff::new(Duration::from_millis(10)).factor(2.0).cap(Duration::from_millis(50)).steps(10);
/// let delays: Vec<_> = (0..5).map(|_| backoff.step(0.0).as_millis()).collect();
/// assert_eq!(delays, [10, 20, 40, 50, 50]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a backoff does nothing by itself: call `step`"]
pub struct Backoff {
    duration: Duration,
    factor: f64,
    jitter: f64,
    steps: u32,
    cap: Option<Duration>,
}

impl Backoff {
    /// The walk that stays at `duration`: no growth, no jitter, no cap, one step.
    pub const fn new(duration: Duration) -> Self {
        Self { duration, factor: 0.0, jitter: 0.0, steps: 1, cap: None }
    }

    /// What client-go recommends when a write met a conflict: 5 tries, 10 ms apart, jitter 0.1 (`retry.DefaultRetry`).
    pub const fn default_retry() -> Self {
        Self::new(Duration::from_millis(10)).factor(1.0).jitter(0.1).steps(5)
    }

    /// The same where other clients actively write too: 4 tries, 10 ms, 50 ms, 250 ms apart, jitter 0.1
    /// (`retry.DefaultBackoff`).
    pub const fn default_backoff() -> Self {
        Self::new(Duration::from_millis(10)).factor(5.0).jitter(0.1).steps(4)
    }

    /// Each step makes the next delay `factor` times as long. 0 and 1 both mean that it stays.
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// A step's delay `d` becomes a random one in `d..d·(1+jitter)`; the growth goes on from `d`.
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// After so many steps the delay grows no more; [`retry`](crate::retry) then gives up. Default 1.
    pub const fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// No delay is longer than `cap` (but for its jitter). A delay that would be ends the steps: all later ones equal
    /// the cap. Zero means no cap.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.cap = if cap.is_zero() { None } else { Some(cap) };
        self
    }

    /// How many steps are left before the delay stays as it is.
    pub const fn steps_left(&self) -> u32 {
        self.steps
    }

    /// The present delay, with jitter by `random` (a number in `0.0..1.0`, see [`Random`](crate::Random)); moves on
    /// to the next one.
    #[must_use = "the step is made; wait for the delay"]
    pub fn step(&mut self, random: f64) -> Duration {
        let present = self.duration;
        if self.steps > 0 {
            self.steps -= 1;
            if self.factor != 0.0 {
                self.duration = times(present, self.factor);
            }
            if let Some(cap) = self.cap
                && self.duration > cap
            {
                self.duration = cap;
                self.steps = 0;
            }
        }
        with_jitter(present, self.jitter, random)
    }
}

/// A delay in `duration..duration·(1+jitter)`, by `random` in `0.0..1.0`. As `wait.Jitter`, but a jitter of zero or
/// less is none (there it is 1.0).
///
/// ```
/// use std::time::Duration;
/// let second = Duration::from_secs(1);
/// assert_eq!(kubewire_ratelimit::with_jitter(second, 0.5, 0.5), Duration::from_millis(1250));
/// ```
pub fn with_jitter(duration: Duration, jitter: f64, random: f64) -> Duration {
    if jitter > 0.0 { duration.saturating_add(times(duration, random * jitter)) } else { duration }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(backoff: &mut Backoff, steps: usize, random: f64) -> Vec<u128> {
        (0..steps).map(|_| backoff.step(random).as_millis()).collect()
    }

    #[test]
    fn reaching_the_cap_ends_the_steps_and_later_delays_equal_the_cap() {
        let mut backoff =
            Backoff::new(Duration::from_millis(800)).factor(2.0).cap(Duration::from_secs(30)).steps(38).jitter(1.0);
        assert_eq!(millis(&mut backoff, 5, 0.0), [800, 1600, 3200, 6400, 12800]);
        assert_eq!(backoff.steps_left(), 33);
        assert_eq!(millis(&mut backoff, 1, 0.0), [25600]);
        assert_eq!(backoff.steps_left(), 0, "the next one would be above the cap");
        assert_eq!(millis(&mut backoff, 2, 0.0), [30000, 30000]);
        assert_eq!(millis(&mut backoff, 1, 0.5), [45000], "the cap is not for the jitter");
    }

    #[test]
    fn a_delay_that_equals_the_cap_is_not_above_it_and_costs_no_steps() {
        let mut backoff = Backoff::new(Duration::from_millis(10)).factor(2.0).cap(Duration::from_millis(20)).steps(9);
        assert_eq!(millis(&mut backoff, 1, 0.0), [10]);
        assert_eq!(backoff.steps_left(), 8);
        assert_eq!(millis(&mut backoff, 2, 0.0), [20, 20]);
        assert_eq!(backoff.steps_left(), 0);
    }

    #[test]
    fn without_steps_the_delay_stays() {
        let mut backoff = Backoff::new(Duration::from_millis(10)).factor(2.0).steps(2);
        assert_eq!(millis(&mut backoff, 5, 0.0), [10, 20, 40, 40, 40]);
    }

    #[test]
    fn without_factor_the_delay_stays_and_the_steps_count_down() {
        let mut backoff = Backoff::new(Duration::from_millis(10)).steps(3);
        assert_eq!(millis(&mut backoff, 2, 0.9), [10, 10]);
        assert_eq!(backoff.steps_left(), 1);
    }

    #[test]
    fn jitter_adds_to_a_step_and_not_to_the_growth() {
        let mut backoff = Backoff::new(Duration::from_millis(100)).factor(2.0).jitter(0.1).steps(9);
        assert_eq!(millis(&mut backoff, 3, 0.5), [105, 210, 420]);
    }

    #[test]
    fn growth_beyond_all_durations_saturates() {
        let mut backoff = Backoff::new(Duration::from_secs(1)).factor(1e9).steps(99);
        assert!((0..90).map(|_| backoff.step(0.9)).is_sorted());
        assert_eq!(backoff.step(0.0), crate::LONGEST_DELAY);
    }
}
