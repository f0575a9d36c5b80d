//! A worker of a controller: takes a request, reconciles it, and applies what becomes of it.

use std::any::Any;
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
        loop {
            // The stop comes first, so that no attempt begins after it.
            let request = tokio::select! {
                biased;
                () = cx.stop.cancelled() => return,
                request = self.queue.get() => request,
            };
            let Some(request) = request else { return };
            self.process(request, &cx).await;
        }
    }

    /// One attempt, and what becomes of its request. The request is done when this returns or unwinds.
    async fn process(&self, request: Guard<R>, cx: &RunContext) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let _active = self.series.active();
        let began = self.clock.now();
        let deadline = self.settings.reconcile_timeout.map(|timeout| after(began, timeout));
        let failures = self.queue.queue().num_requeues(&request);
        let attempt = Attempt::new(request.priority(), failures, deadline, cx.stop.clone());
        // Of this level, so that an error says whose it is under any filter.
        let span = tracing::error_span!(
            "reconcile",
            controller = self.name,
            request = ?request.key(),
            reconcile_id = %attempt.id(),
        );
        let ended = self.attempt(request.key().clone(), &attempt, cx).instrument(span.clone()).await;
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
        span.in_scope(|| self.apply(&request, ended, attempt.requeue_priority()));
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
            self.queue.queue().forget(request);
        }
        let request = request.key().clone();
        let delay = match decision.comes_back {
            ComesBack::Not => None,
            ComesBack::After(delay) => {
                self.queue.add_after(request, delay, priority);
                Some(delay)
            }
            ComesBack::RateLimited => Some(self.queue.add_rate_limited(request, Duration::MAX, priority)),
        };
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
