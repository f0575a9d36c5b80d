//! The recorder, and the task that writes what it took.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::{Clock, FailureLog, Random};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::limits::{reporting_controller, reporting_instance};
use crate::outbox::{Outbox, Outcome, Step};
use crate::write::Reporter;
use crate::{Event, EventSink, EventsApi, Limits, RecorderStats, SinkError, Write};

/// Takes events, and never blocks or fails. Cheap to clone; clones share everything.
///
/// Made by [`Recorder::builder`], together with the [`EventWriter`] that writes them. Without that one running, events
/// wait, up to a bound.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// Writes the events of a [`Recorder`]: run it.
#[must_use = "no event is written until it runs"]
pub struct EventWriter {
    shared: Arc<Shared>,
    sink: Arc<dyn EventSink>,
    limits: Limits,
    failures: FailureLog<&'static str>,
}

struct Shared {
    /// Nothing is awaited and no code of the user is called under it.
    outbox: Mutex<Outbox>,
    /// There is something new to be done.
    news: Notify,
    clock: Clock,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// Makes a [`Recorder`].
#[must_use = "it does nothing until it is built"]
pub struct RecorderBuilder {
    sink: Arc<dyn EventSink>,
    controller: String,
    instance: Option<String>,
    api: EventsApi,
    limits: Limits,
    clock: Clock,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    seed: u64,
}

impl Recorder {
    /// A recorder of this controller (such as `example.com/foo-controller`), which writes to a client or to a sink of a
    /// test. A name that the API server would refuse is made one that it takes.
    pub fn builder(sink: impl EventSink, controller: impl Into<String>) -> RecorderBuilder {
        RecorderBuilder {
            sink: Arc::new(sink),
            controller: controller.into(),
            instance: None,
            api: EventsApi::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            wall: Arc::new(Timestamp::now),
            seed: (Random::new().fraction() * (1_u64 << 53) as f64) as u64,
        }
    }

    /// Tells that something has happened to an object. It is kept where the object is, or in `default` if the object
    /// belongs to no namespace.
    ///
    /// Returns at once, whatever the state of the API server: an event that cannot be kept is dropped, and
    /// [counted](Self::stats). May be called anywhere, also without a runtime.
    ///
    /// Cost: one lock, held for O(log n); the texts are copied.
    pub fn record(&self, regarding: &ObjectReference, event: Event) {
        let version = regarding.resource_version.clone().unwrap_or_default();
        let body = Body::new(regarding, event);
        let (now, wall) = (self.shared.clock.now(), (self.shared.wall)());
        let has_news = self.shared.outbox.lock().record(body, &version, now, wall);
        if has_news {
            self.shared.news.notify_one();
        }
    }

    /// What was done so far.
    pub fn stats(&self) -> RecorderStats {
        self.shared.outbox.lock().stats()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl RecorderBuilder {
    /// Which replica this is. Default: the controller and the host's name.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Which API to write to. Default `events.k8s.io/v1`.
    pub fn api(mut self, api: EventsApi) -> Self {
        self.api = api;
        self
    }

    /// Other bounds and times than client-go's.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What is written into events as the time. Default: the system's wall clock.
    pub fn wall_clock(mut self, wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.wall = Arc::new(wall);
        self
    }

    /// The recorder, and what writes its events.
    pub fn build(self) -> (Recorder, EventWriter) {
        let host = hostname::get().ok().and_then(|host| host.into_string().ok()).unwrap_or_default();
        let instance = self.instance.unwrap_or_else(|| format!("{}-{host}", self.controller));
        let reporter = Reporter {
            controller: reporting_controller(&self.controller),
            instance: reporting_instance(&instance),
            host,
        };
        let shared = Arc::new(Shared {
            outbox: Mutex::new(Outbox::new(self.api, reporter, self.limits, self.seed)),
            news: Notify::new(),
            clock: self.clock,
            wall: self.wall,
        });
        let writer = EventWriter {
            shared: Arc::clone(&shared),
            sink: self.sink,
            limits: self.limits,
            failures: FailureLog::new(),
        };
        (Recorder { shared }, writer)
    }
}

/// How a writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flushed {
    /// So many events (repeats counted once) could not be written in time.
    pub left: usize,
}

type Answer = (u64, Result<(), SinkError>);

impl EventWriter {
    /// Writes events until it is stopped; then what is left, for the [flush time-out](Limits::flush_timeout) at most.
    /// What is recorded after the stop is dropped and counted.
    ///
    /// Dropping the future is a stop without a flush.
    pub async fn run(mut self, stop: CancellationToken) -> Flushed {
        let shared = Arc::clone(&self.shared);
        let mut requests = FuturesUnordered::new();
        let mut flush_until = None;
        loop {
            // The wall clock is the user's: it is not asked under the lock.
            let (now, wall) = (shared.clock.now(), (shared.wall)());
            let step = shared.outbox.lock().next(now, wall);
            let wake = match step {
                Step::Send { ticket, write } => {
                    requests.push(self.request(ticket, write));
                    continue;
                }
                Step::Drained => return Flushed { left: 0 },
                Step::Wait(at) => at,
            };
            let wake = [wake, flush_until].into_iter().flatten().min();
            let sleep = async {
                match wake {
                    Some(at) => shared.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled(), if flush_until.is_none() => {
                    shared.outbox.lock().close();
                    flush_until = Some(kubewire_ratelimit::clock::after(now, self.limits.flush_timeout));
                }
                Some(answer) = requests.next(), if !requests.is_empty() => self.answered(answer),
                () = shared.news.notified() => {}
                () = sleep => {}
            }
            if flush_until.is_some_and(|until| shared.clock.now() >= until) {
                let left = shared.outbox.lock().abandon();
                if left > 0 {
                    tracing::warn!(left, "events could not be written before the end");
                }
                return Flushed { left };
            }
        }
    }

    fn request(&self, ticket: u64, write: Write) -> BoxFuture<'static, Answer> {
        let (sink, clock, timeout) = (Arc::clone(&self.sink), self.shared.clock.clone(), self.limits.request_timeout);
        async move {
            // Making the future is the sink's code as well.
            let written = AssertUnwindSafe(async { sink.write(write).await }).catch_unwind();
            let result = tokio::select! {
                biased;
                result = written => result.unwrap_or_else(|_| Err(SinkError::Refused("the sink panicked".into()))),
                () = clock.sleep(timeout) => Err(SinkError::Failed("no answer in time".into())),
            };
            (ticket, result)
        }
        .boxed()
    }

    fn answered(&mut self, (ticket, result): Answer) {
        let now = self.shared.clock.now();
        let outcome = match &result {
            Ok(()) => Outcome::Done,
            Err(SinkError::NotFound) => Outcome::NotFound,
            Err(SinkError::AlreadyExists) => Outcome::AlreadyExists,
            Err(SinkError::Refused(_)) => Outcome::Refused,
            Err(SinkError::Failed(_)) => Outcome::Failed,
        };
        self.shared.outbox.lock().answer(ticket, outcome, now);
        match result {
            Ok(()) => {
                if let Some(recovery) = self.failures.recovered(now) {
                    tracing::info!(failures = recovery.failures, lasted = ?recovery.lasted, "events are written again");
                }
            }
            Err(error @ (SinkError::Refused(_) | SinkError::Failed(_))) => {
                let kind = if outcome == Outcome::Refused { "refused" } else { "failed" };
                if let Some(left_out) = self.failures.failed(kind, now) {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, cause, left_out, "an event was not written");
                }
            }
            Err(_) => {}
        }
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // Nobody writes any more: what comes is counted as dropped.
        self.shared.outbox.lock().abandon();
    }
}
