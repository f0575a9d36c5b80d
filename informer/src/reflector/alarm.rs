//! A timer that can be set again and again.

use std::time::Instant;

use kubewire_ratelimit::{Clock, Sleep};

/// Rings at a moment that moves. It may ring early after its moment was put off: whoever set it looks at the clock
/// then, and sets it anew. So a deadline that moves with each event costs no timer for each event.
pub(crate) struct Alarm {
    clock: Clock,
    sleep: Option<Sleep>,
}

impl Alarm {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, sleep: None }
    }

    /// Rings at `due` at the latest; never where there is no such moment.
    pub(crate) fn set(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return self.sleep = None };
        if self.sleep.as_ref().is_none_or(|sleep| due < sleep.due()) {
            self.sleep = Some(self.clock.sleep_until(due));
        }
    }

    /// Waits for the ring. Cancel-safe.
    pub(crate) async fn ring(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.await,
            None => std::future::pending().await,
        }
        self.sleep = None;
    }
}
