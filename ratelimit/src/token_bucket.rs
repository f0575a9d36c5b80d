//! A bucket of tokens that fills with time, and whose tokens can be taken before they are there.

use std::time::{Duration, Instant};

use crate::clock::after;
use crate::nanos::{LONGEST_DELAY, cut};

/// `burst` tokens at first, `qps` more each second up to `burst`; as `golang.org/x/time/rate`.
///
/// A token may be reserved before it has filled; then the bucket holds less than none, and who reserved it waits. Pure:
/// it holds no lock and reads no clock. [`Throttle`](crate::Throttle) waits on it.
///
/// ```
/// use kubewire_ratelimit::TokenBucket;
/// use std::time::{Duration, Instant};
///
/// let mut bucket = TokenBucket::new(2.0, 1);
/// let now = Instant::now();
/// assert!(bucket.try_accept(now));
/// assert!(!bucket.try_accept(now));
/// assert_eq!(bucket.reserve(now)?.delay(), Duration::from_millis(500));
///
/// // The next token comes after a second: too late for who waits for 0.9 s at most. Nothing is taken.
/// assert!(bucket.reserve_within(now, Duration::from_millis(900)).is_err());
/// assert!(bucket.try_accept(now + Duration::from_secs(1)));
/// # Ok::<_, kubewire_ratelimit::ReserveError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    qps: f64,
    burst: u32,
    /// As of `changed`; below zero by what is reserved.
    tokens: f64,
    /// When a token was last taken or given back; `None`: never, the bucket is full.
    changed: Option<Instant>,
    /// The latest moment for which a token is reserved.
    last_ready: Option<Instant>,
}

/// A token that was taken, maybe before it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the token is taken: wait for `delay`, or give it back with `TokenBucket::cancel`"]
pub struct Reservation {
    delay: Duration,
    ready: Instant,
}

impl Reservation {
    /// How long to wait from the moment of reserving; zero where the token was there.
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// The moment at which the token is there.
    pub const fn ready(&self) -> Instant {
        self.ready
    }
}

/// Why no token was reserved. Nothing was taken from the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The bucket never holds a token: its burst is 0.
    #[error("the token bucket never holds a token: give it a burst of at least 1")]
    Never,
    /// The token comes too late.
    #[error("the next token comes after {delay:?}, too late: wait longer or come back later")]
    TooLate {
        /// How long until it is there.
        delay: Duration,
    },
}

impl TokenBucket {
    /// The bucket that fills with `qps` tokens a second up to `burst`, and is full. A rate that is negative or no number
    /// is 0: the burst, then none for ever. An infinite rate: always a token.
    pub fn new(qps: f64, burst: u32) -> Self {
        let qps = if qps > 0.0 { qps } else { 0.0 };
        Self { qps, burst, tokens: f64::from(burst), changed: None, last_ready: None }
    }

    /// Tokens that come each second.
    pub const fn qps(&self) -> f64 {
        self.qps
    }

    /// The most tokens that it holds.
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// The tokens in it; below zero by what is reserved and has not filled.
    pub fn tokens(&self, now: Instant) -> f64 {
        let Some(changed) = self.changed else { return self.tokens };
        let passed = now.saturating_duration_since(changed).as_secs_f64();
        // With an infinite rate and no time passed the product is no number, which `min` takes for the burst.
        (self.tokens + passed * self.qps).min(f64::from(self.burst))
    }

    /// Takes a token if one is there.
    pub fn try_accept(&mut self, now: Instant) -> bool {
        self.reserve_within(now, Duration::ZERO).is_ok()
    }

    /// Takes a token, however long it takes until it is there ([`LONGEST_DELAY`] where no more come).
    ///
    /// # Errors
    /// The burst is 0.
    pub fn reserve(&mut self, now: Instant) -> Result<Reservation, ReserveError> {
        self.reserve_within(now, LONGEST_DELAY)
    }

    /// Takes a token if it is there within `max_wait`.
    ///
    /// # Errors
    /// It is not, or the burst is 0.
    pub fn reserve_within(&mut self, now: Instant, max_wait: Duration) -> Result<Reservation, ReserveError> {
        if self.qps.is_infinite() {
            return Ok(Reservation { delay: Duration::ZERO, ready: now });
        }
        if self.burst == 0 {
            return Err(ReserveError::Never);
        }
        let tokens = self.tokens(now) - 1.0;
        let delay = if tokens < 0.0 { self.time_for(-tokens) } else { Duration::ZERO };
        if delay > max_wait {
            return Err(ReserveError::TooLate { delay });
        }
        let reservation = Reservation { delay, ready: after(now, delay) };
        self.tokens = tokens;
        self.changed = self.changed.max(Some(now));
        self.last_ready = self.last_ready.max(Some(reservation.ready));
        Ok(reservation)
    }

    /// Gives back the token of a reservation that is not used, as far as nobody has reserved behind it: those keep their
    /// times, so the place before them is lost. Nothing where the token is there already.
    pub fn cancel(&mut self, reservation: Reservation, now: Instant) {
        if self.qps.is_infinite() || reservation.ready <= now {
            return;
        }
        let behind = self.last_ready.map_or(Duration::ZERO, |last| last.saturating_duration_since(reservation.ready));
        let give_back = 1.0 - behind.as_secs_f64() * self.qps;
        if give_back <= 0.0 {
            return;
        }
        self.tokens = (self.tokens(now) + give_back).min(f64::from(self.burst));
        self.changed = self.changed.max(Some(now));
        if self.last_ready == Some(reservation.ready) {
            let one_before = self.time_for(1.0);
            self.last_ready = reservation.ready.checked_sub(one_before).filter(|&ready| ready >= now);
        }
    }

    /// How long it takes until so many tokens have come.
    fn time_for(&self, tokens: f64) -> Duration {
        if self.qps == 0.0 {
            return LONGEST_DELAY;
        }
        cut(tokens / self.qps * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn burst_is_there_at_once_and_refills_with_time() {
        let mut bucket = TokenBucket::new(1.0, 3);
        let now = Instant::now();
        let taken: Vec<_> = (0..4).map(|_| bucket.try_accept(now)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(bucket.try_accept(now + secs(1)));
        assert!(!bucket.try_accept(now + secs(1)));
        let later = now + secs(1000);
        assert_eq!((0..10).filter(|_| bucket.try_accept(later)).count(), 3, "it holds no more than its burst");
    }

    /// Steps of 2 s at one token per 1.031425 s: each one finds a token, for ever.
    #[test]
    fn small_steps_of_the_clock_lose_no_precision() {
        let mut bucket = TokenBucket::new(1.0 / 1.031425, 1);
        let start = Instant::now();
        let accepted = (0..60).filter(|&step| bucket.try_accept(start + secs(2 * step))).count();
        assert_eq!(accepted, 60);
    }

    #[test]
    fn a_hundred_tokens_at_a_hundred_a_second_take_99_hundredths_of_a_second() {
        let mut bucket = TokenBucket::new(100.0, 1);
        let start = Instant::now();
        let mut now = start;
        for _ in 0..100 {
            now += bucket.reserve(now).unwrap().delay();
        }
        let took = now - start;
        assert!(took >= Duration::from_nanos(989_999_900) && took <= Duration::from_millis(990), "{took:?}");
    }

    #[test]
    fn reservations_queue_up_without_bound() {
        let mut bucket = TokenBucket::new(10.0, 1);
        let now = Instant::now();
        let delays: Vec<_> = (0..1001).map(|_| bucket.reserve(now).unwrap().delay()).collect();
        assert!(delays.is_sorted());
        assert_eq!(delays[1000], secs(100));
    }

    #[test]
    fn a_token_that_comes_too_late_is_not_taken() {
        let mut bucket = TokenBucket::new(0.0001, 1);
        let now = Instant::now();
        assert!(bucket.try_accept(now));
        let error = bucket.reserve_within(now, secs(1)).unwrap_err();
        assert_eq!(error, ReserveError::TooLate { delay: secs(10_000) });
        assert_eq!(bucket.reserve_within(now, secs(10_000)).unwrap().delay(), secs(10_000));
    }

    #[test]
    fn odd_settings_never_panic() {
        let now = Instant::now();
        assert_eq!(TokenBucket::new(5.0, 0).reserve(now), Err(ReserveError::Never));
        for qps in [0.0, -1.0, f64::NAN] {
            let mut bucket = TokenBucket::new(qps, 1);
            assert!(bucket.try_accept(now));
            assert_eq!(bucket.reserve(now).unwrap().delay(), LONGEST_DELAY);
            assert!(!bucket.try_accept(now + secs(1_000_000)));
        }
        let mut endless = TokenBucket::new(f64::INFINITY, 0);
        assert!((0..1000).all(|_| endless.try_accept(now)));
        let mut slow = TokenBucket::new(f64::MIN_POSITIVE, 1);
        assert!(slow.try_accept(now));
        assert_eq!(slow.reserve(now).unwrap().delay(), LONGEST_DELAY);
    }

    #[test]
    fn a_clock_that_goes_back_fills_nothing_twice() {
        let mut bucket = TokenBucket::new(1.0, 10);
        let now = Instant::now();
        assert!((0..10).all(|_| bucket.try_accept(now + secs(5))));
        assert!(!bucket.try_accept(now));
        assert_eq!((0..10).filter(|_| bucket.try_accept(now + secs(6))).count(), 1);
    }

    #[test]
    fn a_reservation_at_an_earlier_moment_does_not_turn_the_bucket_back() {
        let mut bucket = TokenBucket::new(1.0, 1);
        let now = Instant::now();
        let delays = [5, 0, 5].map(|at| bucket.reserve(now + secs(at)).unwrap().delay());
        assert_eq!(delays, [secs(0), secs(1), secs(2)]);
    }

    #[test]
    fn a_token_that_is_there_already_is_not_given_back() {
        let mut bucket = TokenBucket::new(1.0, 5);
        let now = Instant::now();
        assert!((0..5).all(|_| bucket.try_accept(now)));
        let reservation = bucket.reserve(now).unwrap();
        bucket.cancel(reservation, now + secs(1));
        assert!(!bucket.try_accept(now + secs(1)), "it came at that moment, and is spent");
    }

    #[test]
    fn cancelling_gives_back_what_nobody_reserved_behind() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(1.0, 1);
        assert!(bucket.try_accept(now));
        let first = bucket.reserve(now).unwrap();
        let second = bucket.reserve(now).unwrap();
        assert_eq!(second.delay(), secs(2));

        bucket.cancel(first, now);
        let third = bucket.reserve(now).unwrap();
        assert_eq!(third.delay(), secs(3), "the second keeps its time, so the first one's is lost");

        bucket.cancel(third, now);
        bucket.cancel(second, now);
        assert_eq!(bucket.reserve(now).unwrap().delay(), secs(2), "the last ones are given back");

        bucket.cancel(second, now + secs(60));
        assert!(bucket.tokens(now + secs(60)) <= 1.0);
    }

    /// What is asked of a bucket, a number of milliseconds after the last time.
    #[derive(Clone, Copy, Debug)]
    enum Ask {
        Reserve,
        TryAccept,
        Within(u64),
    }

    fn asks() -> impl Strategy<Value = Vec<(u64, Ask)>> {
        let ask = prop_oneof![Just(Ask::Reserve), Just(Ask::TryAccept), (0..3000_u64).prop_map(Ask::Within)];
        proptest::collection::vec((0..1500_u64, ask), 1..200)
    }

    proptest! {
        /// The oracle counts millionths of a token in integers: at a thousand times `per_second` of them a millisecond.
        #[test]
        fn bucket_agrees_with_integers_and_never_gives_more_than_its_rate(
            per_second in 1..50_i64,
            burst in 1..10_u32,
            asks in asks(),
        ) {
            let start = Instant::now();
            let mut bucket = TokenBucket::new(per_second as f64, burst);
            let (mut millis, mut filled_at) = (0, 0);
            let mut millionths = i64::from(burst) * 1_000_000;
            let mut ready = Vec::new();
            for (pause, ask) in asks {
                millis += pause;
                let now = start + Duration::from_millis(millis);
                let full = i64::from(burst) * 1_000_000;
                let after = full.min(millionths + (millis - filled_at) as i64 * per_second * 1000) - 1_000_000;
                let want = Duration::from_nanos((-after).max(0) as u64 * 1000 / per_second as u64);
                let max_wait = match ask {
                    Ask::Reserve => LONGEST_DELAY,
                    Ask::TryAccept => Duration::ZERO,
                    Ask::Within(millis) => Duration::from_millis(millis),
                };
                // Doubles may err by a few nanoseconds: do not ask where that decides.
                prop_assume!(want.abs_diff(max_wait) > Duration::from_nanos(100) || want.is_zero());
                let outcome = bucket.reserve_within(now, max_wait);
                prop_assert_eq!(outcome.is_ok(), want <= max_wait);
                if let Ok(reservation) = outcome {
                    prop_assert!(reservation.delay().abs_diff(want) < Duration::from_nanos(50), "{:?}", want);
                    (millionths, filled_at) = (after, millis);
                    ready.push(reservation.ready());
                }
            }
            prop_assert!(ready.is_sorted());
            let most = f64::from(burst) + per_second as f64 * ready.last().map_or(0.0, |at| (*at - start).as_secs_f64());
            prop_assert!(ready.len() as f64 <= most + 1e-6);
        }
    }
}
