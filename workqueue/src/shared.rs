//! The shell around the rules: one lock, and what has to be done once it is let go.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use hashbrown::DefaultHashBuilder;
use kubewire_ratelimit::Clock;

use crate::aftermath::Aftermath;
use crate::drains::Drains;
use crate::guard::Guard;
use crate::metrics::QueueMetrics;
use crate::order::Order;
use crate::state::{HandOut, State};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use crate::waiters::Waiters;

/// What all handles of a queue share.
pub(crate) struct Shared<K> {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    /// Keys are hashed outside the lock.
    pub(crate) hasher: DefaultHashBuilder,
    pub(crate) metrics: Option<Box<dyn QueueMetrics>>,
    /// Whether there are delays: whether to read the clock before locking. A hint; set under the lock.
    delays: AtomicBool,
    /// The only lock of a queue. Under it no waker is woken, no metric told, no key hashed or dropped. Keys are compared
    /// and cloned, the order is asked, and an add reads the kernel's last tick.
    inner: Mutex<Inner<K>>,
}

/// Guarded by `Shared::inner`.
pub(crate) struct Inner<K> {
    pub(crate) state: State<K>,
    pub(crate) waiters: Waiters,
    pub(crate) drains: Drains,
}

/// What a get that waits learns when it looks.
pub(crate) enum Look<K: Eq + Clone> {
    /// A key is handed out. The get has left the line.
    Got(Guard<K>),
    /// Nothing waits, and nothing will. The get has left the line.
    ShutDown,
    /// Nothing waits: the get is in line and will be woken. Where there is a moment it also has to look again by itself
    /// when that comes.
    Wait(Option<Instant>),
}

impl<K: Eq + Clone> Shared<K> {
    pub(crate) fn new(
        name: String,
        clock: Clock,
        metrics: Option<Box<dyn QueueMetrics>>,
        order: Box<dyn Order<K>>,
        prioritized: bool,
    ) -> Self {
        let (waiters, drains) = (Waiters::default(), Drains::default());
        let mut state = State::new(order);
        if prioritized {
            state.merge();
            if metrics.is_some() {
                state.gather_moves();
            }
        }
        let inner = Inner { state, waiters, drains };
        let hasher = DefaultHashBuilder::default();
        Self { name, clock, hasher, metrics, delays: AtomicBool::new(false), inner: Mutex::new(inner) }
    }

    /// Begins an operation that needs the time: locks, and adds the delayed keys that are due by now.
    pub(crate) fn begin(&self) -> Session<'_, K> {
        self.begin_at(self.clock.now())
    }

    /// As [`begin`](Self::begin), where the clock was read just now.
    pub(crate) fn begin_at(&self, now: Instant) -> Session<'_, K> {
        self.promoted(self.inner.lock(), now)
    }

    /// Begins an operation that needs the time for ages alone: where there are no delays and no metrics, some
    /// milliseconds do not matter.
    #[inline]
    pub(crate) fn begin_get(&self) -> Session<'_, K> {
        if self.is_timed() {
            return self.begin();
        }
        self.begin_with(Now::Is(self.clock.coarse_now()))
    }

    /// As [`begin_get`](Self::begin_get), for an operation that mostly needs no time: the clock is read when it is asked.
    #[inline]
    pub(crate) fn begin_untimed(&self) -> Session<'_, K> {
        if self.is_timed() {
            return self.begin();
        }
        self.begin_with(Now::LastTick(&self.clock))
    }

    #[inline(always)]
    fn begin_with<'a>(&'a self, now: Now<'a>) -> Session<'a, K> {
        let inner = self.inner.lock();
        if inner.state.has_delayed() {
            // The first delay has come between the look and the lock.
            return self.promoted(inner, self.clock.now());
        }
        self.session(inner, now)
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.metrics.is_some() || self.delays.load(Relaxed)
    }

    /// It is `now`: adds the delayed keys that are due.
    fn promoted<'a>(&'a self, inner: MutexGuard<'a, Inner<K>>, now: Instant) -> Session<'a, K> {
        let mut session = self.session(inner, Now::Is(now));
        let adds = session.inner.state.promote(now);
        if let Some(report) = session.after.report() {
            report.adds = adds;
        }
        self.note_delays(&session);
        session
    }

    // A session is put together once, in its place, when all is known: moving one costs more than it does.
    #[inline(always)]
    fn session<'a>(&'a self, inner: MutexGuard<'a, Inner<K>>, now: Now<'a>) -> Session<'a, K> {
        Session { now, inner, after: Aftermath::new(self.metrics.as_deref()) }
    }

    /// Notes whether there are delays.
    pub(crate) fn note_delays(&self, session: &Session<'_, K>) {
        let delays = session.inner.state.has_delayed();
        if delays != self.delays.load(Relaxed) {
            self.delays.store(delays, Relaxed);
        }
    }

    /// A get looks for a key; it stands at `place` where it is in line already. Never waits.
    pub(crate) fn look(self: &Arc<Self>, place: &mut Option<usize>, waker: &Waker) -> Look<K> {
        let mut session = self.begin_get();
        let former = place.and_then(|place| session.inner.waiters.hush(place));
        // The first in line comes first, though it may be another that looks because a moment has come.
        session.call();
        let hand_out = session.take(*place);
        let Inner { state, waiters, .. } = &mut *session.inner;
        let look = if let Some(hand_out) = hand_out {
            place.take().into_iter().for_each(|place| waiters.leave(place));
            Look::Got(Guard::new(self, &mut session, hand_out))
        } else if state.is_shutting_down() {
            place.take().into_iter().for_each(|place| waiters.leave(place));
            Look::ShutDown
        } else {
            let place = *place.get_or_insert_with(|| waiters.join());
            waiters.stay(place, waker.clone());
            Look::Wait(waiters.keep_time(place, state.next_due()))
        };
        drop(session);
        drop(former);
        look
    }
}

/// The present moment of an operation.
#[derive(Clone, Copy)]
enum Now<'a> {
    /// It was read when the operation began.
    Is(Instant),
    /// It is read when somebody asks, and is exact to some milliseconds.
    LastTick(&'a Clock),
}

impl Now<'_> {
    #[inline]
    fn read(self) -> Instant {
        match self {
            Self::Is(now) => now,
            Self::LastTick(clock) => clock.coarse_now(),
        }
    }
}

/// One operation on a queue: holds the lock, and gathers what has to be done after it. When it is dropped, also by a
/// panic, those in line are called for the keys that wait, the drains are told, the lock is let go, and then the rest
/// is done: fields are dropped in their order.
pub(crate) struct Session<'a, K: Eq + Clone> {
    now: Now<'a>,
    pub(crate) inner: MutexGuard<'a, Inner<K>>,
    pub(crate) after: Aftermath<'a>,
}

impl<K: Eq + Clone> Session<'_, K> {
    /// The present moment, as of the beginning of the operation.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.now.read()
    }

    /// Adds a key, which is taken unless the queue has it already.
    #[inline(always)]
    pub(crate) fn add(&mut self, hash: u64, key: &mut Option<K>, priority: i32) {
        let now = self.now;
        let accepted = self.inner.state.add(hash, key, priority, || now.read());
        if let Some(report) = self.after.report() {
            report.adds += u64::from(accepted);
        }
    }

    /// Hands out a key that is not reserved for another than who stands at `place`; [`copy_key`](Self::copy_key) gives it.
    #[inline(always)]
    pub(crate) fn take(&mut self, place: Option<usize>) -> Option<HandOut> {
        let now = self.now();
        let Inner { state, waiters, .. } = &mut *self.inner;
        let for_others = waiters.called() - usize::from(place.is_some_and(|place| waiters.is_called(place)));
        let may_take = state.is_shutting_down() || state.len() > for_others;
        let hand_out = if may_take { state.get(now) } else { None };
        if let Some(report) = self.after.report() {
            report.waited = hand_out.as_ref().map(|hand_out| now.saturating_duration_since(hand_out.since));
        }
        hand_out
    }

    /// A copy of the key that was just handed out, which is made where it is to be. Should copying panic, nothing is
    /// handed out.
    #[inline(always)]
    pub(crate) fn copy_key(&mut self, hand_out: HandOut) -> K {
        /// Takes the key back when dropped.
        struct Copying<'s, 'a, K: Eq + Clone>(&'s mut Session<'a, K>, HandOut);

        impl<K: Eq + Clone> Drop for Copying<'_, '_, K> {
            fn drop(&mut self) {
                self.0.inner.state.take_back(self.1);
                self.0.after.report().into_iter().for_each(|report| report.waited = None);
            }
        }

        let copying = Copying(self, hand_out);
        let key = copying.0.inner.state.key(&hand_out).clone();
        std::mem::forget(copying);
        key
    }

    /// Finishes a key by `finish`, which tells since when it was processed, as this does.
    #[inline(always)]
    pub(crate) fn finish(&mut self, finish: impl FnOnce(&mut State<K>) -> Option<Instant>) -> Option<Instant> {
        let since = finish(&mut self.inner.state);
        let now = self.now;
        if let Some(report) = self.after.report() {
            let now = now.read();
            report.worked = since.map(|since| now.saturating_duration_since(since));
        }
        since
    }

    /// Calls those in line for the keys that wait.
    fn call(&mut self) {
        let Inner { state, waiters, .. } = &mut *self.inner;
        while !waiters.is_empty() && state.len() > waiters.called() {
            self.after.wake(waiters.call_first());
        }
    }

    /// Calls those in line, has one of them keep the time, ends the drains that are over.
    fn settle(&mut self) {
        self.call();
        let Inner { state, waiters, drains, .. } = &mut *self.inner;
        if !waiters.is_empty() {
            self.after.wake(waiters.appoint(state.next_due()));
        }
        if !drains.is_empty() {
            self.after.wake(drains.settle(state.processing(), state.len()));
        }
    }
}

impl<K: Eq + Clone> Drop for Session<'_, K> {
    #[inline]
    fn drop(&mut self) {
        if self.inner.is_waited_for() {
            self.settle();
        }
        if let Some(report) = self.after.report() {
            report.moves = self.inner.state.take_moves();
        }
    }
}

impl<K: Eq + Clone> Inner<K> {
    /// Whether anybody stands in line or drains.
    #[inline]
    fn is_waited_for(&self) -> bool {
        !self.waiters.is_empty() || !self.drains.is_empty()
    }
}
