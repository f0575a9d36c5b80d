//! What users' code may do to a controller, and what they may ask for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewire_apiserver::ApiServer;
use kubewire_controller::{
    Attempt, Channel, Controller, ControllerOptions, EnqueueRequestForObject, Event, Failure, ListQuery, Manager,
    ManagerOptions, Outcome, ReadError, Request, StartError, StreamSource, TerminalError, map, watched,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, Running, pass, request, settle, writes};

const QUIET: Duration = Duration::from_millis(1);

async fn server() -> ApiServer {
    let server = ApiServer::start().await;
    server.create("configmaps", json!({"metadata": {"namespace": "default", "name": "a"}})).unwrap();
    server
}

#[tokio::test(start_paused = true)]
async fn a_map_function_may_ask_for_a_hundred_thousand_requests_at_once() {
    let server = server().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let configs = manager.cache().watch::<Arc<ConfigMap>>().unwrap();
    let seen = Diary::default();
    let all = map(|_: &Arc<ConfigMap>| (0..100_000).chain(0..100_000).map(|n| request(&n.to_string())));
    let builder = Controller::builder().named("many").watches(&configs, all);
    builder.complete(&manager, writes(&seen)).unwrap();
    let running = manager.spawn(CancellationToken::new());
    manager.wait_idle(QUIET).await.unwrap();
    let lines = seen.lines();
    assert_eq!(lines.len(), 100_000, "each once");
    assert!(lines.iter().enumerate().all(|(n, line)| *line == n.to_string()), "in order");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_costs_the_events_that_it_was_asked_about() {
    let server = server().await;
    server.create("configmaps", json!({"metadata": {"namespace": "default", "name": "bad"}})).unwrap();
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let configs = manager.cache().watch::<Arc<ConfigMap>>().unwrap();
    let panics = |event: &Event<'_, Arc<ConfigMap>>| {
        assert_ne!(event.key().name(), "bad");
        true
    };
    let seen = Diary::default();
    Controller::builder().for_(watched(&configs).when(panics)).complete(&manager, writes(&seen)).unwrap();
    let running = manager.spawn(CancellationToken::new());
    manager.wait_idle(QUIET).await.unwrap();
    server.create("configmaps", json!({"metadata": {"namespace": "default", "name": "c"}})).unwrap();
    manager.wait_idle(QUIET).await.unwrap();
    assert_eq!(seen.lines(), ["a", "c"]);
    let panics: u64 = configs.status()[0].handlers.iter().map(|handler| handler.panics).sum();
    assert_eq!(panics, 1, "told by the informer");
    running.stop().await.unwrap();
}

/// An error that panics whenever somebody looks at it.
#[derive(Debug)]
struct Hostile {
    of_text: bool,
    of_source: bool,
    of_drop: bool,
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.of_text, "no text");
        f.write_str("hostile")
    }
}

impl std::error::Error for Hostile {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        assert!(!self.of_source, "no source");
        None
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        if self.of_drop && !std::thread::panicking() {
            panic!("no end");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_it_is_told_or_dropped_is_an_error_and_its_request_comes_back() {
    // Somebody reads its text.
    let reads = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let _reads = tracing::subscriber::set_default(reads);
    for (of_text, of_source, of_drop) in [(true, false, false), (false, true, false), (false, false, true)] {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let running = Running::start(ControllerOptions::new(), move |_: Request, _: Attempt| {
            let fails = counted.fetch_add(1, Ordering::Relaxed) < 2;
            async move { if fails { Err(Hostile { of_text, of_source, of_drop }) } else { Ok(Outcome::Done) } }
        });
        running.add("web");
        pass(1000).await;
        assert_eq!(tries.load(Ordering::Relaxed), 3, "{of_text} {of_source} {of_drop}");
        assert_eq!((running.results("error"), running.results("success")), (2.0, 1.0));
        assert_eq!(running.requeues("web"), 0);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_attempt_holds_may_panic_when_it_ends() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("on drop");
        }
    }
    let running = Running::start(ControllerOptions::new(), |_: Request, attempt: Attempt| async move {
        let held = PanicsOnDrop;
        if attempt.failures() > 0 {
            std::mem::forget(held);
        }
        Ok::<_, std::io::Error>(Outcome::Done)
    });
    running.add("web");
    pass(1000).await;
    assert_eq!((running.counted("reconcile_panics_total"), running.results("success")), (1.0, 1.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_returns_after_the_stop_counts_and_its_request_stays_undone() {
    let seen = Diary::default();
    let writes = seen.clone();
    let running = Running::start(ControllerOptions::new(), move |_: Request, attempt: Attempt| {
        let seen = writes.clone();
        async move {
            attempt.stopping().cancelled().await;
            pass(1000).await;
            seen.write("returned");
            Ok::<_, std::io::Error>(Outcome::RequeueAfter(Duration::ZERO))
        }
    });
    running.add("web");
    settle().await;
    let controller = running.controller.clone();
    running.stop().await;
    assert_eq!(seen.lines(), ["returned"]);
    assert!(controller.queue().queue().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_stream_ends_leaves_the_controller_as_it_is() {
    let seen = Diary::default();
    let pods = Channel::<Arc<Pod>>::new();
    let ended = StreamSource::new("ended", futures::stream::empty::<Arc<Pod>>(), EnqueueRequestForObject);
    let controller = Controller::builder()
        .named("pods")
        .watches_source(ended)
        .watches_source(pods.source("pods", EnqueueRequestForObject))
        .build(writes(&seen))
        .unwrap();
    let running = Running::of(controller, Default::default());
    settle().await;
    let pod = serde_json::from_value::<Pod>(json!({"metadata": {"namespace": "default", "name": "web"}})).unwrap();
    pods.send(Arc::new(pod)).await.unwrap();
    settle().await;
    assert_eq!(seen.lines(), ["web"]);
    drop(pods);
    settle().await;
    assert!(!running.is_finished());
    running.add("by hand");
    settle().await;
    assert_eq!(seen.lines(), ["web", "by hand"]);
    running.stop().await;
}

/// What is logged, as text.
#[derive(Clone, Default)]
struct Log(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_panics_or_ends_is_told_with_its_name() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on drop"));
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let reads = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _reads = tracing::subscriber::set_default(reads);
    let panics = futures::stream::poll_fn(|_| -> std::task::Poll<Option<Arc<Pod>>> {
        std::panic::resume_unwind(Box::new("out of order"))
    });
    let held = PanicsOnDrop;
    let panics_on_drop = futures::stream::poll_fn(move |_| {
        let _held = &held;
        std::task::Poll::Ready(None::<Arc<Pod>>)
    });
    let ends = futures::stream::empty::<Arc<Pod>>();
    let goes_on = futures::stream::pending::<Arc<Pod>>();
    let seen = Diary::default();
    let controller = Controller::new("pods", writes(&seen), ControllerOptions::new());
    controller.watch(StreamSource::new("panics", panics, EnqueueRequestForObject)).await.unwrap();
    let running = Running::of(controller, Default::default());
    settle().await;
    let line = log.take();
    assert!(line.contains("ERROR") && line.contains("a source panicked"), "{line}");
    assert!(line.contains(r#"source="panics" controller="pods" panic="out of order""#), "{line}");
    running.controller.watch(StreamSource::new("drop", panics_on_drop, EnqueueRequestForObject)).await.unwrap();
    settle().await;
    let line = log.take();
    assert!(line.contains(r#"source="drop" controller="pods" panic="on drop""#), "{line}");
    running.controller.watch(StreamSource::new("ends", ends, EnqueueRequestForObject)).await.unwrap();
    running.controller.watch(StreamSource::new("goes on", goes_on, EnqueueRequestForObject)).await.unwrap();
    settle().await;
    let line = log.take();
    assert!(
        line.contains(r#"INFO"#) && line.contains(r#"a source has ended source="ends" controller="pods""#),
        "{line}"
    );
    running.add("web");
    settle().await;
    assert_eq!(seen.lines(), ["web"]);
    running.stop().await;
    let line = log.take();
    assert!(!line.contains("goes on"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn zero_workers_and_a_time_out_of_zero_are_the_defaults() {
    let seen = Diary::default();
    let options = ControllerOptions::new().max_concurrent_reconciles(0).reconcile_timeout(Duration::ZERO);
    let slow = seen.clone();
    let running = Running::start(options, move |request: Request, attempt: Attempt| {
        let seen = slow.clone();
        async move {
            assert_eq!(attempt.deadline(), None);
            pass(3_600_000).await;
            seen.write(request.name());
            Ok::<_, std::io::Error>(Outcome::Done)
        }
    });
    running.add("web");
    pass(3_600_001).await;
    assert_eq!(seen.lines(), ["web"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_too_early_twice_or_in_two_places_is_told_what_to_do() {
    let server = server().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let configs = manager.cache().watch::<Arc<ConfigMap>>().unwrap();
    // Before the start.
    let error = configs.list(&ListQuery::all()).unwrap_err();
    assert!(matches!(error, ReadError::NotStarted { .. }), "{error}");
    assert!(error.to_string().contains("add the cluster to a manager, and read once that has started"), "{error}");
    let seen = Diary::default();
    let controller = Controller::builder().for_(&configs).complete(&manager, writes(&seen)).unwrap();
    // The same name.
    let error = Controller::builder().for_(&configs).complete(&manager, writes(&seen)).unwrap_err();
    assert!(error.to_string().contains("give one of them another name"), "{error}");
    let running = manager.spawn(CancellationToken::new());
    manager.wait_idle(QUIET).await.unwrap();
    assert_eq!(configs.list(&ListQuery::all()).unwrap().len(), 1);
    // The manager twice.
    let error = manager.spawn(CancellationToken::new()).join().await.unwrap_err();
    assert!(matches!(error.failures(), [Failure::AlreadyStarted]), "{error}");
    // One controller in two managers.
    let other = Manager::new(server.client(), ManagerOptions::new());
    other.add(controller).unwrap();
    let error = other.spawn(CancellationToken::new()).join().await.unwrap_err();
    assert!(matches!(error.find(), Some(StartError::AlreadyStarted { .. })), "{error}");
    // An index that nobody has added.
    let error = configs.list(&ListQuery::all().by_index("owner", "u")).unwrap_err();
    assert!(error.to_string().contains("indexed_by_owner"), "{error}");
    running.stop().await.unwrap();
    // After the end.
    assert_eq!(configs.list(&ListQuery::all()).unwrap().len(), 1, "what was kept is there");
    let error = manager.cache().watch::<Arc<Pod>>().unwrap_err();
    assert!(error.to_string().contains("make a new one"), "{error}");
    let error = Controller::builder().for_(&configs).named("late").complete(&manager, writes(&seen)).unwrap_err();
    assert!(error.to_string().contains("make a new one"), "{error}");
    assert!(manager.wait_idle(QUIET).await.is_err(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_told_once_and_an_idle_manager_has_nothing_left_to_do() {
    let server = server().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let configs = manager.cache().watch::<Arc<ConfigMap>>().unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let reconcile = move |_: Request, attempt: Attempt| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let error = std::io::Error::other("no");
            Err::<Outcome, kubewire_controller::BoxError>(match attempt.failures() {
                0..3 => error.into(),
                _ => TerminalError::new(error).into(),
            })
        }
    };
    Controller::builder().for_(&configs).complete(&manager, reconcile).unwrap();
    let running = manager.spawn(CancellationToken::new());
    // Longer than the delays of the tries, which are 5, 10 and 20 ms.
    manager.wait_idle(Duration::from_millis(50)).await.unwrap();
    assert_eq!(tries.load(Ordering::Relaxed), 4);
    running.stop().await.unwrap();
}
