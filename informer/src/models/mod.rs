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

use kubewire_ratelimit::sync::model;
