//! What the metrics know of one handler.

use crate::sync::Mutex;

use crate::HandlerStatus;
use crate::metrics::Metrics;

/// The counts of a handler that the metrics were told of last.
#[derive(Debug, Default)]
pub(crate) struct HandlerCounts {
    /// Nothing is called under it.
    told: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u64,
    coalesced: u64,
    panics: u64,
}

impl HandlerCounts {
    /// Tells the metrics how the handler is doing, and what was added to its counts since the last time.
    pub(crate) fn tell(&self, status: &HandlerStatus, metrics: &Metrics) {
        let counts = Counts { calls: status.told, coalesced: status.coalesced, panics: status.panics };
        let more = {
            let mut told = self.told.lock();
            let more = Counts {
                calls: counts.calls - told.calls,
                coalesced: counts.coalesced - told.coalesced,
                panics: counts.panics - told.panics,
            };
            *told = counts;
            more
        };
        metrics.tell(|metrics| {
            metrics.pending_notifications(&status.name, status.backlog as u64);
            metrics.handler_busy(&status.name, status.busy_for.unwrap_or_default());
            metrics.handler_notifications(&status.name, more.calls);
            metrics.handler_coalesced(&status.name, more.coalesced);
            metrics.handler_panics(&status.name, more.panics);
        });
    }
}
