//! Replays every recorded trace: see the library's documentation and `traces/README.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kubewire_conformance::{Replay, Runner, replay};

mod deltafifo;
mod informer;
mod keys;
mod limiter;
mod queue;
mod ratelimiters;
mod store;

const AREAS: &[(&str, Replay)] = &[
    ("deltafifo", replay::<deltafifo::DeltaFifos>),
    ("informer", replay::<informer::Informers>),
    ("informer_per_key", replay::<informer::Informers>),
    ("keys", replay::<keys::Keys>),
    ("queue", replay::<queue::Queues>),
    ("delaying", replay::<queue::Queues>),
    ("ratelimitqueue", replay::<queue::Queues>),
    ("ratelimiters", replay::<ratelimiters::RateLimiters>),
    ("store", replay::<store::Stores>),
];

fn main() -> ExitCode {
    let runner = Runner::new(AREAS.iter().copied());
    if runner.run(&folder(), std::env::args().skip(1), &mut std::io::stdout().lock()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The folder that `KUBEWIRE_TRACES` names, from the project's root on, else the copy beside this package.
fn folder() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match std::env::var_os("KUBEWIRE_TRACES") {
        Some(folder) if !folder.is_empty() => package.join("../..").join(folder),
        _ => package.join("traces"),
    }
}
