//! PURE. What the stages are told, and what they say.

use super::MemberId;
use crate::Group;

/// How something came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    /// By an error or a panic.
    Failed,
}

/// The times that are kept while it stops, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// For what is in flight to end by itself.
    Grace,
    /// For what was cancelled to end.
    Cancel,
    /// For what was aborted to be gone, and for the lease to be given up.
    Abort,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A member says that it is ready.
    Ready(MemberId),
    /// A member will not become ready.
    NotReady,
    /// A member's task has ended.
    Ended(MemberId, Ending),
    /// A member's warm-up has ended.
    WarmedUp(MemberId, Ending),
    /// This replica leads.
    Elected,
    /// The elector has ended, asked or not.
    ElectorEnded,
    /// The user wants it to end.
    Stop,
    /// The time is over.
    TimeOver(Timer),
}

/// What the shell must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run this member, and ask whether it is ready.
    Launch(MemberId),
    /// Run the warm-up of this member.
    WarmUp(MemberId),
    /// Try to lead.
    Elect,
    /// All that runs without leading is launched.
    SayStarted,
    /// This replica leads, and what was there for it is launched.
    SayElected,
    /// All that is launched is ready.
    SaySynced,
    /// Keep this time; one before it counts no more.
    Arm(Timer),
    /// The members of this group shall take no new work.
    StopGroup(Group),
    /// So shall warm-ups.
    StopWarmUps,
    /// Give up leading.
    StopElector,
    /// All shall give up what they are at.
    CancelAll,
    /// End what has not ended, without asking. What was aborted is told as ended.
    Abort,
    /// All is over.
    Finish,
}
