//! Informers, channels and streams as sources.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewire_apiserver::{ApiServer, Fault, Matching, Status};
use kubewire_controller::{
    Channel, Controller, ControllerMetrics, ControllerOptions, Enqueue, EnqueueRequestForObject, Event, EventHandler,
    KindSource, LabelsMatch, PriorityQueue, Request, RequestQueue, Source, SourceContext, StreamSource, map,
};
use kubewire_indexer::{Id, Meta, Object};
use kubewire_informer::{Informer, InformerOptions};
use kubewire_listwatch::{ListWatch, Packed};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, Running, pass, request, settle, writes};

fn pod(name: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]},
    })
}

fn pods(server: &ApiServer) -> Informer<Arc<Pod>> {
    Informer::new(ListWatch::all(server.client()))
}

/// Writes each event down.
fn records<O: Object>(diary: &Diary) -> impl EventHandler<O> {
    let diary = diary.clone();
    move |event: &Event<'_, O>, queue: &Enqueue<'_, Request>| {
        let version = |object: &O| object.id().resource_version.to_owned();
        diary.write(match event {
            Event::Created { object, is_in_initial_list } => format!("+ {} {is_in_initial_list}", Object::key(*object)),
            Event::Updated { old, new } => format!("~ {} {}", Object::key(*new), version(old) != version(new)),
            Event::Deleted { key, object, is_final_state_unknown } => {
                format!("- {key} {} {is_final_state_unknown}", object.is_some())
            }
            _ => format!("? {}", event.key()),
        });
        queue.add(event.key());
    }
}

fn controller(options: ControllerOptions) -> (Controller, Diary) {
    let diary = Diary::default();
    (Controller::new("pods", writes(&diary), options), diary)
}

fn run(controller: Controller) -> Running {
    Running::of(controller, ControllerMetrics::new())
}

#[tokio::test(start_paused = true)]
async fn an_informer_tells_creations_changes_and_deletions() {
    let server = ApiServer::start().await;
    server.create("pods", pod("old", "a")).unwrap();
    let (pods_controller, done) = controller(ControllerOptions::new());
    let events = Diary::default();
    pods_controller.watch(KindSource::new(&pods(&server), records(&events)).owned()).await.unwrap();
    let running = run(pods_controller);
    pass(100).await;
    server.create("pods", pod("new", "a")).unwrap();
    pass(100).await;
    server.modify("pods", "default", "new", |pod| pod["metadata"]["labels"]["app"] = json!("b")).unwrap();
    pass(100).await;
    server.delete("pods", "default", "new").unwrap();
    pass(100).await;
    let want = ["+ default/old true", "+ default/new false", "~ default/new true", "- default/new true false"];
    assert_eq!(events.lines(), want);
    assert_eq!(done.lines(), ["old", "new", "new", "new"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_missed_comes_with_the_last_known_state() {
    let server = ApiServer::start().await;
    for name in ["a", "b"] {
        server.create("pods", pod(name, "x")).unwrap();
    }
    let (pods_controller, _) = controller(ControllerOptions::new());
    let events = Diary::default();
    pods_controller.watch(KindSource::new(&pods(&server), records(&events)).owned()).await.unwrap();
    let running = run(pods_controller);
    pass(100).await;
    server.go_down().await;
    server.delete("pods", "default", "a").unwrap();
    server.compact();
    server.come_back().await;
    pass(300_000).await;
    assert_eq!(events.lines().last().map(String::as_str), Some("- default/a true true"), "{:?}", events.lines());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn workers_begin_when_all_first_events_have_passed_all_handlers() {
    let server = ApiServer::start().await;
    (0..20).for_each(|n| _ = server.create("pods", pod(&format!("p{n}"), "a")).unwrap());
    let informer = pods(&server);
    let (events, seen) = (Diary::default(), Diary::default());
    let diary = seen.clone();
    let told = events.clone();
    let reconcile = move |_: Request, _: kubewire_controller::Attempt| {
        diary.write(told.len().to_string());
        async { Ok::<_, std::io::Error>(kubewire_controller::Outcome::Done) }
    };
    let controller = Controller::new("pods", reconcile, ControllerOptions::new());
    let slow = events.clone();
    controller.watch(KindSource::new(&informer, EnqueueRequestForObject).owned()).await.unwrap();
    let counts = map(move |_: &Arc<Pod>| {
        slow.write("told");
        None::<Request>
    });
    controller.watch(KindSource::new(&informer, counts)).await.unwrap();
    let running = run(controller);
    pass(1000).await;
    assert_eq!(seen.lines(), vec!["20"; 20], "all were told before the first attempt");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_server_does_not_know_yet_heals_within_the_time_out() {
    let server = ApiServer::start().await;
    server.create("pods", pod("a", "x")).unwrap();
    server.fault(Fault::answer(Status::no_such_path()).on(Matching::any().resource("pods")).times(4));
    let (pods_controller, done) = controller(ControllerOptions::new());
    pods_controller.watch(KindSource::new(&pods(&server), EnqueueRequestForObject).owned()).await.unwrap();
    let running = run(pods_controller);
    settle().await;
    assert!(!running.controller.has_synced());
    pass(119_000).await;
    assert_eq!(done.lines(), ["a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_stands_in_the_error_after_the_time_out() {
    let server = ApiServer::start().await;
    server.forbid(Matching::any().resource("pods"));
    let (pods_controller, _) = controller(ControllerOptions::new());
    let informer = pods(&server);
    pods_controller.watch(KindSource::new(&informer, EnqueueRequestForObject).owned()).await.unwrap();
    let running = run(pods_controller);
    pass(120_001).await;
    let text = running.ended().await.unwrap_err().to_string();
    for part in ["failed to wait for pods caches to sync", "pods", "within 120s", "forbidden", "tries)"] {
        assert!(text.to_lowercase().contains(part), "{part:?} in {text}");
    }
    settle().await;
    assert!(informer.is_stopped(), "it was started with its source");
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_somebody_else_is_awaited_and_goes_on_after_the_controller() {
    let server = ApiServer::start().await;
    server.create("pods", pod("a", "x")).unwrap();
    let informer = pods(&server);
    let (pods_controller, done) = controller(ControllerOptions::new());
    pods_controller.watch(KindSource::new(&informer, EnqueueRequestForObject)).await.unwrap();
    let running = run(pods_controller);
    pass(1000).await;
    assert_eq!(done.len(), 0, "nobody has started it");
    let started = informer.start(CancellationToken::new());
    pass(100).await;
    assert_eq!(done.lines(), ["a"]);
    assert_eq!(informer.status().handlers.len(), 1);
    let queue = running.controller.queue().clone();
    running.stop().await;
    assert_eq!(informer.status().handlers.len(), 0, "the controller's handler is gone");
    server.create("pods", pod("b", "x")).unwrap();
    pass(100).await;
    assert!(!informer.is_stopped() && informer.indexer().len() == 2);
    assert!(queue.queue().is_empty());
    drop(started);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_nobody_starts_is_said_not_to_be_started() {
    let server = ApiServer::start().await;
    let (pods_controller, _) = controller(ControllerOptions::new());
    pods_controller.watch(KindSource::new(&pods(&server), EnqueueRequestForObject)).await.unwrap();
    let error = pods_controller.run(kubewire_controller::RunContext::new()).await.unwrap_err();
    assert!(error.to_string().contains("not started"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_has_stopped_fails_the_start_at_once() {
    let server = ApiServer::start().await;
    let informer = pods(&server);
    informer.stop();
    let (pods_controller, _) = controller(ControllerOptions::new());
    pods_controller.watch(KindSource::new(&informer, EnqueueRequestForObject)).await.unwrap();
    let run = pods_controller.run(kubewire_controller::RunContext::new());
    let error = tokio::time::timeout(Duration::from_secs(1), run).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn two_watches_of_one_informer_have_predicates_of_their_own() {
    let server = ApiServer::start().await;
    server.create("pods", pod("a", "web")).unwrap();
    server.create("pods", pod("b", "db")).unwrap();
    let informer = pods(&server);
    let (pods_controller, done) = controller(ControllerOptions::new());
    let prefixed =
        |prefix: &'static str| map(move |pod: &Arc<Pod>| [request(&format!("{prefix}-{}", Meta::id(&**pod).name))]);
    let label = |text: &str| LabelsMatch(text.parse().unwrap());
    pods_controller.watch(KindSource::new(&informer, prefixed("w")).when(label("app=web")).owned()).await.unwrap();
    pods_controller.watch(KindSource::new(&informer, prefixed("d")).when(label("app=db"))).await.unwrap();
    let running = run(pods_controller);
    pass(100).await;
    let mut lines = done.lines();
    lines.sort();
    assert_eq!(lines, ["d-b", "w-a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_initial_list_and_resyncs_are_low_and_changes_are_not() {
    let server = ApiServer::start().await;
    server.create("pods", pod("a", "x")).unwrap();
    let options = InformerOptions::new().resync_period(Duration::from_secs(600));
    let informer = Informer::with_options(ListWatch::<Arc<Pod>>::all(server.client()), options).unwrap();
    let seen = Diary::default();
    let diary = seen.clone();
    let reconcile = move |request: Request, attempt: kubewire_controller::Attempt| {
        diary.write(format!("{} {}", request.name(), attempt.priority()));
        async { Ok::<_, std::io::Error>(kubewire_controller::Outcome::Done) }
    };
    let controller = Controller::new("pods", reconcile, ControllerOptions::new().priority_queue(PriorityQueue::new()));
    controller.watch(KindSource::new(&informer, EnqueueRequestForObject).owned()).await.unwrap();
    let running = run(controller);
    pass(1000).await;
    server.create("pods", pod("b", "x")).unwrap();
    pass(1000).await;
    server.modify("pods", "default", "a", |pod| pod["metadata"]["labels"]["app"] = json!("y")).unwrap();
    pass(1000).await;
    assert_eq!(seen.lines(), ["a -100", "b 0", "a 0"]);
    pass(700_000).await;
    let mut resynced = seen.lines().split_off(3);
    resynced.sort();
    assert_eq!(resynced, ["a -100", "b -100"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_packed_object_tells_owner_and_generation_without_being_decoded() {
    use kubewire_controller::{EnqueueRequestForOwner, GenerationChanged, GroupKind};
    let server = ApiServer::start().await;
    let owned = |name: &str, owner: &str| {
        let mut pod = pod(name, "x");
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": true}]);
        pod
    };
    server.create("pods", owned("a-1", "a")).unwrap();
    let informer = Informer::new(ListWatch::<Packed<Pod>>::all(server.client()));
    let (sets, done) = controller(ControllerOptions::new());
    let handler = EnqueueRequestForOwner::new(GroupKind::new("apps", "ReplicaSet"));
    sets.watch(KindSource::new(&informer, handler).when(GenerationChanged).owned()).await.unwrap();
    let running = run(sets);
    pass(100).await;
    server.create("pods", owned("b-1", "b")).unwrap();
    pass(100).await;
    // A label is no change of the desired state.
    server.modify("pods", "default", "a-1", |pod| pod["metadata"]["labels"]["app"] = json!("y")).unwrap();
    pass(100).await;
    assert_eq!(done.lines(), ["a", "b"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_in_the_initial_list_keeps_nobody_from_the_start() {
    let server = ApiServer::start().await;
    for name in ["a", "bad", "c"] {
        server.create("pods", pod(name, "x")).unwrap();
    }
    let informer = pods(&server);
    let (pods_controller, done) = controller(ControllerOptions::new());
    let panics = map(|pod: &Arc<Pod>| {
        let name = Meta::id(&**pod).name.to_owned();
        assert_ne!(name, "bad");
        [request(&name)]
    });
    pods_controller.watch(KindSource::new(&informer, panics).owned()).await.unwrap();
    let running = run(pods_controller);
    pass(1000).await;
    let mut lines = done.lines();
    lines.sort();
    assert_eq!(lines, ["a", "c"]);
    running.stop().await;
}

/// Something outside of a cluster.
struct Message(String);

impl Meta for Message {
    fn id(&self) -> Id<'_> {
        Id::new("default", &self.0)
    }
}

fn message(name: impl ToString) -> Arc<Message> {
    Arc::new(Message(name.to_string()))
}

#[tokio::test(start_paused = true)]
async fn what_a_channel_gets_before_the_start_is_told_after_it_and_predicates_are_asked() {
    let channel = Channel::new();
    let (outside, done) = controller(ControllerOptions::new());
    let source = channel
        .source("messages", EnqueueRequestForObject)
        .when(|event: &Event<'_, Arc<Message>>| event.key().name() != "1");
    outside.watch(source).await.unwrap();
    for n in 0..3 {
        channel.send(message(n)).await.unwrap();
    }
    let running = run(outside);
    settle().await;
    channel.send(message(3)).await.unwrap();
    settle().await;
    assert_eq!(done.lines(), ["0", "2", "3"]);
    running.stop().await;
    settle().await;
    assert!(channel.send(message("late")).await.is_err_and(|closed| closed.0.0 == "late"));
}

#[tokio::test(start_paused = true)]
async fn a_channel_makes_its_sender_wait_while_a_buffer_is_full_and_loses_nothing() {
    let channel = Channel::new();
    let (outside, done) = controller(ControllerOptions::new());
    outside.watch(channel.source("messages", EnqueueRequestForObject)).await.unwrap();
    let sends = channel.clone();
    let sender = tokio::spawn(async move {
        for n in 0..3000 {
            sends.send(message(n)).await.unwrap();
        }
    });
    pass(1000).await;
    assert!(!sender.is_finished(), "the buffer holds 1024");
    let running = run(outside);
    pass(1000).await;
    sender.await.unwrap();
    settle().await;
    assert_eq!(done.lines(), (0..3000).map(|n| n.to_string()).collect::<Vec<_>>());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_closed_still_tells_what_it_holds_and_then_is_quiet() {
    let channel = Channel::new();
    let queue = RequestQueue::<Request>::for_test(None);
    let source = channel.source("messages", EnqueueRequestForObject);
    for n in 0..3 {
        channel.send(message(n)).await.unwrap();
    }
    drop(channel);
    let cx = SourceContext::new(queue.clone(), "c", CancellationToken::new());
    let _started = Box::new(source).start(cx).await.unwrap();
    pass(1000).await;
    assert_eq!(queue.queue().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn each_controller_of_a_channel_gets_everything() {
    let channel = Channel::with_capacity(2);
    let (one, one_done) = controller(ControllerOptions::new());
    let (two, two_done) = controller(ControllerOptions::new());
    one.watch(channel.source("messages", EnqueueRequestForObject)).await.unwrap();
    two.watch(channel.source("messages", EnqueueRequestForObject)).await.unwrap();
    let (one, two) = (run(one), run(two));
    for n in 0..10 {
        channel.send(message(n)).await.unwrap();
    }
    settle().await;
    assert_eq!((one_done.len(), two_done.len()), (10, 10));
    // What has ended holds nobody up.
    one.stop().await;
    settle().await;
    for n in 10..20 {
        channel.send(message(n)).await.unwrap();
    }
    settle().await;
    assert_eq!((one_done.len(), two_done.len()), (10, 20));
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_a_source_and_a_handler_that_panics_costs_one_event() {
    let (outside, done) = controller(ControllerOptions::new());
    let stream = futures::stream::iter(["a", "bad", "c"].map(message));
    let handler = |event: &Event<'_, Arc<Message>>, queue: &Enqueue<'_, Request>| {
        assert_ne!(event.key().name(), "bad");
        queue.add(event.key());
    };
    outside.watch(StreamSource::new("stream", stream, handler)).await.unwrap();
    let running = run(outside);
    settle().await;
    assert_eq!(done.lines(), ["a", "c"]);
    running.stop().await;
}
