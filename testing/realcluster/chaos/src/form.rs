//! The two sizes of a run.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// How many pods are churned.
    pub(crate) pods: u64,
    /// For how long a server is stopped.
    pub(crate) stop: Duration,
    /// The longest further time that other outages last.
    pub(crate) pause: Duration,
    /// How many writes belong before, into and behind a fault.
    pub(crate) writes: u64,
    /// How many watches of 5 s everybody has to see end.
    pub(crate) short_watches: u64,
}

impl Form {
    pub(crate) const FULL: Self = Self {
        name: "full",
        pods: 20_000,
        stop: Duration::from_secs(30),
        pause: Duration::from_secs(8),
        writes: 200,
        short_watches: 4,
    };

    /// The stops are still longer than what the followers' clients wait for a connection (3 s) and an answer (6 s).
    pub(crate) const SHORT: Self = Self {
        name: "short",
        pods: 2_000,
        stop: Duration::from_secs(10),
        pause: Duration::from_secs(2),
        writes: 60,
        short_watches: 2,
    };
}
