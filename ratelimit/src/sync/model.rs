//! Runs models.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Runs a model in many orders: `KUBEWIRE_SCHEDULES` (400), drawn from `KUBEWIRE_SEED` (1); half of them evenly, half by
/// priorities that change at two points. Or in the one order of `KUBEWIRE_SCHEDULE`.
///
/// # Panics
/// In one of them something is wrong.
pub fn model(run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    let runs = Arc::new(AtomicUsize::new(0));
    let check = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = 0x4_0000;
        config.silence_warnings = true;
        let (run, runs) = (Arc::clone(&run), Arc::clone(&runs));
        Runner::new(scheduler, config).run(move || {
            super::begin();
            run();
            let complaints = super::complaints();
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
