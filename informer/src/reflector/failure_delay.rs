//! PURE: how long to wait after a failure.

use std::time::{Duration, Instant};

use kubewire_ratelimit::Backoff;

/// So much time of health in all starts the delays over.
const HEALTH: Duration = Duration::from_secs(120);

/// One walk of growing delays for everything that fails, lists and watches alike; it starts over after two minutes
/// of health.
///
/// client-go starts over two minutes after the last start, healthy or not: its delays shrink in the middle of an
/// outage, again and again. Here only time with an open watch counts, added up over several watches.
#[derive(Clone, Debug)]
pub(crate) struct FailureDelay {
    initial: Backoff,
    present: Backoff,
    /// Since when all is well, if it is.
    healthy_since: Option<Instant>,
    /// Health before that, since the delays started.
    healthy: Duration,
}

impl FailureDelay {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { initial: backoff, present: backoff, healthy_since: None, healthy: Duration::ZERO }
    }

    /// A watch is open.
    pub(crate) fn healthy(&mut self, now: Instant) {
        self.healthy_since.get_or_insert(now);
    }

    /// Something failed: the delay before the next try. `random` lies in `0.0..1.0`.
    pub(crate) fn failed(&mut self, now: Instant, random: f64) -> Duration {
        if let Some(since) = self.healthy_since.take() {
            self.healthy += now.duration_since(since);
        }
        if self.healthy >= HEALTH {
            self.present = self.initial;
            self.healthy = Duration::ZERO;
        }
        self.present.step(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays() -> FailureDelay {
        FailureDelay::new(Backoff::new(Duration::from_secs(1)).factor(2.0).cap(Duration::from_secs(30)).steps(38))
    }

    #[test]
    fn delays_grow_to_the_cap_and_do_not_shrink_in_an_outage_however_long() {
        let mut now = Instant::now();
        let mut delays = delays();
        let mut last = Duration::ZERO;
        for _ in 0..100 {
            let delay = delays.failed(now, 0.0);
            assert!(delay >= last, "{delay:?} after {last:?}");
            (last, now) = (delay, now + delay);
        }
        assert_eq!(last, Duration::from_secs(30));
    }

    #[test]
    fn two_minutes_of_health_start_the_delays_over() {
        let now = Instant::now();
        let mut delays = delays();
        let _ = (delays.failed(now, 0.0), delays.failed(now, 0.0));
        delays.healthy(now);
        delays.healthy(now + Duration::from_secs(119));
        assert_eq!(delays.failed(now + Duration::from_secs(120), 0.0), Duration::from_secs(1));
    }

    #[test]
    fn health_adds_up_over_several_watches() {
        let mut now = Instant::now();
        let mut delays = delays();
        let mut healthy_minute = |delays: &mut FailureDelay| {
            delays.healthy(now);
            now += Duration::from_secs(61);
            delays.failed(now, 0.0).as_secs()
        };
        assert_eq!([(); 4].map(|()| healthy_minute(&mut delays)), [1, 1, 2, 1]);
    }
}
