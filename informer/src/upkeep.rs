//! What an informer does from time to time.

use std::sync::Arc;
use std::time::Instant;

use kubewire_indexer::Object;

use crate::core::Core;
use crate::metrics::{Metrics, REFRESH_PERIOD};
use crate::reflector::alarm::Alarm;
use crate::slow_calls::SlowCalls;

/// The alarm of what is done from time to time, and what for.
pub(crate) struct Upkeep {
    pub(crate) alarm: Alarm,
    pub(crate) slow_calls: SlowCalls,
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// When to tell the metrics; never where there are none.
    refresh_at: Option<Instant>,
}

impl Upkeep {
    pub(crate) fn new<O: Object>(core: &Core<O>) -> Self {
        let metrics = core.health.metrics();
        let refresh_at = metrics.is_some().then(|| core.clock.now());
        Self {
            alarm: Alarm::new(core.clock.clone()),
            slow_calls: SlowCalls::new(core.slow_handler_after),
            metrics,
            refresh_at,
        }
    }

    pub(crate) fn set_alarm(&mut self) {
        self.alarm.set([self.slow_calls.alarm(), self.refresh_at].into_iter().flatten().min());
    }

    pub(crate) fn rang<O: Object>(&mut self, core: &Core<O>) {
        core.listeners.look(&mut self.slow_calls);
        let now = core.clock.now();
        if self.refresh_at.is_some_and(|at| at <= now) {
            self.refresh_at = Some(now + REFRESH_PERIOD);
            core.refresh_metrics();
        }
    }
}
