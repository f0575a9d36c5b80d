//! Which seeds are played, and what is said of it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use crate::faults;
use crate::play::Play;
use crate::tally::{self, Tally};

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

    /// Plays those that are `mine`.
    pub(crate) fn play(self, name: &str, mine: impl Fn(u64) -> bool) {
        let mut tally = Tally::default();
        match self {
            Self::Range { first, last, complete } => {
                let mut seeds: Vec<u64> = (first..=last).collect();
                if !complete && first < FIRST_SOCKET_SEED && last > first {
                    let sockets = (last - first).div_ceil(IN_PROCESS_FOR_ONE_OVER_SOCKETS);
                    seeds.extend((first..first + sockets).map(|seed| FIRST_SOCKET_SEED + seed));
                }
                seeds.into_iter().filter(|seed| mine(*seed)).for_each(|seed| tally.add(&Play::new(seed).run()));
                if complete {
                    faults::all_occur_in(&tally);
                }
            }
            Self::Fresh(duration) => {
                let (begun, mut said) = (Instant::now(), Instant::now());
                let from = RandomState::new().build_hasher().finish() % FRESH_SEEDS_END;
                // Sockets have few runs: their seeds would otherwise take a share of time like any other's.
                let offsets = [from, FIRST_SOCKET_SEED + from];
                for n in 0.. {
                    for seed in offsets.map(|offset| offset + n).into_iter().filter(|seed| mine(*seed)) {
                        tally.add(&Play::new(seed).run());
                    }
                    if said.elapsed() > PROGRESS_INTERVAL {
                        said = Instant::now();
                        println!("{name}, after {} min: {tally}", begun.elapsed().as_secs() / 60);
                    }
                    if begun.elapsed() > duration {
                        break;
                    }
                }
            }
        }
        println!("{name}: {tally}");
        println!("all together so far: {}", tally::add_up(&tally));
    }
}
