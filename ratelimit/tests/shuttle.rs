//! Those who wait for tokens, those who leave, the clock and the stop, in many orders.
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p kubewire-ratelimit --test shuttle
//! ```
//!
//! How many orders each model is run in says `KUBEWIRE_SCHEDULES` (1000), from which seed `KUBEWIRE_SEED` (1).
#![cfg(shuttle)]

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use kubewire_ratelimit::{ManualClock, Throttle, WaitError, sync};
use shuttle::future::block_on;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};

const SECOND: Duration = Duration::from_secs(1);

fn model(run: impl Fn() + Send + Sync + 'static) {
    let number = |variable, default| std::env::var(variable).map_or(default, |text| text.parse().expect("a number"));
    let scheduler =
        RandomScheduler::new_from_seed(number("KUBEWIRE_SEED", 1), number("KUBEWIRE_SCHEDULES", 1000) as usize);
    let mut config = Config::new();
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || {
        sync::begin();
        run();
        let complaints = sync::complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
    });
}

/// A throttle of one token a second that holds two, and has just given its first two.
fn throttle(time: &ManualClock) -> Throttle {
    let throttle = Throttle::with_clock(1.0, 2, time.clock());
    assert!(throttle.try_accept() && throttle.try_accept());
    throttle
}

#[test]
fn a_stop_ends_all_waits_whenever_they_begin() {
    model(|| {
        let throttle = throttle(&ManualClock::new());
        let waiting = thread::spawn({
            let throttle = throttle.clone();
            move || block_on(throttle.wait()).map(drop)
        });
        let blocked = thread::spawn({
            let throttle = throttle.clone();
            move || throttle.accept()
        });
        throttle.stop();
        assert_eq!(waiting.join().unwrap(), Err(WaitError::Stopped));
        assert_eq!(blocked.join().unwrap(), Err(WaitError::Stopped));
    });
}

/// After two seconds there are two tokens, whoever has come before, between or after these seconds.
#[test]
fn a_task_and_a_blocked_thread_have_their_tokens_when_the_clock_has_come_that_far() {
    model(|| {
        let time = ManualClock::new();
        let throttle = throttle(&time);
        let waiting = thread::spawn({
            let throttle = throttle.clone();
            move || block_on(throttle.wait()).map(drop)
        });
        let blocked = thread::spawn({
            let throttle = throttle.clone();
            move || throttle.accept()
        });
        time.advance(SECOND);
        time.advance(SECOND);
        assert_eq!((waiting.join().unwrap(), blocked.join().unwrap()), (Ok(()), Ok(())));
    });
}

#[test]
fn a_wait_that_is_dropped_keeps_nobody_from_a_token() {
    model(|| {
        let time = ManualClock::new();
        let throttle = throttle(&time);
        let dropped = thread::spawn({
            let throttle = throttle.clone();
            move || {
                let mut wait = Box::pin(throttle.wait());
                block_on(poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_ready())))
            }
        });
        let stays = thread::spawn({
            let throttle = throttle.clone();
            move || block_on(throttle.wait()).map(drop)
        });
        assert!(!dropped.join().unwrap(), "there is no token yet");
        time.advance(2 * SECOND);
        assert_eq!(stays.join().unwrap(), Ok(()));
    });
}
