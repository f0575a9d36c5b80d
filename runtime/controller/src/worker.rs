//! A worker of a controller: takes a request, reconciles it, and applies what becomes of it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use kubewire_ratelimit::clock::after;
use kubewire_workqueue::Guard;
use tracing::Instrument;

use crate::attempt::Attempt;
use crate::controller::Inner;
use crate::decision::{ComesBack, decide};
use crate::outcome::Outcome;
use crate::panic_text::panic_text;
use crate::reconcile_error::ReconcileError;
use crate::request::RequestKey;
use crate::runnable::RunContext;

impl<R: RequestKey> Inner<R> {
    /// A worker.
    pub(crate) async fn work(self: Arc<Self>, cx: RunContext) {
        let mut pause = FIRST_PAUSE;
        loop {
            // The stop comes first, so that no attempt begins after it.
            let got = tokio::select! {
                biased;
                () = cx.stop.cancelled() => return,
                got = AssertUnwindSafe(self.queue.get()).catch_unwind() => got,
            };
            match got {
                Ok(Some(request)) => {
                    pause = FIRST_PAUSE;
                    self.process(&request, &cx).await;
                    // The key's Drop is the user's. It is done all the same.
                    self.own_code("its Drop, when it was done", || drop(request));
                }
                Ok(None) => return,
                Err(panic) => {
                    self.own_code_panicked("its Clone: it waits on, as the last", panic);
                    // It may be all that waits.
                    let next = after(self.clock.now(), pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    if cx.stop.run_until_cancelled(self.clock.sleep_until(next)).await.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Calls what calls code of a request's own type. A panic is counted and told, and answered by `None`; a controller that
    /// does not recover ends by it.
    fn own_code<T>(&self, what: &str, call: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(call)).map_err(|panic| self.own_code_panicked(what, panic)).ok()
    }

    fn own_code_panicked(&self, what: &str, panic: Box<dyn Any + Send>) {
        self.series.panics.inc();
        let text = panic_text(&*panic);
        tracing::error!(controller = self.name, panic = text, "code of a request's own type panicked: {what}");
        if !self.settings.recover_panic {
            resume_unwind(panic);
        }
    }

    /// One attempt, and what becomes of its request.
    async fn process(&self, request: &Guard<R>, cx: &RunContext) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let _active = self.series.active();
        let began = self.clock.now();
        let deadline = self.settings.reconcile_timeout.map(|timeout| after(began, timeout));
        let taken = || (self.queue.queue().num_requeues(request), request.key().clone());
        let (failures, copy) = match catch_unwind(AssertUnwindSafe(taken)) {
            Ok((failures, copy)) => (failures, Ok(copy)),
            Err(panic) => (0, Err(panic)),
        };
        let attempt = Attempt::new(request.priority(), failures, deadline, cx.stop.clone());
        // Of this level, so that an error says whose it is under any filter.
        let span = tracing::error_span!(
            "reconcile",
            controller = self.name,
            request = ?Shown(request.key()),
            reconcile_id = %attempt.id(),
        );
        let ended = match copy {
            Ok(copy) => self.attempt(copy, &attempt, cx).instrument(span.clone()).await,
            Err(panic) => Err(panic),
        };
        let now = self.clock.now();
        self.series.took(now.saturating_duration_since(began));
        if deadline.is_some_and(|deadline| now >= deadline) {
            self.series.timeouts.inc();
        }
        let ended = ended.unwrap_or_else(|panic| {
            self.series.panics.inc();
            if !self.settings.recover_panic {
                resume_unwind(panic);
            }
            Err(ReconcileError::Panicked(panic_text(&*panic)))
        });
        span.in_scope(|| self.apply(request, ended, attempt.requeue_priority()));
    }

    /// The outer error is a panic.
    async fn attempt(
        &self,
        request: R,
        attempt: &Attempt,
        cx: &RunContext,
    ) -> Result<Result<Outcome, ReconcileError>, Box<dyn Any + Send>> {
        let reconcile = attempt.clone().scope(self.reconciler.reconcile_boxed(request, attempt.clone()));
        let mut reconcile = Box::pin(AssertUnwindSafe(reconcile).catch_unwind());
        let time_is_up = async {
            match attempt.deadline() {
                Some(deadline) => self.clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            ended = &mut reconcile => ended.map(|ended| ended.map_err(ReconcileError::Failed)),
            () = cx.cancel.cancelled() => Ok(Err(ReconcileError::Cancelled)),
            () = time_is_up => {
                Ok(Err(ReconcileError::TimedOut(self.settings.reconcile_timeout.unwrap_or_default())))
            }
        };
        // What it owns is the user's, and may panic.
        if catch_unwind(AssertUnwindSafe(|| drop(reconcile))).is_err() {
            tracing::error!("what the reconciler held panicked when it was dropped");
        }
        ended
    }

    /// Applies to queue and metrics what becomes of the request. An error is the user's: its chain, its text and its end may
    /// panic, and cost no request.
    fn apply(&self, request: &Guard<R>, ended: Result<Outcome, ReconcileError>, priority: i32) {
        let decision = catch_unwind(AssertUnwindSafe(|| decide(&ended)));
        let decision = decision.unwrap_or_else(|_| decide(&Err(ReconcileError::Panicked(String::new()))));
        self.series.count(decision.label);
        if decision.forget {
            self.own_code("when its failures were forgotten", || self.queue.queue().forget(request));
        }
        let delay = self.requeue(request, decision.comes_back, priority);
        if ended.is_err() {
            self.series.errors.inc();
        }
        if decision.terminal {
            self.series.terminal_errors.inc();
        }
        if catch_unwind(AssertUnwindSafe(|| tell(ended, delay, decision.terminal))).is_err() {
            tracing::error!(?delay, "failed with an error that panicked when it was told");
        }
    }

    /// Has a request come back; says after what time.
    fn requeue(&self, request: &Guard<R>, comes_back: ComesBack, priority: i32) -> Option<Duration> {
        let add = || match comes_back {
            ComesBack::Not => None,
            ComesBack::After(delay) => {
                self.queue.add_after(request.key().clone(), delay, priority);
                Some(delay)
            }
            ComesBack::RateLimited => Some(self.queue.add_rate_limited(request.key().clone(), Duration::MAX, priority)),
        };
        self.own_code("when it was to come back", add).unwrap_or_else(|| {
            // Without its limiter, whose code it may have been.
            let add = || self.queue.add_after(request.key().clone(), LONGEST_PAUSE, priority);
            self.own_code("it is lost until it is added again", add).map(|()| LONGEST_PAUSE)
        })
    }
}

/// How long a worker leaves a request alone that cannot be taken: doubled each time, as long as it takes no other.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A request as its own `Debug` shows it, where that does not panic.
struct Shown<'a, R>(&'a R);

impl<R: fmt::Debug> fmt::Debug for Shown<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        catch_unwind(AssertUnwindSafe(|| self.0.fmt(f))).unwrap_or_else(|_| f.write_str("(its Debug panicked)"))
    }
}

/// Logs how an attempt ended.
fn tell(ended: Result<Outcome, ReconcileError>, delay: Option<Duration>, is_terminal: bool) {
    match &ended {
        Ok(outcome) => tracing::debug!(?outcome, ?delay, "reconciled"),
        Err(error @ ReconcileError::Cancelled) => tracing::warn!(%error, "gave up"),
        Err(error) if is_terminal => tracing::error!(%error, "failed, and is not tried again"),
        Err(error) => tracing::error!(%error, delay = delay.map(tracing::field::debug), "failed, and is tried again"),
    }
}
