//! Areas `informer` and `informer_per_key`: the shared index informer with its reflector, against a scripted
//! server.

mod handler;
mod object;
mod server;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kubewire_conformance::{Area, Stage, Told, matches_told};
use kubewire_indexer::{Indexers, NAMESPACE_INDEX};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Delivery, HandlerOptions, Informer, InformerOptions, RunningInformer};
use kubewire_listwatch::ListMeta;
use kubewire_ratelimit::ManualClock;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use handler::{Handler, Log, Note};
use object::{Thing, marked};
use server::{Error, Event, Page, Request, Server};

use crate::record::Form;

/// Steps of time in one `advance` after which somebody is taken to sleep for nothing again and again.
const WAKES_MAX: usize = 100_000;

pub(crate) struct Informers<O: Form> {
    stage: Stage,
    time: ManualClock,
    server: Server<O>,
    informer: Informer<O>,
    running: Option<RunningInformer>,
    stop: CancellationToken,
    handlers: BTreeMap<String, Handler>,
    log: Log,
    /// Whether handlers are to be such that can be paused.
    pause: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    watch_list: bool,
    resync_ns: u64,
    transform: String,
    queue: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    handler: String,
    resync_ns: Option<u64>,
    items: Vec<Thing>,
    version: String,
    r#continue: String,
    error: Error,
    events: Vec<Event>,
    by_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    requests: Vec<Request>,
    state: String,
    notifications: BTreeMap<String, Vec<Told<Note>>>,
    stream_stopped: bool,
    synced: bool,
    handlers_synced: BTreeMap<String, bool>,
    last_version: String,
    objects: Vec<Thing>,
    by_namespace: BTreeMap<String, usize>,
    error: String,
}

impl<O: Form> Area for Informers<O> {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, needs: &[String]) -> Result<Self, String> {
        let time = ManualClock::new();
        let server = Server::new(config.watch_list);
        let delivery = match config.queue.as_str() {
            "" | "in_order_atomic" => Delivery::InOrder,
            "delta" => Delivery::PerKey,
            other => return Err(format!("unknown queue {other:?}")),
        };
        // The settings with which the reflector is client-go's. It takes a list that is older than what it has, waits for
        // the end of a streaming list without a limit of its own, and asks again at once when a stream ends, however
        // often.
        let reflector = ReflectorOptions::new()
            .refuse_older_answers(false)
            .initial_events_timeout(Duration::MAX)
            .pace_short_streams(false);
        let options = InformerOptions::new()
            .reflector(reflector)
            .clock(time.clock())
            .delivery(delivery)
            .indexers(Indexers::by_namespace())
            .resync_period(Duration::from_nanos(config.resync_ns));
        let options = match config.transform.as_str() {
            "" => options,
            "mark" => options.transform(marked::<O>),
            other => return Err(format!("unknown transform {other:?}")),
        };
        Ok(Self {
            stage: Stage::new(),
            informer: Informer::with_options(server.clone(), options).map_err(|error| error.to_string())?,
            running: None,
            stop: CancellationToken::new(),
            handlers: BTreeMap::new(),
            log: Log::new(time.clone()),
            pause: needs.iter().any(|need| need == "pause"),
            time,
            server,
        })
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        let mut answer = Answer::default();
        match op {
            "add_handler" => answer.error = self.add_handler(input)?,
            "remove_handler" => self.handlers.remove(&input.handler).ok_or("no such handler")?.registration.remove(),
            "pause_handler" => self.handler(&input.handler)?.pause(true)?,
            "resume_handler" => self.handler(&input.handler)?.pause(false)?,
            "start" => {
                let _runtime = self.stage.enter();
                self.running = Some(self.informer.start(self.stop.clone()));
            }
            "stop" => self.stop.cancel(),
            "list_ok" => {
                let meta = ListMeta::new(input.version);
                let meta = if input.r#continue.is_empty() { meta } else { meta.continued(input.r#continue) };
                self.server.answer_list(Ok(Page { items: input.items, meta }))?;
            }
            "list_error" => self.server.answer_list(Err(input.error.request_error()?))?,
            "watch_ok" => self.server.accept_watch()?,
            "watch_error" => self.server.refuse_watch(input.error.request_error()?)?,
            "events" => self.server.send(input.events)?,
            "watch_close" => self.server.close_stream()?,
            "advance" => self.advance(Duration::from_nanos(input.by_ns))?,
            "check_store" => self.read_store(&mut answer)?,
            _ => return Err(format!("unknown operation {op:?}")),
        }
        self.stage.settle();
        self.observe(&mut answer)?;
        Ok(answer)
    }

    fn agrees(&self, expected: &Answer, got: &Answer) -> bool {
        let told = |answer: &Answer, name: &str| answer.notifications.get(name).cloned().unwrap_or_default();
        let mut names = expected.notifications.keys().chain(got.notifications.keys());
        names.all(|name| matches_told(&told(expected, name), &told(got, name)))
            && Answer { notifications: BTreeMap::new(), ..expected.clone() }
                == Answer { notifications: BTreeMap::new(), ..got.clone() }
    }
}

impl<O: Form> Informers<O> {
    fn handler(&self, name: &str) -> Result<&Handler, String> {
        self.handlers.get(name).ok_or_else(|| format!("no such handler: {name:?}"))
    }

    /// Adds a handler; says by which error it was refused.
    fn add_handler(&mut self, input: Input) -> Result<String, String> {
        let mut options = HandlerOptions::new().name(input.handler.as_str());
        if let Some(period) = input.resync_ns {
            options = options.resync_period(Duration::from_nanos(period));
        }
        let log = self.log.of(&input.handler);
        let added = if self.pause {
            Handler::subscribed(&self.informer, options, log, &self.stage)
        } else {
            Handler::called(&self.informer, options, log)
        };
        let Ok(handler) = added else { return Ok("stopped".to_owned()) };
        match self.handlers.insert(input.handler, handler) {
            None => Ok(String::new()),
            Some(_) => Err("two handlers of one name".to_owned()),
        }
    }

    /// Runs through time: from one moment for which somebody waits to the next.
    fn advance(&self, by: Duration) -> Result<(), String> {
        self.log.show_time(true);
        let end: Instant = self.time.now() + by;
        for _ in 0..WAKES_MAX {
            let next = self.time.next_wake().filter(|next| *next <= end);
            self.time.advance(next.unwrap_or(end) - self.time.now());
            self.stage.settle();
            if next.is_none() {
                return Ok(());
            }
        }
        Err(format!("after {WAKES_MAX} wakes the time is still not {by:?} later"))
    }

    fn read_store(&self, answer: &mut Answer) -> Result<(), String> {
        let indexer = self.informer.indexer();
        answer.objects = indexer.list().iter().map(Thing::of).collect();
        answer.objects.sort();
        for namespace in indexer.list_index_func_values(NAMESPACE_INDEX) {
            let objects = indexer.by_index(NAMESPACE_INDEX, &namespace).map_err(|error| error.to_string())?;
            answer.by_namespace.insert(namespace.to_string(), objects.len());
        }
        Ok(())
    }

    /// What every answer holds.
    fn observe(&self, answer: &mut Answer) -> Result<(), String> {
        let seen = self.server.look();
        if let Some(problem) = seen.problems.into_iter().next() {
            return Err(problem);
        }
        answer.requests = seen.requests;
        answer.stream_stopped = seen.stream_stopped;
        answer.state = match (&self.running, self.informer.is_stopped()) {
            (None, _) => "new",
            (_, true) => "stopped",
            _ => self.server.open().unwrap_or("idle"),
        }
        .to_owned();
        answer.synced = self.informer.has_synced();
        let synced = |(name, handler): (&String, &Handler)| (name.clone(), handler.registration.has_synced());
        answer.handlers_synced = self.handlers.iter().map(synced).collect();
        answer.last_version = self.informer.last_sync_resource_version();
        answer.notifications = self.log.take();
        self.log.show_time(false);
        Ok(())
    }
}
