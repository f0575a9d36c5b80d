//! Which seeds are played, and what is said of it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::faults;
use crate::tally::{self, Outcome, Tally};

/// Seeds from here on run over sockets.
pub(crate) const FIRST_SOCKET_SEED: u64 = 1_000_000;

/// Fresh seeds lie below this.
const FRESH_SEEDS_END: u64 = 900_000;

/// Of so many seeds in process there is one more over sockets.
const IN_PROCESS_FOR_ONE_OVER_SOCKETS: u64 = 25;

/// Tests that play seeds which the environment names.
const TESTS: usize = 4;

/// How often a long run says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// So many characters of a failure's message are listed in the end; all of it was printed when it happened.
const FAILURE_LEN_MAX: usize = 300;

#[derive(Clone, Debug)]
pub(crate) enum Seeds {
    /// From the first to the last; `complete` where all kinds of fault are to occur in them.
    Range { first: u64, last: u64, complete: bool },
    /// Others each time, for so long.
    Fresh(Duration),
}

impl Seeds {
    pub(crate) fn usual() -> Self {
        Self::Range { first: 1, last: 51, complete: true }
    }

    pub(crate) fn usual_over_sockets() -> Self {
        Self::Range { first: FIRST_SOCKET_SEED, last: FIRST_SOCKET_SEED + 3, complete: false }
    }

    /// Those that the environment names: `KUBEWIRE_SEED=7` or `1-200`, `KUBEWIRE_SEEDS=500` (so many),
    /// `KUBEWIRE_CHAOS_MINUTES=120` (fresh ones for so long).
    pub(crate) fn named() -> Option<Self> {
        let number = |name: &str, text: &str| -> u64 {
            text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is to be a whole number"))
        };
        if let Ok(named) = std::env::var("KUBEWIRE_SEED") {
            let (first, last) = named.split_once('-').unwrap_or((&named, &named));
            let (first, last) = (number("KUBEWIRE_SEED", first), number("KUBEWIRE_SEED", last));
            return Some(Self::Range { first, last, complete: false });
        }
        if let Ok(minutes) = std::env::var("KUBEWIRE_CHAOS_MINUTES") {
            let seconds = 60 * number("KUBEWIRE_CHAOS_MINUTES", &minutes);
            // The tests that play run side by side as far as there are cores, and share the time.
            let at_once = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(TESTS)) as u32;
            return Some(Self::Fresh(Duration::from_secs(seconds) * at_once / TESTS as u32));
        }
        let count = number("KUBEWIRE_SEEDS", &std::env::var("KUBEWIRE_SEEDS").ok()?);
        Some(Self::Range { first: 1, last: count, complete: false })
    }

    /// Plays those that are `mine`, all of them, also after one has failed.
    ///
    /// # Panics
    ///
    /// In the end, where a seed has failed: with all that have.
    pub(crate) fn play(self, name: &str, mine: impl Fn(u64) -> bool, play: impl Fn(u64) -> Outcome) {
        let begun = Instant::now();
        let mut played = Played::default();
        match self {
            Self::Range { first, last, complete } => {
                let mut seeds: Vec<u64> = (first..=last).collect();
                if !complete && first < FIRST_SOCKET_SEED && last > first {
                    let sockets = (last - first).div_ceil(IN_PROCESS_FOR_ONE_OVER_SOCKETS);
                    seeds.extend((first..first + sockets).map(|seed| FIRST_SOCKET_SEED + seed));
                }
                seeds.into_iter().filter(|seed| mine(*seed)).for_each(|seed| played.play(seed, &play));
                if complete && played.failures.is_empty() {
                    faults::all_occur_in(&played.tally);
                }
            }
            Self::Fresh(duration) => {
                let mut said = Instant::now();
                let from = RandomState::new().build_hasher().finish() % FRESH_SEEDS_END;
                // Sockets have few runs: their seeds would otherwise take a share of time like any other's.
                let offsets = [from, FIRST_SOCKET_SEED + from];
                for n in 0.. {
                    offsets
                        .map(|offset| offset + n)
                        .into_iter()
                        .filter(|seed| mine(*seed))
                        .for_each(|seed| played.play(seed, &play));
                    if said.elapsed() > PROGRESS_INTERVAL {
                        said = Instant::now();
                        let (minutes, failed) = (begun.elapsed().as_secs() / 60, played.failures.len());
                        println!("{name}, after {minutes} min, {failed} failed: {}", played.tally);
                    }
                    if begun.elapsed() > duration {
                        break;
                    }
                }
            }
        }
        println!("{name}, in {:.1} s: {}", begun.elapsed().as_secs_f64(), played.tally);
        println!("all together so far: {}", tally::add_up(&played.tally));
        let failures = &played.failures;
        assert!(failures.is_empty(), "{name}: {} seeds have failed:\n{}", failures.len(), failures.join("\n"));
    }
}

/// What came of the seeds so far.
#[derive(Default)]
struct Played {
    /// Of those that went well.
    tally: Tally,
    /// The others, each with why. As many as there are seeds at most, a line of bounded length each.
    failures: Vec<String>,
}

impl Played {
    fn play(&mut self, seed: u64, play: impl Fn(u64) -> Outcome) {
        // Nothing is shared between two runs but this, which a panic does not touch.
        match catch_unwind(AssertUnwindSafe(|| play(seed))) {
            Ok(outcome) => self.tally.add(&outcome),
            Err(panic) => {
                let message = (panic.downcast_ref::<String>().map(String::as_str))
                    .or(panic.downcast_ref::<&str>().copied())
                    .unwrap_or("a panic without a message");
                let message: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
                let start: String = message.chars().take(FAILURE_LEN_MAX).collect();
                self.failures.push(format!("KUBEWIRE_SEED={seed}: {start}"));
            }
        }
    }
}

/// Says how to play the same again, where a run fails.
pub(crate) struct NameOnPanic {
    pub(crate) seed: u64,
    /// The name of this test program.
    pub(crate) test: &'static str,
}

impl Drop for NameOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, test } = self;
            eprintln!("FAILED; once more: KUBEWIRE_SEED={seed} cargo test -p kubewire-conformance --test {test}");
        }
    }
}
