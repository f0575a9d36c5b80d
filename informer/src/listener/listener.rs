//! The shell around one handler's buffer.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use kubewire_indexer::Object;
use kubewire_ratelimit::{Clock, FailureLog, Recovery};

use super::batch::Batch;
use super::buffer::{Buffer, Buffering, Garbage, Next};
use super::handler_counts::HandlerCounts;
use crate::health::Health;
use crate::latch::Latch;
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::notification::Told;
use crate::panics::panic_text;
use crate::slow_calls::{Look, SlowCalls};
use crate::sync::{AtomicBool, AtomicU64, Mutex};
use crate::{HandlerStatus, ResourceEventHandler};

/// One handler, or one subscription: what waits for it, and how it is doing.
pub(crate) struct Listener<O: Object> {
    name: String,
    /// Guards all that waits. Nothing is called, woken or dropped under it; what is shared is cloned.
    buffer: Mutex<Buffer<O>>,
    /// A resync goes to it, and so does an update that has changed nothing: what the last check said.
    due: AtomicBool,
    /// How the informer is doing.
    health: Arc<Health>,
    /// The first list is in the store, and all that was there when the listener was added is told.
    synced: Latch,
    /// It was removed, or the informer has stopped.
    closed: Latch,
    /// No call is running, and none will begin.
    ended: Latch,
    panics: AtomicU64,
    clock: Clock,
    /// What the metrics were told.
    counts: HandlerCounts,
    /// When it was found to be slow. Nothing is called under it.
    slow: Mutex<FailureLog<()>>,
    /// Whom to leave.
    listeners: Weak<Listeners<O>>,
}

impl<O: Object> Listener<O> {
    pub(crate) fn new(
        name: String,
        buffering: Buffering,
        health: Arc<Health>,
        clock: Clock,
        listeners: Weak<Listeners<O>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            buffer: Mutex::new(Buffer::new(buffering, |one, other| one.id().uid == other.id().uid)),
            due: AtomicBool::new(true),
            health,
            synced: Latch::default(),
            closed: Latch::default(),
            ended: Latch::default(),
            panics: AtomicU64::new(0),
            clock,
            counts: HandlerCounts::default(),
            slow: Mutex::default(),
            listeners,
        })
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire)
    }

    pub(crate) fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Release);
    }

    pub(crate) fn is_behind_with_resync(&self) -> bool {
        self.buffer.lock().has_resyncs_left()
    }

    /// Puts those that are for it into the buffer in one go: one lock, and one wake, however many there are.
    pub(crate) fn push(&self, mut told: Vec<Told<O>>, now: Instant) {
        if !self.is_due() {
            told.retain(|told| !told.resync);
        }
        self.push_batch(Batch::Own(told.into_iter()), now);
    }

    /// As [`push`](Self::push), of what goes to others as well.
    pub(crate) fn push_shared(&self, told: Arc<Vec<Told<O>>>, now: Instant) {
        self.push_batch(Batch::Shared { told, next: 0, due: self.is_due() }, now);
    }

    fn push_batch(&self, batch: Batch<O>, now: Instant) {
        let (waker, garbage) = self.buffer.lock().push(batch, now);
        drop(garbage);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Everything that was there when the listener was added has been pushed.
    pub(crate) fn join(&self) {
        self.buffer.lock().join();
        self.check_synced();
    }

    /// To be called whenever one of the conditions may have come true.
    pub(crate) fn check_synced(&self) {
        if !self.synced.is_set() && self.health.store_synced.is_set() && self.buffer.lock().has_told_initial() {
            self.synced.set();
        }
    }

    /// Throws away what waits and takes nothing more. What is thrown away is for the caller to drop.
    #[must_use = "it is to be dropped when everybody is closed: an object may panic by it"]
    pub(crate) fn close(&self) -> Garbage<O> {
        // Once that is set, all of the first list has been pushed to whoever had joined.
        let is_all_pushed = self.health.store_synced.is_set();
        let (waker, garbage) = self.buffer.lock().close(is_all_pushed);
        self.closed.set();
        if let Some(waker) = waker {
            waker.wake();
        }
        garbage
    }

    /// No call is running, and none will begin.
    pub(crate) fn end(&self) {
        self.ended.set();
    }

    /// The call for the notification that was given out last has returned.
    fn told(&self) {
        self.buffer.lock().told();
        self.check_synced();
    }

    /// Gives out the next notification; the one before counts as told. `None` once the listener is removed or
    /// the informer has stopped.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Told<O>>> {
        let now = self.clock.now();
        let mut buffer = self.buffer.lock();
        let next = buffer.next(now);
        let former = match next {
            Next::Empty => buffer.wait(cx.waker().clone()),
            _ => None,
        };
        drop(buffer);
        drop(former);
        self.check_synced();
        match next {
            Next::Told(told, garbage) => {
                drop(garbage);
                Poll::Ready(Some(told))
            }
            Next::Empty => Poll::Pending,
            Next::Closed => Poll::Ready(None),
        }
    }

    /// Calls the handler until the listener is removed or the informer stops.
    pub(crate) fn run(
        self: Arc<Self>,
        mut handler: Box<dyn ResourceEventHandler<O>>,
    ) -> impl Future<Output = ()> + Send + 'static {
        // Also where the runtime is shut down and drops this future, before its first poll too.
        let end = EndOnDrop(Arc::clone(&self));
        async move {
            let _end = end;
            let mut panics = FailureLog::new();
            while let Some(told) = poll_fn(|cx| self.poll_next(cx)).await {
                self.call(&mut *handler, told, &mut panics);
                // The next one counts this one as told.
                if !tokio::task::coop::has_budget_remaining() {
                    self.told();
                }
                tokio::task::coop::consume_budget().await;
            }
            let_go(handler, &self.name, &self.health.resource);
            if panics.left_out() > 0 {
                let left_out = panics.left_out();
                tracing::error!(handler = %self.name, left_out, "more calls of this handler panicked than were logged");
            }
        }
    }

    fn call(
        &self,
        handler: &mut dyn ResourceEventHandler<O>,
        Told { key, notification, .. }: Told<O>,
        panics: &mut FailureLog<()>,
    ) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.handle(notification))) {
            self.panics.fetch_add(1, Ordering::Relaxed);
            let Some(left_out) = panics.failed((), self.clock.now()) else { return };
            let (resource, text) = (&*self.health.resource, panic_text(&*panic));
            tracing::error!(handler = %self.name, resource, %key, panic = text, left_out, "an event handler panicked; its next event follows");
        } else if panics.is_failing()
            && let Some(Recovery { failures, left_out, .. }) = panics.recovered(self.clock.now())
        {
            let resource = &*self.health.resource;
            tracing::info!(handler = %self.name, resource, panics = failures, left_out, "a call of the handler has returned again");
        }
    }

    /// Looks whether it has been at one notification for too long, and says so in the log.
    pub(crate) fn look(&self, slow_calls: &mut SlowCalls, now: Instant) {
        let (busy_since, backlog) = {
            let buffer = self.buffer.lock();
            (buffer.busy_since(), buffer.len())
        };
        let resource = &*self.health.resource;
        match slow_calls.look(busy_since, now) {
            Look::Slow(busy) => {
                let verdict = self.slow.lock().failed((), now);
                if let Some(left_out) = verdict {
                    let busy_seconds = busy.as_secs();
                    tracing::warn!(
                        handler = %self.name, resource, busy_seconds, backlog, left_out,
                        "a handler does not come back from one notification, the others wait for it: let it only add to a queue, or give it a thread of its own"
                    );
                }
            }
            Look::Fine => {
                let recovery = {
                    let mut slow = self.slow.lock();
                    if slow.is_failing() { slow.recovered(now) } else { None }
                };
                if recovery.is_some() {
                    tracing::info!(handler = %self.name, resource, backlog, "the handler goes on");
                }
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells the metrics how it is doing. One at a time.
    pub(crate) fn tell(&self, metrics: &Metrics) {
        self.counts.tell(&self.status(), metrics);
    }
}

struct EndOnDrop<O: Object>(Arc<Listener<O>>);

impl<O: Object> Drop for EndOnDrop<O> {
    fn drop(&mut self) {
        let garbage = self.0.close();
        self.0.end();
        drop(garbage);
    }
}

/// Drops a handler, which may panic by it.
pub(crate) fn let_go<O>(handler: Box<dyn ResourceEventHandler<O>>, name: &str, resource: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(handler))) {
        let text = panic_text(&*panic);
        tracing::error!(handler = name, resource, panic = text, "an event handler panicked when it was dropped");
    }
}

/// A listener of any object, for [`Registration`](crate::Registration).
pub(crate) trait AnyListener: Send + Sync {
    fn health(&self) -> &Health;
    fn synced(&self) -> &Latch;
    fn ended(&self) -> &Latch;
    fn closed(&self) -> &Latch;
    /// Begins no new call, and leaves the informer.
    fn remove(&self);
    fn status(&self) -> HandlerStatus;
}

impl<O: Object> AnyListener for Listener<O> {
    fn health(&self) -> &Health {
        &self.health
    }

    fn synced(&self) -> &Latch {
        &self.synced
    }

    fn ended(&self) -> &Latch {
        &self.ended
    }

    fn closed(&self) -> &Latch {
        &self.closed
    }

    fn remove(&self) {
        let garbage = self.close();
        match self.listeners.upgrade() {
            Some(listeners) => listeners.remove(self),
            None => self.end(),
        }
        drop(garbage);
    }

    fn status(&self) -> HandlerStatus {
        let now = self.clock.now();
        let buffer = self.buffer.lock();
        HandlerStatus {
            name: self.name.clone(),
            backlog: buffer.len(),
            busy_for: buffer.busy_since().map(|since| now.saturating_duration_since(since)),
            told: buffer.count_told(),
            coalesced: buffer.count_coalesced(),
            panics: self.panics.load(Ordering::Relaxed),
            synced: self.synced.is_set(),
        }
    }
}
