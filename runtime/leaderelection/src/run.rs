//! One run of an elector: from the first request to the end of leadership.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use kubewire_ratelimit::FailureLog;
use kubewire_ratelimit::clock::after;
use tokio_util::sync::CancellationToken;

use crate::survive::{message, survive};
use crate::sync::{AbortOnDropHandle, Handle, JoinError};
use crate::{Election, ElectionError, Elector, EndCause, Lock, LockError, Notice, Outcome, Request, Step, Term};

/// How long aborted work may take to come to an await.
const ABORT_TIME: Duration = Duration::from_secs(1);

/// Everything that a run owns. Dropping it ends leadership.
pub(crate) struct Run<'a> {
    elector: &'a Elector,
    /// `None` once it was given back.
    election: Option<Election>,
    /// The request whose answer is awaited, by its ticket.
    in_flight: Option<(u64, BoxFuture<'static, Answer>)>,
    term: Option<Term>,
    work: Option<AbortOnDropHandle<()>>,
    /// The work is to end before this moment; then it is aborted.
    work_deadline: Option<Instant>,
    work_is_aborted: bool,
    end: Option<EndCause>,
    failures: FailureLog<&'static str>,
}

/// What came of a request, and the error for people.
type Answer = (Outcome, Option<LockError>);

impl<'a> Run<'a> {
    pub(crate) fn new(elector: &'a Elector, mut election: Election) -> Self {
        election.contend();
        Self {
            elector,
            election: Some(election),
            in_flight: None,
            term: None,
            work: None,
            work_deadline: None,
            work_is_aborted: false,
            end: None,
            failures: FailureLog::new(),
        }
    }

    pub(crate) async fn drive(mut self, stop: &CancellationToken) -> Result<(), ElectionError> {
        if stop.is_cancelled() {
            return Ok(());
        }
        let mut stopped = false;
        while let Some(wake) = self.step() {
            let clock = self.elector.clock.clone();
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stopped => {
                    stopped = true;
                    self.stop();
                }
                Some(answer) = OptionFuture::from(self.in_flight.as_mut().map(|(_, request)| request)) => {
                    self.answered(answer);
                }
                Some(ended) = OptionFuture::from(self.work.as_mut()) => self.work_ended(ended),
                () = clock.sleep_until(wake) => self.work_overdue(),
            }
        }
        self.end_work_of_the_past().await;
        match self.end.take() {
            None | Some(EndCause::Stopped) => Ok(()),
            Some(cause) => Err(ElectionError::Lost(cause)),
        }
    }

    /// Does what is to be done now; the moment until which nothing is. `None` when the election is over.
    fn step(&mut self) -> Option<Instant> {
        let mut wake = None;
        while wake.is_none() {
            let election = self.election.as_mut()?;
            let step = election.next(self.elector.clock.now(), (self.elector.wall)());
            let awaited = election.awaits();
            // One that is given up is dropped, or it would go on behind our back.
            if self.in_flight.take_if(|(ticket, _)| awaited != Some(*ticket)).is_some() {
                self.note(Some(LockError::TimedOut));
            }
            match step {
                Step::Send { ticket, request, .. } => self.in_flight = Some((ticket, self.ask(request))),
                Step::Wait(until) => wake = Some(until),
                Step::Done => {
                    self.tell();
                    return None;
                }
            }
            self.tell();
        }
        wake.map(|wake| self.work_deadline.map_or(wake, |deadline| wake.min(deadline)))
    }

    fn ask(&self, request: Request) -> BoxFuture<'static, Answer> {
        let lock = Arc::clone(&self.elector.lock);
        async move {
            let asked = AssertUnwindSafe(ask(&*lock, request)).catch_unwind().await;
            match asked {
                Ok(Ok(outcome)) => (outcome, None),
                Ok(Err(LockError::Conflict)) => (Outcome::Conflict, Some(LockError::Conflict)),
                Ok(Err(LockError::NotFound)) => (Outcome::NotFound, Some(LockError::NotFound)),
                Ok(Err(error)) => (Outcome::Failed, Some(error)),
                Err(panic) => (Outcome::Failed, Some(LockError::Panicked(message(&*panic).to_owned()))),
            }
        }
        .boxed()
    }

    fn answered(&mut self, (outcome, error): Answer) {
        self.note(error);
        let Some((ticket, _)) = self.in_flight.take() else { return };
        if let Some(election) = &mut self.election {
            election.answer(ticket, outcome, self.elector.clock.now());
        }
        self.tell();
    }

    /// For people: the status, and a line in the log where it is worth one.
    fn note(&mut self, error: Option<LockError>) {
        let now = self.elector.clock.now();
        let lock = self.elector.lock.reference();
        let Some(error) = error else {
            self.elector.view.seen.lock().last_error = None;
            if let Some(recovery) = self.failures.recovered(now) {
                tracing::info!(%lock, failures = recovery.failures, lasted = ?recovery.lasted, "the lock answers again");
            }
            return;
        };
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = if source.is_empty() { error.to_string() } else { format!("{error}: {source}") };
        let kind = match &error {
            LockError::Conflict => "conflict",
            LockError::NotFound => "not found",
            LockError::TimedOut => "timed out",
            _ => "failed",
        };
        if let Some(left_out) = self.failures.failed(kind, now) {
            tracing::warn!(%lock, error = text, left_out, "the lock could not be read or written; will try again");
        }
        self.elector.view.seen.lock().last_error = Some(text);
    }

    /// Tells everybody what has happened.
    fn tell(&mut self) {
        let Some(election) = &mut self.election else { return };
        for notice in election.take_notices() {
            let elector = self.elector;
            let (hooks, lock) = (&elector.hooks, elector.lock.reference());
            match notice {
                Notice::Started { until, transitions } => self.begin(until, transitions),
                Notice::Renewed { until } => {
                    if let Some(term) = &self.term {
                        term.renew(until, self.sent(until));
                    }
                }
                Notice::Ended(cause) => self.finish(cause),
                Notice::NewHolder(holder) => {
                    self.elector.view.seen.lock().holder.clone_from(&holder);
                    tracing::info!(%lock, %holder, "new leader");
                    if let Some(call) = &hooks.on_new_leader {
                        survive("on_new_leader", || call(&holder));
                    }
                }
                Notice::SlowPath => {
                    if let Some(metrics) = &hooks.metrics {
                        survive("metrics", || metrics.slowpath(&lock.name));
                    }
                }
                Notice::SharedIdentity => {
                    let identity = &self.elector.view.identity;
                    tracing::error!(%lock, identity, "the lease was written under our identity, but not by this process: give each candidate an identity of its own");
                }
                Notice::Released => tracing::info!(%lock, "the lease is released"),
            }
        }
    }

    /// When the request was sent that made a term last until then.
    fn sent(&self, until: Instant) -> Instant {
        until.checked_sub(self.elector.settings.renew_deadline).unwrap_or(until)
    }

    fn begin(&mut self, until: Instant, transitions: i32) {
        let term = Term::new(self.elector.clock.clone(), until, self.sent(until), transitions);
        self.term = Some(term.clone());
        self.elector.terms.send_replace(Some(term.clone()));
        self.announce(true);
        if let Some(work) = &self.elector.hooks.work {
            // Making the future is the user's code as well.
            let work = AssertUnwindSafe(|| work(term));
            match std::panic::catch_unwind(work) {
                Ok(work) => self.work = Some(AbortOnDropHandle::new(Handle::current().spawn(work))),
                Err(panic) => self.work_panicked(message(&*panic)),
            }
        }
    }

    fn finish(&mut self, cause: EndCause) {
        let Some(term) = self.term.take() else { return };
        term.end();
        self.elector.terms.send_replace(None);
        if cause != EndCause::Stopped {
            tracing::error!(lock = %self.elector.lock.reference(), %cause, "leadership is lost");
        }
        self.work_deadline = match cause {
            // Until somebody else can lead.
            EndCause::RenewDeadline => Some(after(term.renewed(), self.elector.settings.lease_duration)),
            _ => None,
        };
        self.end.get_or_insert(cause);
        self.announce(false);
        if let Some(call) = &self.elector.hooks.on_stopped {
            survive("on_stopped_leading", call);
        }
    }

    fn announce(&self, leads: bool) {
        let (lock, hooks) = (self.elector.lock.reference(), &self.elector.hooks);
        let note =
            format!("{} {}", self.elector.view.identity, if leads { "became leader" } else { "stopped leading" });
        tracing::info!(%lock, "{note}");
        if let Some(metrics) = &hooks.metrics {
            survive("metrics", || metrics.master_status(&lock.name, leads));
        }
        if let Some(events) = &hooks.events {
            survive("events", || events.leader_event(&lock, &note));
        }
    }

    /// The elector is to stop: the work first.
    fn stop(&mut self) {
        let now = self.elector.clock.now();
        match (&self.term, &self.work) {
            (Some(term), Some(_)) => {
                self.work_deadline = Some(after(now, self.elector.hooks.work_grace));
                term.ask_to_stop();
            }
            _ => self.stop_election(true),
        }
    }

    fn stop_election(&mut self, release: bool) {
        if let Some(election) = &mut self.election {
            election.stop(self.elector.clock.now(), release);
        }
        self.tell();
    }

    fn work_ended(&mut self, ended: Result<(), JoinError>) {
        self.work = None;
        match ended.map_err(JoinError::try_into_panic) {
            Err(Ok(panic)) => self.work_panicked(message(&*panic)),
            _ if self.work_deadline.take().is_some() => self.stop_election(true),
            _ => {}
        }
    }

    fn work_panicked(&mut self, panic: &str) {
        tracing::error!(lock = %self.elector.lock.reference(), panic, "the leading work panicked; leadership ends");
        self.end = Some(EndCause::WorkPanicked);
        self.stop_election(true);
    }

    /// The work was asked to end and has not: it is aborted, which takes effect at its next await. If it does not come to
    /// one, the lease is not released: others wait until it is over.
    fn work_overdue(&mut self) {
        let now = self.elector.clock.now();
        let Some(work) = self.work.as_ref().filter(|_| self.term.is_some()) else { return };
        if self.work_deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let lock = self.elector.lock.reference();
        if std::mem::replace(&mut self.work_is_aborted, true) {
            tracing::error!(%lock, "the leading work cannot be aborted: it does not await; the lease is not released");
            self.work = None;
            self.stop_election(false);
        } else {
            tracing::warn!(%lock, "the leading work did not end in its grace period; it is aborted");
            work.abort();
            self.work_deadline = Some(after(now, ABORT_TIME));
        }
    }

    /// After a loss: the work may end by itself until somebody else can lead, then it is aborted.
    async fn end_work_of_the_past(&mut self) {
        let Some(mut work) = self.work.take() else { return };
        if let Some(deadline) = self.work_deadline {
            let clock = self.elector.clock.clone();
            tokio::select! {
                biased;
                _ = &mut work => return,
                () = clock.sleep_until(deadline) => {}
            }
        }
        work.abort();
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.finish(EndCause::Dropped);
        *self.elector.election.lock() = self.election.take();
    }
}

async fn ask(lock: &dyn Lock, request: Request) -> Result<Outcome, LockError> {
    Ok(match request {
        Request::Get => lock.get().await?.map_or(Outcome::NotFound, Outcome::Found),
        Request::Create(record) => Outcome::Written(lock.create(record).await?),
        Request::Update(replaced) => Outcome::Written(lock.update(replaced).await?),
    })
}
