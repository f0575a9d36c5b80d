//! Models: a few tasks and threads with a few steps each, run in many orders of their locks, flags and wake-ups.
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p kubewire-informer --lib models
//! ```
//!
//! | Variable | What it sets |
//! |---|---|
//! | `KUBEWIRE_SCHEDULES` | how many orders each model is run in; 400 |
//! | `KUBEWIRE_SEED` | from which seed they are drawn; 1 |
//! | `KUBEWIRE_SCHEDULE` | the one order to run: what a failure has printed |
//!
//! Half of the orders are drawn evenly, half by priorities that change at two points (which finds rare orders of few
//! steps sooner). A model that never ends is a deadlock or a lost wake-up, and shuttle reports it. In all of them
//! each object, handler and waker looks whether a lock is held where it is called, dropped or woken.
//!
//! Bugs that these models catch stand in `testing/mutants/mutants.toml`, those with `cfg = "shuttle"`.
//!
//! What is modelled is the code as it is: only the locks, the flags and the spawning are shuttle's, and before each
//! step of a tokio `Notify` others may go on. Steps take place in one order for all (no weak memory): flags are `SeqCst`
//! where their order counts.

mod fifo;
mod latches;
mod listeners;
mod whole;
mod witness;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

use crate::sync;

/// Runs a model in many orders.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    let runs = Arc::new(AtomicUsize::new(0));
    let check = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = 0x4_0000;
        config.silence_warnings = true;
        let (run, runs) = (Arc::clone(&run), Arc::clone(&runs));
        Runner::new(scheduler, config).run(move || {
            sync::begin();
            run();
            let complaints = sync::complaints();
            assert!(complaints.is_empty(), "{complaints:#?}");
            runs.fetch_add(1, Ordering::Relaxed);
        });
    };
    if let Ok(schedule) = std::env::var("KUBEWIRE_SCHEDULE") {
        return check(Box::new(ReplayScheduler::new_from_encoded(&schedule)));
    }
    let (schedules, seed) = (number("KUBEWIRE_SCHEDULES", 400), number("KUBEWIRE_SEED", 1));
    check(Box::new(RandomScheduler::new_from_seed(seed as u64, schedules.div_ceil(2))));
    check(Box::new(PctScheduler::new_from_seed(seed as u64, 3, schedules.div_ceil(2))));
    println!("{} orders", runs.load(Ordering::Relaxed));
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}
