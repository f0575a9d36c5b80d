//! PURE: what a lease says, without the object around it.

use k8s_openapi::jiff::Timestamp;

/// What a lock's object says of the leader; as client-go's `LeaderElectionRecord`.
///
/// The times are for people: no decision is made by them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who leads; empty where the lease is free.
    pub holder: String,
    /// How long others are to wait after they saw this record change. 0 where the object does not say it.
    pub lease_duration_seconds: i32,
    /// When the holder became the leader, by its wall clock.
    pub acquire_time: Option<Timestamp>,
    /// When it last renewed the lease, by its wall clock. Whole microseconds.
    pub renew_time: Option<Timestamp>,
    /// How often the holder has changed. It rises with each new leader: a fencing token for what leaders write.
    pub transitions: i32,
    /// Whom a coordinated election wants as the next holder; empty for nobody.
    pub preferred_holder: String,
}

/// A record, and the version of the object that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// What it says.
    pub record: Record,
    /// The object's `resourceVersion`: an update of any other version is refused.
    pub version: String,
}

/// Cuts what a lease cannot hold: less than a microsecond.
pub(crate) fn whole_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
