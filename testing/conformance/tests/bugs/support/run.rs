//! An informer at work over a scripted server, and the assertions of A-conv, A-budget and A-noleak.

use std::sync::Arc;
use std::time::Duration;

use kube_client::{Client, Config};
use kubewire_conformance::wire::{Server, Socket};
use kubewire_indexer::{IndexFunc, Indexers, Object};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Delivery, HandlerOptions, Informer, InformerOptions, Registration, RunningInformer};
use kubewire_listwatch::{Limits, ListWatch, Timeouts, client_from_config};
use kubewire_ratelimit::Backoff;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Heard, in_process};
use crate::forms::Served;
use crate::support::heard::thing;

/// How an informer is to be set up. The default asks for no streaming list, as most scripts have none.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) reflector: ReflectorOptions,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) delivery: Delivery,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reflector: ReflectorOptions::new().watch_list(false),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            delivery: Delivery::default(),
        }
    }
}

/// Options for real sockets, where time cannot be paused: delays of 5 to 50 ms.
pub(crate) fn quick() -> Options {
    Options { reflector: ReflectorOptions::new().watch_list(false).backoff(quick_backoff()), ..Options::default() }
}

pub(crate) fn quick_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(5)).factor(2.0).cap(Duration::from_millis(50)).steps(30)
}

/// An informer that runs, with one handler.
pub(crate) struct Run<O: Object> {
    pub(crate) server: Server,
    pub(crate) informer: Informer<O>,
    pub(crate) heard: Heard,
    pub(crate) registration: Registration,
    errors: Arc<Mutex<Vec<String>>>,
    running: RunningInformer,
    /// How many tasks there were before.
    pub(crate) tasks: usize,
}

impl<O: Served> Run<O> {
    /// Over a script, in process.
    pub(crate) fn script(script: &str) -> Self {
        Self::of(&Server::new(script))
    }

    /// Over a server, in process.
    pub(crate) fn of(server: &Server) -> Self {
        Self::with(server, Options::default())
    }

    pub(crate) fn with(server: &Server, options: Options) -> Self {
        let tasks = alive_tasks();
        Self::start(server, in_process(server), options, tasks)
    }

    fn start(server: &Server, client: Client, options: Options, tasks: usize) -> Self {
        let pods = O::pods(client).timeouts(options.timeouts).limits(options.limits);
        Self::start_list_watch(server, pods, options, tasks)
    }

    pub(crate) fn start_list_watch(
        server: &Server,
        pods: ListWatch<O, O::Codec>,
        options: Options,
        tasks: usize,
    ) -> Self {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&errors);
        let uid = IndexFunc::maybe(|object: &O| Some(object.id().uid));
        let options = InformerOptions::new()
            .indexers(Indexers::by_namespace().with("uid", uid))
            .delivery(options.delivery)
            .reflector(options.reflector)
            .error_handler(move |error| log.lock().push(error.to_string()));
        let informer = Informer::with_options(pods, options).expect("two indices of different names");
        let heard = Heard::default();
        let registration = informer.add_handler_with(heard.clone(), HandlerOptions::new().name("first")).unwrap();
        let running = informer.start(CancellationToken::new());
        Self { server: server.clone(), informer, heard, registration, errors, running, tasks }
    }

    /// What the error handler was told.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.errors.lock().clone()
    }

    /// What is in the store, such as `x@10`, in order.
    pub(crate) fn store(&self) -> Vec<String> {
        let mut things: Vec<String> = self.informer.indexer().list().iter().map(|o| thing(o).to_string()).collect();
        things.sort();
        things
    }

    /// Waits until there have been so many requests.
    pub(crate) async fn requests(&self, count: usize) {
        until(&format!("{count} requests"), || self.server.log().len() >= count).await;
    }

    /// Waits until the store has this.
    pub(crate) async fn has(&self, things: &[&str]) {
        let store = || format!("the store has {things:?}: {:?}; {:?}", self.store(), self.errors());
        until_or(store, || self.store() == things).await;
    }

    /// Waits until the store has taken in all up to this version.
    pub(crate) async fn has_version(&self, version: &str) {
        until(&format!("version {version}"), || self.informer.status().applied_version == version).await;
    }

    /// A-conv: the store comes to be what the server has, with its indices; the handler's log comes to be the
    /// same; and A-once.
    pub(crate) async fn converges(&self) {
        let what = || format!("{:?} becomes {:?}; {:?}", self.store(), self.server.truth(), self.server.asked());
        until_or(what, || self.informer.has_synced() && self.store() == self.server.truth()).await;
        until("the handler hears it", || self.heard.replayed() == self.store()).await;
        until("the handler is synced", || self.registration.has_synced()).await;
        let indexer = self.informer.indexer();
        for (index, part) in [("namespace", 0), ("uid", 1)] {
            let value = |object: &O| [object.id().namespace, object.id().uid][part].to_owned();
            let mut values: Vec<String> = indexer.list().iter().map(value).collect();
            values.sort();
            values.dedup();
            let mut known: Vec<String> =
                indexer.list_index_func_values(index).iter().map(ToString::to_string).collect();
            known.sort();
            assert_eq!(known, values, "the values of the index {index}");
            for wanted in values {
                let found = indexer.by_index(index, &wanted).unwrap();
                let all = indexer.list().iter().filter(|object| value(object) == wanted).count();
                assert_eq!(found.len(), all, "the index {index} under {wanted}");
            }
        }
    }

    /// As [`converges`](Self::converges), once the store has this.
    pub(crate) async fn converges_after(&self, things: &[&str]) {
        self.has(things).await;
        self.converges().await;
    }

    /// A-noleak: stops it; no task is left.
    pub(crate) async fn ends(self) {
        let Self { informer, running, tasks, .. } = self;
        running.stop();
        running.join().await;
        assert!(informer.is_stopped());
        drop(informer);
        until("no task is left", || alive_tasks() <= tasks).await;
    }

    pub(crate) async fn converges_and_ends_after(self, things: &[&str]) {
        self.converges_after(things).await;
        self.ends().await;
    }

    /// A-conv, A-once and A-noleak.
    pub(crate) async fn converges_and_ends(self) {
        self.converges().await;
        self.ends().await;
    }
}

/// An informer over a socket, with short delays.
pub(crate) fn over_socket<O: Served>(socket: &Socket, options: Options) -> Run<O> {
    let tasks = alive_tasks();
    let config = Config::new(format!("http://{}", socket.address()).parse().unwrap());
    Run::start(socket.server(), client_from_config(config).unwrap(), options, tasks)
}

pub(crate) fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits for something that has to come. The limit only ends a test that has failed: 20 minutes of paused time,
/// or 60 s: many tests share the machine.
///
/// # Panics
///
/// Where it does not come.
#[track_caller]
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    until_or(move || what.to_owned(), condition)
}

#[track_caller]
pub(crate) fn until_or(what: impl Fn() -> String, condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let began = std::time::Instant::now();
        let paused = tokio::time::Instant::now();
        while !condition() {
            let late = began.elapsed() > Duration::from_secs(60) || paused.elapsed() > Duration::from_secs(1200);
            assert!(!late, "{caller}: it did not come: {}", what());
            // Where time is paused, long waits may be looked at less often.
            let is_paused = paused.elapsed() > began.elapsed() * 4;
            let step = if is_paused { paused.elapsed() / 50 } else { Duration::ZERO };
            tokio::time::sleep(step.clamp(Duration::from_millis(2), Duration::from_millis(250))).await;
        }
    }
}

/// The number of requests within a time, from the first one on (A-budget). Paused time only.
pub(crate) async fn within<O: Served>(run: &Run<O>, time: Duration) -> usize {
    run.requests(1).await;
    tokio::time::sleep(time).await;
    let log = run.server.log();
    log.iter().filter(|asked| asked.at - log[0].at <= time).count()
}
