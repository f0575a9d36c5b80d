//! Why a term has ended.

use std::fmt;

/// Why a term has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndCause {
    /// The elector was stopped.
    Stopped,
    /// No renewal worked for the renew deadline.
    RenewDeadline,
    /// Somebody else holds the lease: it was written by force, or this process stood still for too long.
    Taken {
        /// The new holder.
        by: String,
    },
    /// Somebody else emptied the lease. That is how a person asks for another leader.
    Emptied,
    /// The lease was renewed under our identity, but not by us: two processes have the same identity.
    SharedIdentity,
    /// The leading work panicked.
    WorkPanicked,
    /// The future of [`run`](crate::Elector::run) was dropped.
    Dropped,
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the elector was stopped"),
            Self::RenewDeadline => f.write_str("the lease could not be renewed in time"),
            Self::Taken { by } => write!(f, "{by:?} holds the lease"),
            Self::Emptied => f.write_str("somebody emptied the lease"),
            Self::SharedIdentity => {
                f.write_str("another process has the same identity: give each candidate one of its own")
            }
            Self::WorkPanicked => f.write_str("the leading work panicked"),
            Self::Dropped => f.write_str("the elector's run was dropped"),
        }
    }
}
