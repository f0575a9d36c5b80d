//! Replays every recorded trace, those of objects over every representation of them: see the library's documentation and `traces/README.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewire_conformance::{Case, Failure, Outcome, Replay, Runner, replay};

#[expect(dead_code, reason = "no server is asked here")]
#[macro_use]
#[path = "../common/forms.rs"]
mod forms;
#[expect(dead_code, reason = "handles are not compared here")]
#[path = "../../../../indexer/tests/it/record.rs"]
mod record;

mod deltafifo;
mod informer;
mod keys;
mod limiter;
mod queue;
mod ratelimiters;
mod store;

/// The replays of an area of objects: over a plain struct, and over every representation.
macro_rules! replays {
    ([$area:ident $of:ident] $($name:ident: $object:ty;)+) => {
        [
            ("plain", replay::<$area::$of<Arc<record::Pod>>> as Replay),
            $((stringify!($name), replay::<$area::$of<$object>>)),+
        ]
    };
}

const AREAS: &[(&str, Replay)] = &[
    ("deltafifo", |case| each(case, &with_forms!(replays deltafifo DeltaFifos))),
    ("informer", |case| each(case, &with_forms!(replays informer Informers))),
    ("informer_per_key", |case| each(case, &with_forms!(replays informer Informers))),
    ("keys", replay::<keys::Keys>),
    ("queue", replay::<queue::Queues>),
    ("delaying", replay::<queue::Queues>),
    ("ratelimitqueue", replay::<queue::Queues>),
    ("ratelimiters", replay::<ratelimiters::RateLimiters>),
    ("store", |case| each(case, &with_forms!(replays store Stores))),
];

/// Replays that were done, of all representations.
static REPLAYS: AtomicUsize = AtomicUsize::new(0);

/// A case over each representation, up to the first that fails.
fn each(case: &Case, forms: &[(&str, Replay)]) -> Outcome {
    let mut outcome = Outcome::Passed;
    for (form, replay) in forms {
        outcome = replay(case);
        REPLAYS.fetch_add(1, Ordering::Relaxed);
        if let Outcome::Failed(failure) = outcome {
            return Outcome::Failed(Failure { problem: format!("as {form}: {}", failure.problem), ..failure });
        }
    }
    outcome
}

fn main() -> ExitCode {
    let runner = Runner::new(AREAS.iter().copied());
    let right = runner.run(&folder(), std::env::args().skip(1), &mut std::io::stdout().lock());
    println!("traces of objects run over every representation: {} replays", REPLAYS.load(Ordering::Relaxed));
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder that `KUBEWIRE_TRACES` names, from the project's root on, else the copy beside this package.
fn folder() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match std::env::var_os("KUBEWIRE_TRACES") {
        Some(folder) if !folder.is_empty() => package.join("../..").join(folder),
        _ => package.join("traces"),
    }
}
