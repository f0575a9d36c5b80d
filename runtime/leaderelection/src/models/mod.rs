//! Models: whole electors, a server and time, run in many orders of their steps.
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle cargo test -p kubewire-leaderelection --lib models
//! ```
//!
//! | Variable | What it sets |
//! |---|---|
//! | `KUBEWIRE_SCHEDULES` | how many orders each model is run in; 400 |
//! | `KUBEWIRE_SEED` | from which seed they are drawn; 1 |
//! | `KUBEWIRE_SCHEDULE` | the one order to run: what a failure has printed |
//!
//! What is modelled is the code as it is, under locks, tasks and a manual clock that shuttle sees; a token, or the watch of
//! the terms, is one step of tokio's. Time is a thread like the others: it may go on while an elector that has something to
//! do has not come to it, as on a machine that stands still. It never goes on within an act of the leading work, between
//! the question whether it leads and its end: that is where [`Term::is_valid`](crate::Term::is_valid) promises something.
//!
//! A model that never ends is a run that a stop does not end, or a lost wake-up: shuttle reports it. Bugs that these models
//! catch stand in `testing/mutants/mutants.toml`.

mod electors;
mod world;

use kubewire_ratelimit::sync::model;
