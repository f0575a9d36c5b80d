//! The future that waits for a moment of a clock.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::clock::Manual;

/// Waits for a moment; made by [`Clock::sleep_until`](crate::Clock::sleep_until).
///
/// Cancel-safe. Cost: for the system's clock one allocation and one entry in tokio's timer wheel, both at the first
/// poll that finds the moment still to come.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    due: Instant,
    timer: Timer,
}

enum Timer {
    #[cfg(not(loom))]
    System(Option<Pin<Box<tokio::time::Sleep>>>),
    /// Under loom there is no timer but a manual clock's: the system's never ends.
    #[cfg(loom)]
    System,
    Manual {
        manual: Arc<Manual>,
        /// Our entry among the clock's sleepers, once there is one.
        id: Option<u64>,
    },
}

impl Sleep {
    pub(crate) fn system(due: Instant) -> Self {
        #[cfg(not(loom))]
        let timer = Timer::System(None);
        #[cfg(loom)]
        let timer = Timer::System;
        Self { due, timer }
    }

    pub(crate) fn manual(manual: Arc<Manual>, due: Instant) -> Self {
        Self { due, timer: Timer::Manual { manual, id: None } }
    }

    /// The moment that it waits for.
    pub fn due(&self) -> Instant {
        self.due
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match &mut this.timer {
            #[cfg(not(loom))]
            Timer::System(timer) => {
                let due = tokio::time::Instant::from_std(this.due);
                timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due))).as_mut().poll(cx)
            }
            #[cfg(loom)]
            Timer::System => Poll::Pending,
            Timer::Manual { manual, id } => {
                if manual.wake_at(this.due, id, cx.waker()) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Timer::Manual { manual, id: Some(id) } = &self.timer {
            manual.forget(self.due, *id);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("due", &self.due).finish_non_exhaustive()
    }
}
