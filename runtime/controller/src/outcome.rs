//! What becomes of a request that was reconciled.

use std::time::Duration;

/// What becomes of a request that was reconciled without an error.
///
/// An error is the other half of a reconciler's `Result`: the request is tried again with growing delays, unless the error
/// is [terminal](crate::TerminalError). So there is nothing that says two things at once, as controller-runtime's `Result`
/// with an error beside can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing more to do until something changes. Its failures are forgotten.
    #[default]
    Done,
    /// Look again after so long, at the latest: a change that comes before brings it back earlier. Zero: at once. Its
    /// failures are forgotten.
    RequeueAfter(Duration),
    /// Look again after a delay that grows each time, as after an error, but without one. Its failures are kept: this adds
    /// to them.
    Requeue,
}

impl Outcome {
    /// Look again after so many seconds.
    pub const fn requeue_after_secs(seconds: u64) -> Self {
        Self::RequeueAfter(Duration::from_secs(seconds))
    }
}
