//! With a cluster whose cache has something to sync.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kubewire_apiserver::{ApiServer, Matching};
use kubewire_events::Event;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::*;
use crate::test_http::get::get;
use crate::{
    Attempt, BoxError, CacheOptions, Cached, Controller, Failure, Group, LeaderElection, ListQuery, OnElected, Outcome,
    Request, RunContext,
};

type Config = Arc<ConfigMap>;
type Log = Arc<Mutex<Vec<String>>>;

const SECOND: Duration = Duration::from_secs(1);

async fn server() -> ApiServer {
    let server = ApiServer::start().await;
    server.create("configmaps", json!({"metadata": {"namespace": "default", "name": "a"}})).unwrap();
    server
}

/// Says how many configs it sees when it begins, and when it ends.
struct Looks {
    name: &'static str,
    group: Group,
    configs: Cached<Config>,
    log: Log,
}

impl Looks {
    fn look(&self, what: &str) {
        let seen = self.configs.list(&ListQuery::all()).map(|configs| configs.len());
        self.log.lock().push(format!("{what}{}:{}", self.name, seen.map_or_else(|e| e.to_string(), |n| n.to_string())));
    }
}

impl Runnable for Looks {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        self.look("+");
        Box::pin(async move {
            cx.stop.cancelled().await;
            sleep(SECOND).await;
            self.look("-");
            Ok(())
        })
    }

    fn group(&self) -> Group {
        self.group
    }
}

fn start(manager: &Manager) -> (CancellationToken, tokio::task::JoinHandle<Result<(), RunError>>) {
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { manager.run(stop).await }
    });
    (stop, running)
}

#[tokio::test(start_paused = true)]
async fn runnables_begin_with_synced_caches_of_all_clusters_and_these_answer_until_they_have_ended() {
    let (here, there) = (server().await, server().await);
    let manager = Manager::new(Cluster::new("here", here.client()), ManagerOptions::new());
    let other = Cluster::new("there", there.client());
    let (configs, others) =
        (manager.cluster().cache().watch::<Config>().unwrap(), other.cache().watch::<Config>().unwrap());
    let log = Log::default();
    let looks =
        |name, group, configs: &Cached<Config>| Looks { name, group, configs: configs.clone(), log: log.clone() };
    manager.add(looks("always", Group::Always, &configs)).unwrap();
    manager.add(looks("leader", Group::Leader, &others)).unwrap();
    manager.add(other).unwrap();
    let (stop, running) = start(&manager);
    manager.synced().await.unwrap();
    assert_eq!(*log.lock(), ["+always:1", "+leader:1"]);

    // One more, while it runs.
    let late = Cluster::new("late", there.client());
    let late_configs = late.cache().watch::<Config>().unwrap();
    manager.add(late).unwrap();
    late_configs.synced().await.unwrap();

    log.lock().clear();
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(*log.lock(), ["-always:1", "-leader:1"]);
    assert_eq!((here.requests_open(), there.requests_open()), (0, 0), "every watch is closed");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_sync_fails_the_start_after_two_minutes_and_says_why() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new());
    manager.cluster().cache().watch::<Config>().unwrap();
    let before = Instant::now();
    let (_stop, running) = start(&manager);
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(before.elapsed(), Duration::from_secs(120));
    assert!(matches!(error.failures(), [Failure::NotReady { name, .. }] if name == "here"), "{error}");
    assert!(
        error.to_string().contains("configmaps") && error.to_string().to_lowercase().contains("forbidden"),
        "{error}"
    );
    assert_eq!(manager.started().await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_caches_sync_ends_at_once_and_well() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new());
    manager.cluster().cache().watch::<Config>().unwrap();
    let (stop, running) = start(&manager);
    sleep(10 * SECOND).await;
    let before = Instant::now();
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(server.requests_open(), 0);
}

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// In real time, as sockets need it.
#[tokio::test]
async fn probes_and_metrics_are_answered_in_each_phase() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let options = ManagerOptions::new().health_address(local()).metrics_address(local());
    let manager = Manager::new(Cluster::new("here", server.client()), options);
    let configs = manager.cluster().cache().watch::<Config>().unwrap();
    let log = Log::default();
    manager.add(Looks { name: "slow", group: Group::Always, configs, log: Arc::clone(&log) }).unwrap();
    let (stop, running) = start(&manager);
    let until = async |wanted: &dyn Fn() -> bool| {
        while !wanted() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    until(&|| manager.health_server().bound().is_some()).await;
    until(&|| manager.metrics_server().is_some_and(|server| server.bound().is_some())).await;
    let health = manager.health_server().bound().unwrap();
    let metrics = manager.metrics_server().unwrap().bound().unwrap();

    // While the cache cannot sync.
    assert_eq!(get(health, "/healthz").await, (200, "ok".to_owned()));
    let (status, text) = get(health, "/readyz").await;
    assert_eq!(status, 500);
    assert!(text.contains("[-]caches failed") && text.contains("[-]manager failed"), "{text}");
    assert!(get(health, "/readyz/caches").await.1.contains("configmaps"));
    assert_eq!(get(metrics, "/metrics").await.0, 200);
    assert!(log.lock().is_empty(), "nobody runs yet");

    // When it is ready.
    server.allow_all();
    manager.synced().await.unwrap();
    let ready = "[+]caches ok\n[+]manager ok\n[+]watches ok\nreadyz check passed\n";
    assert_eq!(get(health, "/readyz?verbose").await, (200, ready.to_owned()));

    // While it ends.
    stop.cancel();
    until(&|| manager.groups().is_stopping()).await;
    let (status, text) = get(health, "/readyz").await;
    assert_eq!(status, 500);
    assert!(text.contains("[+]caches ok\n[-]manager failed"), "{text}");
    assert_eq!(get(health, "/healthz").await.0, 200, "the servers end last");
    running.await.unwrap().unwrap();
    assert_eq!(*log.lock(), ["+slow:1", "-slow:1"]);
    assert!(tokio::net::TcpStream::connect(health).await.is_err());
    assert!(tokio::net::TcpStream::connect(metrics).await.is_err());
}

/// With controller-runtime the start hangs here.
#[tokio::test]
async fn a_port_in_use_ends_the_start_though_a_cache_will_never_sync() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let taken = tokio::net::TcpListener::bind(local()).await.unwrap();
    let options = ManagerOptions::new().metrics_address(taken.local_addr().unwrap());
    let manager = Manager::new(Cluster::new("here", server.client()), options);
    manager.cluster().cache().watch::<Config>().unwrap();
    let (_stop, running) = start(&manager);
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.find::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::AddrInUse, "{error}");
}

struct Standby;

impl LeaderElection for Standby {
    fn run(&self, stop: CancellationToken, _: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            stop.cancelled().await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_has_warm_caches_and_is_ready_but_runs_nothing_of_the_leaders() {
    let server = server().await;
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new().elector(Standby));
    let configs = manager.cluster().cache().watch::<Config>().unwrap();
    let log = Log::default();
    let looks = |name, group| Looks { name, group, configs: configs.clone(), log: Arc::clone(&log) };
    manager.add(looks("leader", Group::Leader)).unwrap();
    manager.add(looks("always", Group::Always)).unwrap();
    let (stop, running) = start(&manager);
    manager.synced().await.unwrap();
    assert_eq!(*log.lock(), ["+always:1"]);
    assert_eq!(manager.readyz().run("readyz", "").await, (true, "ok".to_owned()));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(manager.elected().await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn without_addresses_no_port_is_opened_and_checks_can_be_left_out() {
    let server = server().await;
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new().default_checks(false));
    let (stop, running) = start(&manager);
    manager.synced().await.unwrap();
    assert!(manager.health_server().bound().is_none() && manager.metrics_server().is_none());
    assert!(manager.healthz().is_empty() && manager.readyz().is_empty());
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn names_of_controllers_are_taken_within_a_manager_and_not_beyond() {
    let server = server().await;
    let new = || Manager::new(Cluster::new("here", server.client()), ManagerOptions::new());
    let (one, other) = (new(), new());
    one.take_name("pods").unwrap();
    assert!(one.take_name("pods").unwrap_err().to_string().contains("\"pods\""));
    other.take_name("pods").unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_are_written_from_the_start_on_and_to_the_last_before_the_end() {
    let server = server().await;
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new());
    let (one, other) =
        (manager.event_recorder("example.com/one").unwrap(), manager.event_recorder("example.com/other").unwrap());
    let _never_used = manager.event_recorder("example.com/never").unwrap();
    let about = |name: &str| ObjectReference {
        kind: Some("ConfigMap".to_owned()),
        api_version: Some("v1".to_owned()),
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    };
    one.record(&about("a"), Event::normal("Early", "Test", "before the start"));
    let (stop, running) = start(&manager);
    manager.synced().await.unwrap();
    sleep(SECOND).await;
    let written = || {
        let events = server.list("events.k8s.io/v1/events");
        let mut reasons: Vec<_> = events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect();
        reasons.sort_unstable();
        reasons
    };
    assert_eq!(written(), ["Early"]);
    other.record(&about("b"), Event::warning("Late", "Test", "just before the end"));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(written(), ["Early", "Late"]);
    one.record(&about("c"), Event::normal("TooLate", "Test", "after the end"));
    sleep(SECOND).await;
    assert_eq!(written(), ["Early", "Late"]);
    assert!(manager.event_recorder("example.com/late").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_completed_with_its_manager_over_what_the_cache_keeps_of_several_namespaces() {
    let server = server().await;
    server.create("configmaps", json!({"metadata": {"namespace": "kube-system", "name": "b"}})).unwrap();
    server.create("configmaps", json!({"metadata": {"namespace": "kube-public", "name": "c"}})).unwrap();
    let kept = CacheOptions::new().namespaces(["default", "kube-system"]);
    let cluster = Cluster::with_cache("here", server.client(), kept);
    let options = ManagerOptions::new()
        .controllers(ControllerDefaults::new().max_concurrent_reconciles(2).need_leader_election(false))
        .concurrency_of(GroupKind::of::<ConfigMap>(), 3)
        .elector(Standby);
    let manager = Manager::new(cluster, options);
    let configs = manager.cluster().cache().watch::<Config>().unwrap();
    let log = Log::default();
    let reconcile = |log: &Log| {
        let log = Arc::clone(log);
        move |request: Request, _: Attempt| {
            log.lock().push(request.to_string());
            async { Ok::<_, std::io::Error>(Outcome::Done) }
        }
    };
    Controller::builder().for_(&configs).complete(&manager, reconcile(&log)).unwrap();
    let error = Controller::builder().for_(&configs).complete(&manager, reconcile(&log)).unwrap_err();
    assert!(error.to_string().contains("configmap"), "{error}: the name is taken");
    Controller::builder().for_(&configs).named("other").complete(&manager, reconcile(&Log::default())).unwrap();
    let text = manager.metrics().text().unwrap();
    for line in [
        r#"controller_runtime_reconcile_total{controller="configmap",result="success"} 0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="configmap"} 3"#,
        r#"workqueue_adds_total{name="configmap",controller="configmap"} 0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} before the first request: {text}");
    }

    let (stop, running) = start(&manager);
    manager.synced().await.unwrap();
    sleep(SECOND).await;
    server.create("configmaps", json!({"metadata": {"namespace": "kube-system", "name": "d"}})).unwrap();
    sleep(SECOND).await;
    let mut reconciled = std::mem::take(&mut *log.lock());
    reconciled.sort_unstable();
    assert_eq!(reconciled, ["default/a", "kube-system/b", "kube-system/d"], "a standby too: it needs no leader");
    let text = manager.metrics().text().unwrap();
    assert!(
        text.contains(r#"controller_runtime_reconcile_total{controller="configmap",result="success"} 3"#),
        "{text}"
    );
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_added_twice_ends_the_run_with_its_error() {
    let server = server().await;
    let manager = Manager::new(Cluster::new("here", server.client()), ManagerOptions::new());
    let configs = manager.cluster().cache().watch::<Config>().unwrap();
    let reconcile = |_: Request, _: Attempt| async { Ok::<_, std::io::Error>(Outcome::Done) };
    let controller = Controller::builder().for_(&configs).build(reconcile).unwrap();
    manager.add(controller.clone()).unwrap();
    manager.add(controller).unwrap();
    let (_stop, running) = start(&manager);
    let error = running.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("configmap"), "{error}");
}
