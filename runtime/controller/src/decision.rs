//! PURE. What becomes of a request after an attempt: one table, which the shell applies to queue and metrics.

use std::time::Duration;

use crate::outcome::Outcome;
use crate::reconcile_error::{ErrorKind, ReconcileError};

/// How an attempt counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultLabel {
    Error,
    RequeueAfter,
    Requeue,
    Success,
}

impl ResultLabel {
    /// In the order in which the series are kept.
    pub(crate) const ALL: [Self; 4] = [Self::Error, Self::RequeueAfter, Self::Requeue, Self::Success];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Success => "success",
        }
    }
}

/// When a request comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComesBack {
    /// When something changes.
    Not,
    After(Duration),
    /// When its limiter says.
    RateLimited,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) label: ResultLabel,
    /// Its failures are forgotten, before it comes back.
    pub(crate) forget: bool,
    pub(crate) comes_back: ComesBack,
    /// It counts as a terminal error too.
    pub(crate) terminal: bool,
}

/// What becomes of a request after an attempt that ended so.
pub(crate) fn decide(ended: &Result<Outcome, ReconcileError>) -> Decision {
    let (label, forget, comes_back) = match ended {
        Err(error) => match error.kind() {
            ErrorKind::Retry => (ResultLabel::Error, false, ComesBack::RateLimited),
            ErrorKind::Terminal => (ResultLabel::Error, true, ComesBack::Not),
        },
        Ok(Outcome::RequeueAfter(delay)) => (ResultLabel::RequeueAfter, true, ComesBack::After(*delay)),
        Ok(Outcome::Requeue) => (ResultLabel::Requeue, false, ComesBack::RateLimited),
        Ok(Outcome::Done) => (ResultLabel::Success, true, ComesBack::Not),
    };
    let terminal = label == ResultLabel::Error && comes_back == ComesBack::Not;
    Decision { label, forget, comes_back, terminal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TerminalError;

    #[test]
    fn what_becomes_of_a_request_as_a_table() {
        let second = Duration::from_secs(1);
        let terminal = || ReconcileError::Failed(TerminalError::new("no").into());
        let wrapped = ReconcileError::Failed(std::io::Error::other(TerminalError::new("no")).into());
        use ComesBack::{After, Not, RateLimited};
        use ResultLabel::{Error, Requeue, RequeueAfter, Success};
        #[rustfmt::skip]
        let rows = [
            // ended                                        | counts as   | forget | comes back   | terminal
            (Ok(Outcome::Done),                               Success,      true,    Not,           false),
            (Ok(Outcome::RequeueAfter(second)),               RequeueAfter, true,    After(second), false),
            (Ok(Outcome::RequeueAfter(Duration::ZERO)),       RequeueAfter, true,    After(Duration::ZERO), false),
            (Ok(Outcome::Requeue),                            Requeue,      false,   RateLimited,   false),
            (Err(ReconcileError::Failed("no".into())),        Error,        false,   RateLimited,   false),
            (Err(terminal()),                                 Error,        true,    Not,           true),
            (Err(wrapped),                                    Error,        true,    Not,           true),
            (Err(ReconcileError::Panicked("oh".into())),      Error,        false,   RateLimited,   false),
            (Err(ReconcileError::TimedOut(second)),           Error,        false,   RateLimited,   false),
            (Err(ReconcileError::Cancelled),                  Error,        false,   RateLimited,   false),
        ];
        for (ended, label, forget, comes_back, terminal) in rows {
            let want = Decision { label, forget, comes_back, terminal };
            assert_eq!(decide(&ended), want, "{ended:?}");
        }
    }
}
