//! What a builder makes of what is said, and what it refuses.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube_core::{DynamicObject, PartialObjectMeta};
use kubewire_apiserver::ApiServer;
use kubewire_controller::{
    Attempt, BoxError, BuildError, Builder, Channel, Controller, ControllerDefaults, ControllerHost, ControllerMetrics,
    ControllerOptions, EnqueueRequestForObject, Event, GenerationChanged, GroupKind, ListQuery, Manager,
    ManagerOptions, Outcome, Request, Runnable, map, watched,
};
use kubewire_indexer::{Id, Meta};
use kubewire_informer::{FactoryOptions, Informer, SharedInformerFactory};
use kubewire_listwatch::ListWatch;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, Running, pass, request, writes};

async fn nothing(_: Request, _: Attempt) -> Result<Outcome, std::io::Error> {
    Ok(Outcome::Done)
}

type Informers = (Informer<Arc<ReplicaSet>>, Informer<Arc<Pod>>, Informer<Arc<Node>>);

fn informers(server: &ApiServer) -> Informers {
    let client = server.client();
    (
        Informer::new(ListWatch::all(client.clone())),
        Informer::new(ListWatch::all(client.clone())),
        Informer::new(ListWatch::all(client)),
    )
}

#[tokio::test]
async fn what_makes_no_controller_is_refused_when_it_is_built() {
    let server = ApiServer::start().await;
    let (sets, pods, nodes) = informers(&server);
    let to_nothing = || map(|_: &Arc<Node>| None::<Request>);
    // what is said | the error
    let rows: [(Builder, BuildError); 6] = [
        (Controller::builder().for_(&sets).for_(&pods), BuildError::ForTwice),
        (Controller::builder(), BuildError::NoName),
        (Controller::builder().watches(&nodes, to_nothing()), BuildError::NoName),
        (Controller::builder().for_(&pods).named(""), BuildError::NoName),
        (Controller::builder().named("pods"), BuildError::NoWatches),
        (Controller::builder().named("pods").owns(&pods), BuildError::OwnsWithoutFor),
    ];
    for (builder, want) in rows {
        assert_eq!(builder.build(nothing).err(), Some(want));
    }
    let named = Controller::builder().named("nodes").watches(&nodes, to_nothing()).build(nothing).unwrap();
    assert_eq!(named.name(), "nodes");
    assert_eq!(Controller::builder().for_(&sets).build(nothing).unwrap().name(), "replicaset");
    assert_eq!(Controller::builder().owns(&pods).for_(&sets).build(nothing).unwrap().name(), "replicaset");
}

/// Takes every controller whose name is new.
#[derive(Default)]
struct Host {
    taken: Mutex<Vec<String>>,
    metrics: ControllerMetrics,
}

impl ControllerHost for Host {
    fn controller_defaults(&self) -> ControllerDefaults {
        ControllerDefaults::new().need_leader_election(false).max_concurrent_reconciles(2)
    }

    fn concurrency_of(&self, kind: &GroupKind) -> Option<usize> {
        (kind.to_string() == "ReplicaSet.apps").then_some(7)
    }

    fn controller_metrics(&self) -> ControllerMetrics {
        self.metrics.clone()
    }

    fn add_controller(&self, controller: Arc<dyn Runnable>) -> Result<(), BoxError> {
        let mut taken = self.taken.lock();
        if taken.iter().any(|name| name == controller.name()) {
            return Err("the name is taken: give it another by `named`".into());
        }
        taken.push(controller.name().to_owned());
        Ok(())
    }
}

#[tokio::test]
async fn two_controllers_of_one_kind_need_two_names() {
    let server = ApiServer::start().await;
    let (sets, ..) = informers(&server);
    let host = Host::default();
    Controller::builder().for_(&sets).complete(&host, nothing).unwrap();
    let error = Controller::builder().for_(&sets).complete(&host, nothing).unwrap_err();
    assert!(error.to_string().contains("does not take the controller replicaset: the name is taken"), "{error}");
    Controller::builder().for_(&sets).named("other").complete(&host, nothing).unwrap();
}

#[tokio::test]
async fn concurrency_is_the_controllers_own_then_that_of_its_kind_then_the_managers() {
    let server = ApiServer::start().await;
    let (sets, pods, _) = informers(&server);
    let workers = |builder: Builder| {
        let host = Host::default();
        let controller = builder.complete(&host, nothing).unwrap();
        assert!(format!("{controller:?}").contains("need_leader_election: false"), "the rest is the manager's");
        let running = Running::of(controller.clone(), host.metrics);
        let of = format!(r#"controller_runtime_max_concurrent_reconciles{{controller="{}"}}"#, controller.name());
        running.metric(&of)
    };
    let own = ControllerOptions::new().max_concurrent_reconciles(3);
    assert_eq!(workers(Controller::builder().for_(&sets).options(own)), 3.0);
    assert_eq!(workers(Controller::builder().for_(&sets)), 7.0);
    assert_eq!(workers(Controller::builder().for_(&pods)), 2.0);
    let named = map(|_: &Arc<ReplicaSet>| None::<Request>);
    assert_eq!(workers(Controller::builder().named("sets").watches(&sets, named)), 2.0, "no kind without for_");
}

fn set(name: &str) -> serde_json::Value {
    let labels = json!({"app": name});
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]}}},
    })
}

fn pod(name: &str, owners: serde_json::Value) -> serde_json::Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
        "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn events_of_the_kind_of_what_it_owns_and_of_what_it_watches_become_requests() {
    let server = ApiServer::start().await;
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let client = server.client();
    let sets = factory.informer(|_| ListWatch::<Arc<ReplicaSet>>::all(client.clone()));
    let pods = factory.informer(|_| ListWatch::<Arc<Pod>>::all(client.clone()));
    let nodes = factory.informer(|_| ListWatch::<Arc<Node>>::all(client.clone()));
    let done = Diary::default();
    let controller = Controller::builder()
        .for_(&sets)
        .owns(&pods)
        .watches(&nodes, map(|node: &Arc<Node>| [request(&format!("on-{}", Meta::id(&**node).name))]))
        .build(writes(&done))
        .unwrap();
    let running = Running::of(controller, ControllerMetrics::new());
    factory.start(&CancellationToken::new());
    pass(1000).await;
    server.create("apps/v1/replicasets", set("web")).unwrap();
    pass(1000).await;
    let owner = |name: &str, controls: bool| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": controls});
    server.create("pods", pod("web-1", json!([owner("mine", true), owner("not-mine", false)]))).unwrap();
    pass(1000).await;
    server.create("nodes", json!({"metadata": {"name": "n1"}})).unwrap();
    pass(1000).await;
    assert_eq!(done.lines(), ["web", "mine", "on-n1"]);
    running.stop().await;
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn every_owner_counts_where_that_is_said() {
    let server = ApiServer::start().await;
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let client = server.client();
    let sets = factory.informer(|_| ListWatch::<Arc<ReplicaSet>>::all(client.clone()));
    let pods = factory.informer(|_| ListWatch::<Arc<Pod>>::all(client.clone()));
    let done = Diary::default();
    let controller =
        Controller::builder().for_(&sets).owns(watched(&pods).by_any_owner()).build(writes(&done)).unwrap();
    let running = Running::of(controller, ControllerMetrics::new());
    factory.start(&CancellationToken::new());
    pass(1000).await;
    let owner = |name: &str| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u"});
    server.create("pods", pod("web-1", json!([owner("a"), owner("b")]))).unwrap();
    pass(1000).await;
    assert_eq!(done.lines(), ["a", "b"]);
    running.stop().await;
    factory.shut_down().await;
}

struct Message;

impl Meta for Message {
    fn id(&self) -> Id<'_> {
        Id::new("default", "message")
    }
}

#[tokio::test(start_paused = true)]
async fn predicates_for_all_are_asked_before_those_of_a_watch_and_do_not_concern_other_sources() {
    let server = ApiServer::start().await;
    server.create("pods", pod("a", json!([]))).unwrap();
    server.create("pods", pod("b", json!([]))).unwrap();
    let pods = Informer::new(ListWatch::<Arc<Pod>>::all(server.client()));
    let (asked, done, channel) = (Diary::default(), Diary::default(), Channel::new());
    let (first, second) = (asked.clone(), asked.clone());
    let controller = Controller::builder()
        .for_(watched(&pods).when(move |event: &Event<'_, Arc<Pod>>| {
            second.write(format!("own {}", event.key()));
            true
        }))
        .with_predicate(move |event: &Event<'_, dyn kubewire_controller::AnyObject>| {
            first.write(format!("global {}", event.key()));
            event.key().name() != "b"
        })
        .watches_source(channel.source("messages", EnqueueRequestForObject))
        .build(writes(&done))
        .unwrap();
    let running = Running::of(controller, ControllerMetrics::new());
    let started = pods.start(CancellationToken::new());
    channel.send(Arc::new(Message)).await.unwrap();
    pass(1000).await;
    let mut by_a: Vec<_> = asked.lines();
    by_a.retain(|line| line.ends_with("/a"));
    assert_eq!(by_a, ["global default/a", "own default/a"]);
    assert!(!asked.lines().contains(&"own default/b".to_owned()), "{:?}", asked.lines());
    assert!(!asked.lines().iter().any(|line| line.ends_with("message")), "{:?}", asked.lines());
    let mut lines = done.lines();
    lines.sort();
    assert_eq!(lines, ["a", "message"]);
    running.stop().await;
    drop(started);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_serves_for_owns_and_watches() {
    type Metadata<K> = Arc<PartialObjectMeta<K>>;
    let server = ApiServer::start().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let sets = manager.cache().watch::<Metadata<ReplicaSet>>().unwrap();
    let pods = manager.cache().watch::<Metadata<Pod>>().unwrap().indexed_by_owner().unwrap();
    let secrets = manager.cache().watch::<Metadata<Secret>>().unwrap();
    let seen = Diary::default();
    let of_secret = map(|secret: &Metadata<Secret>| [request(secret.label("set").unwrap_or_default())]);
    let controller = Controller::builder()
        .for_(&sets)
        .owns(&pods)
        .watches(&secrets, of_secret)
        .complete(&manager, writes(&seen))
        .unwrap();
    assert_eq!(controller.name(), "replicaset");
    let running = manager.spawn(CancellationToken::new());
    let idle = || manager.wait_idle(Duration::from_millis(1));
    idle().await.unwrap();

    let set = server.create("apps/v1/replicasets", json!({"metadata": {"name": "a", "namespace": "default"}})).unwrap();
    idle().await.unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": set["metadata"]["uid"], "controller": true});
    let pod = json!({"metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "image": "x"}]}});
    server.create("pods", pod).unwrap();
    idle().await.unwrap();
    let secret =
        json!({"metadata": {"name": "s", "namespace": "default", "labels": {"set": "c"}}, "data": {"k": "dg=="}});
    server.create("secrets", secret).unwrap();
    idle().await.unwrap();
    assert_eq!(seen.lines(), ["a", "b", "c"]);
    // What it owns, in a line; and the kind is known of each.
    let set = sets.get("default", "a").unwrap().unwrap();
    assert_eq!(pods.list(&ListQuery::all().owned_by(&*set)).unwrap().len(), 1);
    assert_eq!(sets.resource().kind, "ReplicaSet");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_known_at_run_time_names_its_controller_and_its_objects_are_owners() {
    let server = ApiServer::start().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let mapping = manager.cluster().mapper().kind("apps", "ReplicaSet").await.unwrap();
    let sets = manager.cache().watch_dynamic::<Arc<DynamicObject>>(&mapping).unwrap();
    let pods = manager.cache().watch::<Arc<Pod>>().unwrap();
    let seen = Diary::default();
    let builder = Controller::builder().for_dynamic(watched(&sets).when(GenerationChanged)).owns(&pods);
    assert_eq!(builder.complete(&manager, writes(&seen)).unwrap().name(), "replicaset");
    let (_, by_hand, _) = informers(&server);
    let error = Controller::builder().for_dynamic(&by_hand).build(nothing).unwrap_err();
    assert_eq!(error, BuildError::UnknownKind);

    let running = manager.spawn(CancellationToken::new());
    manager.synced().await.unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": "u", "controller": true});
    let pod = json!({"metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "image": "x"}]}});
    server.create("pods", pod).unwrap();
    manager.wait_idle(Duration::from_millis(1)).await.unwrap();
    assert_eq!(seen.lines(), ["b"]);
    running.stop().await.unwrap();
}
