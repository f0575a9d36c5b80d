//! A stretch of leadership.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::local_clock::LocalClock;
use crate::sync::Mutex;

/// A stretch of leadership, from its begin to its end. Cheap to clone; it says the same to all.
///
/// It is over at a moment that is known beforehand, and which each renewal moves: so it ends in time also where nothing
/// of the elector runs any more.
#[derive(Clone)]
pub struct Term {
    shared: Arc<Shared>,
}

struct Shared {
    clock: LocalClock,
    times: Mutex<Times>,
    transitions: i32,
    /// The work is to end.
    stop: CancellationToken,
    /// Leadership is off.
    over: CancellationToken,
}

/// Guarded by `Shared::times`.
#[derive(Clone, Copy)]
struct Times {
    until: Instant,
    /// When the last renewal was sent.
    renewed: Instant,
}

impl Term {
    pub(crate) fn new(clock: LocalClock, until: Instant, renewed: Instant, transitions: i32) -> Self {
        let (stop, over) = (CancellationToken::new(), CancellationToken::new());
        Self {
            shared: Arc::new(Shared { clock, times: Mutex::new(Times { until, renewed }), transitions, stop, over }),
        }
    }

    /// Whether leadership holds at this moment. Ask before each act that only a leader may do; between the answer and the
    /// act is time in which it may end: what must never happen twice needs [`transitions`](Self::transitions) with it.
    ///
    /// Cost: a read of the clock and an uncontended lock.
    pub fn is_valid(&self) -> bool {
        !self.valid_for().is_zero()
    }

    /// For how long it holds without another renewal; zero when it is over.
    pub fn valid_for(&self) -> Duration {
        if self.shared.over.is_cancelled() {
            return Duration::ZERO;
        }
        // The clock is read after the times: a renewal between cannot make it longer than it is.
        let until = self.shared.times.lock().until;
        until.saturating_duration_since(self.shared.clock.now())
    }

    /// A token that is cancelled when the work of the leader is to end: when the elector is stopped, or leadership is
    /// over. Cancelling it has no effect on the term.
    ///
    /// After a stop the term stays valid, and is renewed, until the
    /// [work](crate::ElectorBuilder::on_started_leading) has ended.
    pub fn token(&self) -> CancellationToken {
        self.shared.stop.child_token()
    }

    /// Waits until leadership is over. It needs nothing of the elector for that. Cancel-safe.
    pub async fn ended(&self) {
        loop {
            let until = self.shared.times.lock().until;
            tokio::select! {
                biased;
                () = self.shared.over.cancelled() => return,
                () = self.shared.clock.sleep_until(until) => {}
            }
            if !self.is_valid() {
                return;
            }
        }
    }

    /// The lease's count of holders in this term. Later terms have higher numbers (unless somebody deletes the lease
    /// between two of them): a store that refuses what comes with a lower one is safe from leaders of the past.
    pub fn transitions(&self) -> i32 {
        self.shared.transitions
    }

    pub(crate) fn renew(&self, until: Instant, renewed: Instant) {
        *self.shared.times.lock() = Times { until, renewed };
    }

    pub(crate) fn renewed(&self) -> Instant {
        self.shared.times.lock().renewed
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    pub(crate) fn ask_to_stop(&self) {
        self.shared.stop.cancel();
    }

    pub(crate) fn end(&self) {
        self.shared.over.cancel();
        self.shared.stop.cancel();
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("transitions", &self.transitions())
            .field("valid_for", &self.valid_for())
            .finish_non_exhaustive()
    }
}
