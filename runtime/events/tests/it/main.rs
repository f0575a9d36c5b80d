//! The recorder with the embedded API server, which checks events as the real one does.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kubewire_apiserver::{ApiServer, Fault, Matching, Status, Verb};
use kubewire_events::{Event, EventSink, EventsApi, Limits, Recorder, RecorderBuilder, SinkError, Write};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const APIS: [(EventsApi, &str); 2] = [(EventsApi::EventsV1, "events.k8s.io/v1/events"), (EventsApi::CoreV1, "events")];

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn about(kind: &str, namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some(kind.into()),
        namespace: Some(namespace.into()).filter(|namespace: &String| !namespace.is_empty()),
        name: Some(name.into()),
        uid: Some(format!("uid of {name}")),
        ..ObjectReference::default()
    }
}

fn warning() -> Event {
    Event::warning("Failed", "Do", "no room")
}

struct Bench {
    server: ApiServer,
    recorder: Recorder,
    stop: CancellationToken,
    writing: tokio::task::JoinHandle<kubewire_events::Flushed>,
    resource: &'static str,
}

impl Bench {
    async fn new((api, resource): (EventsApi, &'static str)) -> Self {
        Self::with((api, resource), |builder| builder).await
    }

    async fn with(
        (api, resource): (EventsApi, &'static str),
        change: impl FnOnce(RecorderBuilder) -> RecorderBuilder,
    ) -> Self {
        let server = ApiServer::start().await;
        let builder = Recorder::builder(server.client(), "example.com/controller").instance("controller-0").api(api);
        let (recorder, writer) = change(builder).build();
        let stop = CancellationToken::new();
        let writing = tokio::spawn(writer.run(stop.clone()));
        Self { server, recorder, stop, writing, resource }
    }

    async fn stopped(self) -> (usize, Vec<Value>) {
        self.stop.cancel();
        let left = self.writing.await.unwrap().left;
        (left, self.server.list(self.resource))
    }

    fn writes(&self) -> (usize, usize) {
        let requests = self.server.requests();
        let count = |verb| requests.iter().filter(|request| request.verb == Some(verb)).count();
        (count(Verb::Create), count(Verb::Patch))
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_why_and_who() {
    for api in APIS {
        let bench = Bench::new(api).await;
        let version = ObjectReference { resource_version: Some("7".into()), ..about("Pod", "default", "x") };
        let event = Event::normal("Scaled", "Scale", "to 3 replicas").related(about("Node", "", "n"));
        bench.recorder.record(&version, event);
        let (left, events) = bench.stopped().await;
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!(left, 0);
        let (object, note, who) = match api.0 {
            EventsApi::CoreV1 => ("involvedObject", "message", "reportingComponent"),
            _ => ("regarding", "note", "reportingController"),
        };
        assert_eq!((&event[object]["name"], &event[object]["resourceVersion"]), (&"x".into(), &"7".into()));
        assert_eq!((&event[note], &event["reason"]), (&"to 3 replicas".into(), &"Scaled".into()));
        assert_eq!((&event["type"], &event["action"]), (&"Normal".into(), &"Scale".into()));
        assert_eq!(
            (&event[who], &event["reportingInstance"]),
            (&"example.com/controller".into(), &"controller-0".into())
        );
        assert_eq!(event["related"]["name"], "n");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_names_and_long_texts_are_brought_to_what_the_server_takes() {
    for api in APIS {
        let controller = "c".repeat(120);
        let instance = format!("{controller}-{}", "h".repeat(63));
        let server = ApiServer::start().await;
        let wall = k8s_openapi::jiff::Timestamp::from_second(1_767_225_600).unwrap();
        let (recorder, writer) = Recorder::builder(server.client(), controller.clone())
            .instance(instance.clone())
            .api(api.0)
            .limits(Limits { burst: 1000, ..Limits::default() })
            .wall_clock(move || wall)
            .build();
        let names = ["team:reader".to_owned(), "A_B".to_owned(), "a".repeat(253)];
        for name in &names {
            recorder.record(&about("Role", "default", name), warning());
        }
        for number in 0..100 {
            // The wall clock stands still.
            recorder.record(&about("Pod", "default", "x"), Event::normal(format!("Reason{number}"), "", ""));
        }
        let long = Event::normal("r".repeat(300), "ä".repeat(300), "語".repeat(1000));
        recorder.record(&about("Pod", "default", "y"), long);
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(writer.run(stop).await.left, 0);
        let stats = recorder.stats();
        assert_eq!((stats.created, stats.dropped_refused, stats.dropped_failed), (104, 0, 0), "{stats:?}");
        let events = server.list(api.1);
        let own: HashSet<&str> = events.iter().map(|event| event["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(own.len(), 104);
        let object = if api.0 == EventsApi::CoreV1 { "involvedObject" } else { "regarding" };
        let told: HashSet<&str> = events.iter().map(|event| event[object]["name"].as_str().unwrap()).collect();
        assert!(names.iter().all(|name| told.contains(&**name)), "the objects' names are never changed");
    }
}

#[tokio::test(start_paused = true)]
async fn events_about_cluster_scoped_objects_are_kept_in_default() {
    for api in APIS {
        let bench = Bench::with(api, |builder| builder.instance("in-kube-tools")).await;
        bench.server.create("namespaces", serde_json::json!({"metadata": {"name": "ns1"}})).unwrap();
        let empty = ObjectReference { namespace: Some(String::new()), ..about("Pod", "", "z") };
        for object in [about("Node", "", "n"), about("Namespace", "", "ns1"), about("Pod", "ns1", "x"), empty] {
            bench.recorder.record(&object, warning());
        }
        let stats = bench.recorder.clone();
        let (_, events) = bench.stopped().await;
        assert_eq!(stats.stats().created, 4, "{:?}", stats.stats());
        let object = if api.0 == EventsApi::CoreV1 { "involvedObject" } else { "regarding" };
        for event in &events {
            let own = event[object]["namespace"].as_str();
            assert_eq!(event["metadata"]["namespace"].as_str(), own.or(Some("default")));
            assert_eq!(own, (event[object]["name"] == "x").then_some("ns1"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_repeats_are_one_event_with_a_count() {
    for (api, patches) in APIS.into_iter().zip([1, 24]) {
        let bench = Bench::new(api).await;
        for _ in 0..100 {
            bench.recorder.record(&about("Pod", "default", "x"), warning());
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(bench.writes(), (1, patches));
        let (left, events) = bench.stopped().await;
        assert_eq!(left, 0);
        let count = if api.0 == EventsApi::CoreV1 { &events[0]["count"] } else { &events[0]["series"]["count"] };
        assert_eq!((events.len(), count), (1, &if api.0 == EventsApi::CoreV1 { 25 } else { 100 }.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn notes_that_differ_in_a_number_are_combined_from_the_tenth_on() {
    for api in APIS {
        let bench = Bench::new(api).await;
        for number in 0..15 {
            let note = format!("no room for {number}");
            bench.recorder.record(&about("Pod", "default", "x"), Event::warning("Failed", "Do", note));
            sleep(Duration::from_millis(10)).await;
        }
        let (_, events) = bench.stopped().await;
        assert_eq!(events.len(), 10);
        let note = if api.0 == EventsApi::CoreV1 { "message" } else { "note" };
        let combined = |event: &&Value| event[note].as_str().unwrap().starts_with("(combined from similar events): ");
        assert_eq!(events.iter().filter(combined).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_event_the_server_has_removed_is_made_anew() {
    for api in APIS {
        let bench = Bench::new(api).await;
        let pod = about("Pod", "default", "x");
        bench.recorder.record(&pod, warning());
        sleep(secs(1)).await;
        let name = bench.server.list(api.1)[0]["metadata"]["name"].as_str().unwrap().to_owned();
        bench.server.delete(api.1, "default", &name).unwrap();
        bench.recorder.record(&pod, warning());
        sleep(secs(1)).await;
        assert_eq!(bench.writes(), (2, 1));
        let (_, events) = bench.stopped().await;
        let count = if api.0 == EventsApi::CoreV1 { &events[0]["count"] } else { &events[0]["series"]["count"] };
        assert_eq!((events.len(), count), (1, &2.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_server_are_lived_through_and_refusals_are_not_repeated() {
    for api in APIS {
        for (code, tries) in [(409, 2), (429, 2), (500, 2), (503, 2), (403, 1), (422, 1)] {
            let bench = Bench::new(api).await;
            bench.server.fault(Fault::answer(Status::new(code, "Fault", "injected")));
            bench.recorder.record(&about("Pod", "default", "x"), warning());
            sleep(secs(30)).await;
            assert_eq!(bench.writes().0, tries, "{code}");
            assert_eq!(bench.server.count(api.1), tries - 1, "{code}");
            assert_eq!(bench.recorder.stats().dropped_refused, u64::from(tries == 1));
        }
        // A count that meets a conflict is told again.
        let bench = Bench::new(api).await;
        bench.recorder.record(&about("Pod", "default", "x"), warning());
        sleep(secs(1)).await;
        let patches = Matching::any().verb(Verb::Patch);
        bench.server.fault(Fault::answer(Status::new(409, "Conflict", "injected")).on(patches));
        bench.recorder.record(&about("Pod", "default", "x"), warning());
        sleep(secs(30)).await;
        assert_eq!(bench.writes(), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_event_holds_up_no_other() {
    let bench = Bench::new(APIS[0]).await;
    bench.server.create("namespaces", serde_json::json!({"metadata": {"name": "ns1"}})).unwrap();
    bench.server.fault(Fault::stall().on(Matching::any().namespace("ns1")).always());
    bench.recorder.record(&about("Pod", "ns1", "x"), warning());
    let begin = Instant::now();
    for number in 0..50 {
        bench.recorder.record(&about("Pod", "default", &format!("y{number}")), warning());
    }
    while bench.server.count(APIS[0].1) < 50 {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(begin.elapsed() < secs(1));
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_for_a_slow_server_and_what_is_too_much_is_dropped_by_reason() {
    let bench = Bench::new(APIS[0]).await;
    bench.server.fault(Fault::delay(secs(1)).always());
    let begin = Instant::now();
    for number in 0..5_000 {
        bench.recorder.record(&about("Pod", "default", &format!("x{number}")), warning());
    }
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let stats = bench.recorder.stats();
    assert_eq!((stats.recorded, stats.dropped_queue_full), (5_000, 4_000));
    sleep(secs(200)).await;
    assert_eq!(bench.recorder.stats().created, 1_000);
    assert_eq!(bench.server.count(APIS[0].1), 1_000);
}

#[tokio::test(start_paused = true)]
async fn the_flush_at_the_stop_has_an_end_and_says_what_was_left() {
    let bench = Bench::new(APIS[0]).await;
    bench.server.fault(Fault::delay(secs(1)).always());
    for number in 0..100 {
        bench.recorder.record(&about("Pod", "default", &format!("x{number}")), warning());
    }
    let (begin, recorder) = (Instant::now(), bench.recorder.clone());
    let (left, events) = bench.stopped().await;
    assert_eq!(begin.elapsed(), secs(5));
    // Eight at a time, a second each; those under way when the time was over may have arrived.
    assert!(events.len() >= 32 && left + events.len() >= 100 && left <= 68, "{left} left, {} there", events.len());
    recorder.record(&about("Pod", "default", "x"), warning());
    let stats = recorder.stats();
    assert_eq!(stats.created + stats.dropped_failed, 100);
    assert_eq!(stats.dropped_shut_down, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_a_failure_is_not_repeated() {
    let bench = Bench::new(APIS[0]).await;
    bench.server.fault(Fault::internal_error().always());
    bench.recorder.record(&about("Pod", "default", "x"), warning());
    let begin = Instant::now();
    let server = bench.server.clone();
    bench.stopped().await;
    assert_eq!((server.requests().len(), begin.elapsed()), (1, Duration::ZERO));
}

/// A sink that counts.
#[derive(Clone, Default)]
struct Counting {
    writes: Arc<AtomicUsize>,
    panics: bool,
}

impl EventSink for Counting {
    fn write(&self, _: Write) -> BoxFuture<'_, Result<(), SinkError>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "the sink panics");
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_loses_that_event_and_no_other() {
    let sink = Counting { panics: true, ..Counting::default() };
    let (recorder, writer) = Recorder::builder(sink.clone(), "c").build();
    let stop = CancellationToken::new();
    let writing = tokio::spawn(writer.run(stop.clone()));
    for name in ["x", "y"] {
        recorder.record(&about("Pod", "default", name), warning());
        sleep(secs(1)).await;
    }
    assert_eq!((sink.writes.load(Ordering::Relaxed), recorder.stats().dropped_refused), (2, 2));
    stop.cancel();
    assert_eq!(writing.await.unwrap().left, 0);
}

#[test]
fn recording_needs_no_runtime_and_no_writer() {
    let (recorder, writer) = Recorder::builder(Counting::default(), "c").build();
    recorder.record(&about("Pod", "default", "x"), warning());
    drop(writer);
    recorder.record(&about("Pod", "default", "x"), warning());
    let stats = recorder.stats();
    assert_eq!((stats.recorded, stats.dropped_failed, stats.dropped_shut_down), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn two_recorders_count_each_for_itself() {
    let server = ApiServer::start().await;
    for instance in ["one", "two"] {
        let (recorder, writer) = Recorder::builder(server.client(), "c").instance(instance).build();
        let stop = CancellationToken::new();
        recorder.record(&about("Pod", "default", "x"), warning());
        stop.cancel();
        assert_eq!(writer.run(stop).await.left, 0);
    }
    assert_eq!(server.count(APIS[0].1), 2);
}

#[test]
fn recording_races_with_the_stop_and_every_event_is_accounted_for() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for _ in 0..20 {
        let sink = Counting::default();
        let (recorder, writer) = Recorder::builder(sink.clone(), "c").build();
        let stop = CancellationToken::new();
        let writing = runtime.spawn(writer.run(stop.clone()));
        std::thread::scope(|scope| {
            for task in 0..8 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    for number in 0..50 {
                        recorder.record(&about("Pod", "default", &format!("x{task}-{number}")), warning());
                    }
                });
            }
            stop.cancel();
        });
        let left = runtime.block_on(writing).unwrap().left;
        let stats = recorder.stats();
        assert_eq!((left, stats.recorded), (0, 400));
        assert_eq!(stats.created + stats.dropped_shut_down, 400, "{stats:?}");
        assert_eq!(sink.writes.load(Ordering::Relaxed) as u64, stats.created);
    }
}

/// A clock of the user's may look at the recorder, log by it, or panic: no lock is held meanwhile.
#[tokio::test(start_paused = true)]
async fn the_wall_clock_may_use_the_recorder() {
    let recorder: Arc<std::sync::OnceLock<Recorder>> = Arc::default();
    let used = Arc::clone(&recorder);
    let wall_clock = move || {
        if let Some(recorder) = used.get() {
            let _ = recorder.stats();
        }
        k8s_openapi::jiff::Timestamp::from_second(1_700_000_000).unwrap_or_default()
    };
    let bench = Bench::with(APIS[0], |builder| builder.wall_clock(wall_clock)).await;
    recorder.set(bench.recorder.clone()).unwrap();
    bench.recorder.record(&about("Pod", "default", "web"), warning());
    bench.stop.cancel();
    assert_eq!(bench.writing.await.unwrap().left, 0);
    assert_eq!(bench.recorder.stats().created, 1, "{:?}", bench.recorder.stats());
}
