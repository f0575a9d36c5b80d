//! A back-off that starts anew from time to time, as `Backoff.DelayWithReset`.

use std::time::{Duration, Instant};

use crate::Backoff;

/// A [`Backoff`] that starts anew once `reset_interval` has passed **since it last started**, whatever happened in
/// between; as the delay function of `wait.Backoff.DelayWithReset`, which client-go's Reflector uses.
///
/// So an uninterrupted outage sees the short delays again from time to time, and a success needs no report. Pure: the
/// time and a random number come in.
///
/// ```
/// use kubewire_ratelimit::{Backoff, DelayWithReset};
/// use std::time::{Duration, Instant};
///
/// let now = Instant::now();
/// let backoff = Backoff::new(Duration::from_millis(800)).factor(2.0).cap(Duration::from_secs(30)).steps(38);
/// let mut delays = DelayWithReset::new(backoff, Duration::from_secs(120), now);
/// assert_eq!(delays.step(now, 0.0), Duration::from_millis(800));
/// assert_eq!(delays.step(now, 0.0), Duration::from_millis(1600));
/// assert_eq!(delays.step(now + Duration::from_secs(121), 0.0), Duration::from_millis(800));
/// ```
#[derive(Clone, Debug)]
pub struct DelayWithReset {
    initial: Backoff,
    present: Backoff,
    reset_interval: Duration,
    started: Instant,
}

impl DelayWithReset {
    /// Walks `backoff`, anew after each `reset_interval`; the first one begins `now`. With a zero interval each delay
    /// is the first one.
    pub fn new(backoff: Backoff, reset_interval: Duration, now: Instant) -> Self {
        Self { initial: backoff, present: backoff, reset_interval, started: now }
    }

    /// The delay that client-go's Reflector waits between its tries: 800 ms doubling to 30 s, each prolonged at random
    /// up to twice, anew after 2 minutes.
    pub fn reflector(now: Instant) -> Self {
        const CAP: Duration = Duration::from_secs(30);
        // 38 = 30 s / 800 ms, rounded up; the cap ends the steps long before.
        let backoff = Backoff::new(Duration::from_millis(800)).factor(2.0).jitter(1.0).cap(CAP).steps(38);
        Self::new(backoff, Duration::from_secs(120), now)
    }

    /// The next delay, with jitter by `random` (a number in `0.0..1.0`, see [`Random`](crate::Random)).
    #[must_use = "the step is made; wait for the delay"]
    pub fn step(&mut self, now: Instant, random: f64) -> Duration {
        if self.reset_interval.is_zero() {
            self.present = self.initial;
        } else if now.saturating_duration_since(self.started) > self.reset_interval {
            self.present = self.initial;
            self.started = now;
        }
        self.present.step(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// client-go, executed: 0.8 1.6 3.2 6.4 12.8 25.6 30 30 … then 0.8 again after 2 minutes.
    #[test]
    fn an_uninterrupted_outage_starts_anew_two_minutes_after_the_last_start() {
        let mut now = Instant::now();
        let mut delays = DelayWithReset::reflector(now);
        let mut seen = Vec::new();
        for _ in 0..10 {
            let delay = delays.step(now, 0.0);
            now += delay;
            seen.push(delay.as_millis());
        }
        assert_eq!(seen, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000, 800]);
    }

    #[test]
    fn the_interval_itself_is_not_yet_over() {
        let start = Instant::now();
        let mut delays = DelayWithReset::reflector(start);
        assert_eq!(delays.step(start, 0.0).as_millis(), 800);
        assert_eq!(delays.step(start + Duration::from_secs(120), 0.0).as_millis(), 1600);
        assert_eq!(delays.step(start + Duration::from_nanos(120_000_000_001), 0.0).as_millis(), 800);
    }

    #[test]
    fn the_next_interval_begins_at_the_reset() {
        let start = Instant::now();
        let mut delays = DelayWithReset::reflector(start);
        let at = |secs| start + Duration::from_secs(secs);
        let seen: Vec<_> = [121, 122, 123, 241, 242].map(|secs| delays.step(at(secs), 0.0).as_millis()).into();
        assert_eq!(seen, [800, 1600, 3200, 6400, 800]);
    }

    #[test]
    fn a_zero_interval_never_backs_off() {
        let now = Instant::now();
        let mut delays =
            DelayWithReset::new(Backoff::new(Duration::from_secs(1)).factor(2.0).steps(9), Duration::ZERO, now);
        assert_eq!([delays.step(now, 0.0), delays.step(now, 0.0)], [Duration::from_secs(1); 2]);
    }

    #[test]
    fn jitter_is_at_most_the_delay_itself() {
        let now = Instant::now();
        assert_eq!(DelayWithReset::reflector(now).step(now, 0.25).as_millis(), 1000);
    }
}
