//! What an elector tells while it works: metrics, and events on its lease.

use crate::LockReference;

/// The metrics of one election. Each method does nothing by default. Called by the elector's task; a panic is caught
/// and reported.
///
/// | method | client-go's name ([`names`]) | kind | label |
/// |---|---|---|---|
/// | [`master_status`](Self::master_status) | `leader_election_master_status` | gauge, 0 or 1 | `name` |
/// | [`slowpath`](Self::slowpath) | `leader_election_slowpath_total` | counter | `name` |
#[expect(unused_variables, reason = "the defaults ignore what they are told")]
pub trait LeaderMetrics: Send + Sync {
    /// Whether this candidate leads. `name` is the lease's. Told with `false` when the elector is made.
    fn master_status(&self, name: &str, leads: bool) {}

    /// A renewal that did not read the lease first has failed.
    fn slowpath(&self, name: &str) {}
}

/// client-go's names for the metrics.
pub mod names {
    /// See [`master_status`](super::LeaderMetrics::master_status).
    pub const MASTER_STATUS: &str = "leader_election_master_status";
    /// See [`slowpath`](super::LeaderMetrics::slowpath).
    pub const SLOWPATH: &str = "leader_election_slowpath_total";
    /// The label of both.
    pub const LABEL_NAME: &str = "name";
}

/// Takes the events of an election; a recorder of `kubewire-events` does, by a closure of a line. It must not block.
pub trait LeaderEvents: Send + Sync {
    /// Of type Normal and reason `LeaderElection`; the note says `NAME became leader` or `NAME stopped leading`.
    fn leader_event(&self, lock: &LockReference, note: &str);
}

impl<F: Fn(&LockReference, &str) + Send + Sync> LeaderEvents for F {
    fn leader_event(&self, lock: &LockReference, note: &str) {
        self(lock, note);
    }
}
