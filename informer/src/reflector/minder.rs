//! Waits for a request, a read or a sleep, and minds what goes on meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;

use kubewire_indexer::Object;
use kubewire_ratelimit::Clock;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::alarm::Alarm;
use super::machine::{Machine, Rang, Step};
use super::reflector_options::ShouldResync;
use crate::ReflectorStore;

/// What is minded while a request, a read or a sleep is under way: the stop, and the machine's alarm.
pub(crate) struct Minder<S: ?Sized> {
    pub(crate) machine: Machine,
    pub(crate) clock: Clock,
    pub(crate) alarm: Alarm,
    pub(crate) stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    pub(crate) should_resync: Option<ShouldResync>,
    pub(crate) should_resync_panics: u64,
    pub(crate) store: Arc<S>,
}

pub(crate) enum Minded<T> {
    Answer(T),
    /// The alarm rang: this is to be done in place of what was under way.
    Instead(Step),
    Stopped,
}

impl<S: ?Sized> Minder<S> {
    /// Waits for `io`, and minds the stop and the alarm meanwhile.
    pub(crate) async fn mind<T, O: Object>(&mut self, io: impl Future<Output = T>) -> Minded<T>
    where
        S: ReflectorStore<O>,
    {
        let mut io = pin!(io);
        loop {
            self.alarm.set(self.machine.alarm());
            tokio::select! {
                biased;
                () = &mut self.stopped => return Minded::Stopped,
                () = self.alarm.ring() => {}
                answer = &mut io => return Minded::Answer(answer),
            }
            match self.machine.rang(self.clock.now()) {
                Rang::Nothing => {}
                Rang::Resync => self.resync(),
                Rang::Step(step) => return Minded::Instead(step),
            }
        }
    }

    fn resync<O: Object>(&mut self)
    where
        S: ReflectorStore<O>,
    {
        let wanted = self.should_resync.as_ref().is_none_or(|should_resync| {
            catch_unwind(AssertUnwindSafe(|| should_resync())).unwrap_or_else(|_| {
                self.should_resync_panics += 1;
                if self.should_resync_panics.is_power_of_two() {
                    let panics = self.should_resync_panics;
                    tracing::error!(panics, "should_resync panicked; this resync is left out");
                }
                false
            })
        });
        if wanted {
            self.store.resync();
        }
    }
}
