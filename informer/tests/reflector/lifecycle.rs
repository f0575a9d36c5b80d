//! Start, stop, drop and panic.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kubewire_informer::reflector::{Reflector, ReflectorOptions, ReflectorPhase, RunError};
use tokio_util::sync::CancellationToken;

use super::fake_server::{fake, refused, status};
use super::fake_store::FakeStore;
use super::running::Running;

#[tokio::test(start_paused = true)]
async fn stopped_before_it_starts_it_asks_for_nothing() {
    let (lister_watcher, server) = fake(false);
    let reflector = Reflector::new(lister_watcher, Arc::new(FakeStore::default()));
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(reflector.run(stop).await, Ok(()));
    assert!(server.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_a_hanging_list_at_once() {
    let running = Running::start(false, ReflectorOptions::new());
    let list = running.server.list().await;
    assert_eq!(running.monitor.phase(), ReflectorPhase::Listing);
    running.stop().await;
    assert!(list.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_a_watch_that_is_not_yet_open() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&[], "1");
    let watch = running.server.watch().await;
    running.stop().await;
    assert_eq!(watch.open().stops(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_open_watch_exactly_once() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&["a@1"], "1").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(running.monitor.phase(), ReflectorPhase::Watching);
    let watches = running.server.watches.load(Ordering::Relaxed);
    running.stop().await;
    assert_eq!((stream.stops(), watches), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_first_event_of_a_stream_ends_it_once_and_its_events_are_not_told() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&[], "1");
    let watch = running.server.watch().await;
    let stream = watch.open();
    stream.send("+a@2");
    let store = Arc::clone(&running.store);
    running.stop().await;
    assert_eq!((stream.stops(), store.take()), (1, vec!["list 1:".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_end_mark_leaves_no_trace_in_the_store() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    stream.send("+a@1");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let store = Arc::clone(&running.store);
    running.stop().await;
    assert_eq!((stream.stops(), store.take()), (1, Vec::<String>::new()));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_every_kind_of_sleep_at_once() {
    // After a failed list.
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.fail(status(500, "InternalError"));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(running.monitor.phase(), ReflectorPhase::BackingOff);
    running.stop().await;

    // Before the same watch again.
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&[], "1");
    running.server.watch().await.fail(refused());
    tokio::time::sleep(Duration::from_millis(10)).await;
    running.stop().await;

    // Before the same streaming list again: client-go sleeps on here.
    let running = Running::start(true, ReflectorOptions::new());
    running.server.watch().await.fail(status(429, "TooManyRequests"));
    tokio::time::sleep(Duration::from_millis(10)).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_ends_the_open_stream_and_says_stopped() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&[], "1").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    running.task.abort();
    assert!(running.task.await.expect_err("aborted").is_cancelled());
    assert_eq!((stream.stops(), running.monitor.phase()), (1, ReflectorPhase::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_lister_surfaces_as_the_error_of_run() {
    let (mut lister_watcher, server) = fake(false);
    lister_watcher.panics = true;
    let running = Running::with(lister_watcher, server, ReflectorOptions::new(), FakeStore::default());
    let RunError::Panicked { resource, message } =
        running.task.await.expect("no panic of the task").expect_err("an error")
    else {
        panic!("a panic")
    };
    assert_eq!((resource.as_str(), message.as_str()), ("pods", "no list today"));
    assert_eq!(running.monitor.phase(), ReflectorPhase::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_at_the_end_mark_ends_the_stream_too() {
    let store = FakeStore::that_panics_at_replace();
    let running = Running::with_store(true, ReflectorOptions::new(), store);
    let stream = running.server.watch().await.open();
    stream.send("+a@1 b@2!");
    assert!(running.task.await.expect("no panic of the task").is_err());
    assert_eq!(stream.stops(), 1);
    assert!(running.server.is_quiet(), "no list beside it");
}
