//! What an informer logs of its handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kubewire_informer::{HandlerOptions, InformerOptions, ResourceEventHandlerFuncs};
use kubewire_ratelimit::ManualClock;
use tokio_util::sync::CancellationToken;

use super::handlers::{gated, until};
use super::recorder::Recorder;
use super::source::{PodRef, Source, options, settle};
use crate::log_lines::{LogLines, field};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_a_thousand_times_writes_few_lines_that_count_the_others() {
    let log = LogLines::gather();
    let source = Source::new();
    let informer = source.informer();
    let panics = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&panics);
    let handler = ResourceEventHandlerFuncs::new().on_add(move |_: PodRef, _| {
        assert!(!switch.load(Ordering::Relaxed), "as the test wants");
    });
    let handler = informer.add_handler_with(handler, HandlerOptions::new().name("web")).unwrap();
    let running = informer.start(CancellationToken::new());
    for n in 0..1000 {
        source.put(&format!("ns/{n}"), "1");
    }
    settle().await;
    assert_eq!(handler.status().panics, 1000);
    let lines = log.with("an event handler panicked");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let place = r#"handler{resource="pods" handler="web"}: "#;
    assert!(lines[0].contains(place) && lines[0].contains("as the test wants"), "{lines:?}");

    panics.store(false, Ordering::Relaxed);
    (0..10).for_each(|n| drop(source.put(&format!("ns/good-{n}"), "1")));
    settle().await;
    let over = log.with("has returned again");
    assert_eq!((over.len(), field(&over[0], "panics"), field(&over[0], "left_out")), (1, 1000, 999), "{over:?}");

    panics.store(true, Ordering::Relaxed);
    source.put("ns/last", "1");
    settle().await;
    running.stop();
    running.join().await;
    let last = log.with("more calls of this handler panicked");
    assert_eq!((last.len(), field(&last[0], "left_out")), (1, 1), "{last:?}");
}

/// A handler that never returns has a thread of its own; time is the test's.
#[tokio::test]
async fn a_blocked_handler_is_logged_shown_in_the_status_and_delays_nobody() {
    let log = LogLines::gather();
    let (time, source) = (ManualClock::new(), Source::new());
    source.put("ns/a", "1");
    let informer = source.informer_with(options().clock(time.clock()));
    let (blocked_log, fast_log) = (Recorder::new(), Recorder::new());
    let (gate, blocked) = gated(&blocked_log);
    let blocked = informer.add_handler_with(blocked, HandlerOptions::new().own_thread().name("blocked")).unwrap();
    let fast = informer.add_handler_with(fast_log.clone(), HandlerOptions::new().name("fast")).unwrap();
    let running = informer.start(CancellationToken::new());
    fast.synced().await.unwrap();
    let last = source.put("ns/b", "1");
    informer.wait_for_version(&last).await.unwrap();
    until("the fast one has all", || fast_log.len() == 2).await;
    until("the other one is at the first", || blocked.backlog() == 1).await;

    time.advance(29 * SECOND);
    tokio::task::yield_now().await;
    assert_eq!(log.with("does not come back").len(), 0);
    time.advance(SECOND);
    until("it is logged", || log.with("does not come back").len() == 1).await;
    let line = log.with("does not come back").remove(0);
    assert!(line.contains("handler=blocked") && line.contains(r#"resource="pods""#), "{line}");
    assert_eq!((field(&line, "busy_seconds"), field(&line, "backlog")), (30, 1), "{line}");
    let status = blocked.status();
    assert_eq!((status.busy_for, status.backlog, status.told), (Some(30 * SECOND), 1, 0));
    assert_eq!(fast.status().busy_for, None);
    let line = informer.status().to_string();
    assert!(line.contains("handlers: blocked backlog=1 busy=30s (not synced), fast backlog=0"), "{line}");

    // Hours of it are a few lines.
    for _ in 0..480 {
        time.advance(30 * SECOND);
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    let lines = log.with("does not come back").len();
    assert!((5..=32).contains(&lines), "{lines} lines in four hours");
    // Nobody waited for it: not the store, not the others, and no reader.
    let last = source.put("ns/c", "1");
    informer.wait_for_version(&last).await.unwrap();
    until("the fast one goes on", || fast_log.len() == 3).await;
    assert_eq!((informer.indexer().len(), blocked.backlog()), (3, 2));

    drop(gate);
    until("it has caught up", || blocked_log.len() == 3).await;
    until("it is seen", || {
        time.advance(30 * SECOND);
        log.with("the handler goes on").len() == 1
    })
    .await;
    assert_eq!(blocked.status().busy_for, None);
    running.stop();
    running.join().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_nobody_polls_is_logged_after_the_time_that_was_set() {
    let log = LogLines::gather();
    let source = Source::new();
    let informer = source.informer_with(options().slow_handler_after(5 * SECOND));
    let idle = informer.subscribe_with(HandlerOptions::new().name("idle")).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(log.len(), 0, "nothing waits for it");
    source.put("ns/a", "1");
    tokio::time::sleep(4 * SECOND).await;
    assert_eq!(log.len(), 0);
    tokio::time::sleep(SECOND + SECOND / 2).await;
    let lines = log.with("handler=idle");
    assert_eq!((lines.len(), field(&lines[0], "busy_seconds"), field(&lines[0], "backlog")), (1, 5, 1), "{lines:?}");
    assert!(idle.registration().status().busy_for >= Some(5 * SECOND));
}

#[tokio::test]
async fn a_stop_that_waits_for_a_blocked_handler_says_so() {
    let log = LogLines::gather();
    let (time, source) = (ManualClock::new(), Source::new());
    source.put("ns/a", "1");
    let informer = source.informer_with(options().clock(time.clock()));
    let (gate, blocked) = gated(&Recorder::new());
    let blocked = informer.add_handler_with(blocked, HandlerOptions::new().own_thread()).unwrap();
    let running = informer.start(CancellationToken::new());
    until("it is called", || blocked.status().busy_for.is_some() && blocked.backlog() == 0).await;
    running.stop();
    until("it is logged", || {
        time.advance(30 * SECOND);
        log.with("still waits for handlers").len() == 1
    })
    .await;
    drop(gate);
    running.join().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_logs_says_which_handler_it_is_and_an_informer_says_its_name() {
    let log = LogLines::gather();
    let source = Source::new();
    source.put("ns/a", "1");
    source.fail_list(kubewire_listwatch::ErrorClass::Unavailable);
    let name = kubewire_informer::InformerName::new("logs, its name").unwrap();
    let options: InformerOptions<PodRef> = options().informer_name(name);
    let informer = source.informer_with(options);
    let handler = ResourceEventHandlerFuncs::new().on_add(|pod: PodRef, _| tracing::info!("seen {}", pod.name));
    let handler = informer.add_handler_with(handler, HandlerOptions::new().name("web")).unwrap();
    let _running = informer.start(CancellationToken::new());
    handler.synced().await.unwrap();
    let line = log.with("seen a").remove(0);
    assert!(line.contains(r#"handler{resource="pods" handler="web"}: "#), "{line}");
    let line = log.with("cannot list").remove(0);
    assert!(line.contains(r#"reflector{resource="pods" name="logs, its name"}:list{"#), "{line}");
}
