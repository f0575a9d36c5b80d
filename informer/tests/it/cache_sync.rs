//! Waiting for the first lists, and the reasons why they do not come.

use std::time::Duration;

use futures::StreamExt;
use kubewire_informer::{
    CacheSync, CacheSyncReason, Hindrance, wait_for_cache_sync, wait_for_cache_sync_unless_refused,
};
use kubewire_listwatch::ErrorClass;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Source, options, settle};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn it_returns_when_all_are_synced_even_after_the_signal() {
    let stop = CancellationToken::new();
    let informers = [Source::new().informer(), Source::new().informer()];
    let _running = informers.each_ref().map(|informer| informer.start(CancellationToken::new()));
    wait_for_cache_sync(&stop, MINUTE, &informers).await.unwrap();
    stop.cancel();
    wait_for_cache_sync(&stop, MINUTE, &informers).await.unwrap();
    wait_for_cache_sync::<dyn CacheSync>(&stop, MINUTE, []).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_time_out_names_each_that_is_not_synced_with_its_last_error_and_the_tries() {
    let stop = CancellationToken::new();
    let (good, bad) = (Source::new(), Source::new());
    bad.fail_always(ErrorClass::Forbidden, "pods is forbidden: 403");
    let good = good.informer();
    let bad = bad.informer_with(options().description("secret pods"));
    let never = Source::new().informer_with(options().description("idle pods"));
    let _running = [good.start(stop.clone()), bad.start(stop.clone())];
    let begin = Instant::now();
    let error = wait_for_cache_sync(&stop, Duration::from_secs(4), [&good, &bad, &never]).await.unwrap_err();
    assert_eq!(begin.elapsed(), Duration::from_secs(4));
    assert_eq!(error.reason, CacheSyncReason::TimedOut(Duration::from_secs(4)));
    let text = error.to_string();
    assert!(text.starts_with("the caches are not synced after 4s: secret pods: "), "{text}");
    assert!(text.contains("forbidden: pods is forbidden: 403 (") && text.contains(" tries)"), "{text}");
    assert!(text.ends_with("; idle pods: not started (call `start`)"), "{text}");
    assert!(matches!(error.unsynced[0].1, Hindrance::Failing { tries: 2.., .. }));
    assert!(good.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_failing_list_that_recovers_ends_the_wait() {
    let stop = CancellationToken::new();
    let source = Source::new();
    (0..3).for_each(|_| source.fail_list(ErrorClass::Unavailable));
    let informer = source.informer();
    let log = Recorder::new();
    let registration = informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(stop.clone());
    settle().await;
    assert!(!informer.has_synced() && !registration.has_synced());
    wait_for_cache_sync(&stop, MINUTE, [&registration as &dyn CacheSync, &informer]).await.unwrap();
    assert_eq!(source.requests().0, 4);
    let error = informer.status().last_error().cloned().unwrap();
    assert_eq!(error.error.class(), ErrorClass::Unavailable, "stays readable");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_defined_later_is_picked_up() {
    let stop = CancellationToken::new();
    let source = Source::new();
    source.fail_always(ErrorClass::NotFound, "no such resource");
    let informer = source.informer();
    let _running = informer.start(stop.clone());
    tokio::time::sleep(Duration::from_secs(3)).await;
    source.stop_failing();
    wait_for_cache_sync(&stop, Duration::from_secs(7), [&informer]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_signal_ends_the_wait_at_once() {
    let stop = CancellationToken::new();
    let informer = Source::new().informer();
    let waiting = tokio::spawn({
        let (stop, informer) = (stop.clone(), informer.clone());
        async move { wait_for_cache_sync(&stop, MINUTE, [&informer]).await }
    });
    settle().await;
    let begin = Instant::now();
    stop.cancel();
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(error.to_string(), "stopped before the caches were synced: pods: not started (call `start`)");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_informer_ends_the_wait_at_once() {
    let source = Source::new();
    source.fail_always(ErrorClass::Forbidden, "no");
    let informer = source.informer();
    let running = informer.start(CancellationToken::new());
    let waiting = tokio::spawn({
        let informer = informer.clone();
        async move { wait_for_cache_sync(&CancellationToken::new(), MINUTE, [&informer]).await }
    });
    settle().await;
    drop(running);
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.reason, CacheSyncReason::Stopped);
    assert_eq!(error.to_string(), "an informer stopped before the caches were synced: pods: stopped");
}

#[tokio::test(start_paused = true)]
async fn it_can_fail_at_once_where_the_server_refuses() {
    for class in [ErrorClass::Forbidden, ErrorClass::NotFound, ErrorClass::Unauthorized] {
        let stop = CancellationToken::new();
        let source = Source::new();
        source.fail_always(class, "no");
        let informer = source.informer();
        let _running = informer.start(stop.clone());
        let begin = Instant::now();
        let error = wait_for_cache_sync_unless_refused(&stop, MINUTE, [&informer]).await.unwrap_err();
        assert!(begin.elapsed() <= Duration::from_millis(200));
        assert_eq!(error.reason, CacheSyncReason::Refused);
        assert!(error.to_string().ends_with("(1 try)"), "{error}");
    }
    let (stop, source) = (CancellationToken::new(), Source::new());
    source.fail_list(ErrorClass::Unavailable);
    let informer = source.informer();
    let _running = informer.start(stop.clone());
    wait_for_cache_sync_unless_refused(&stop, MINUTE, [&informer]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn informer_and_handler_sync_one_after_the_other() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let mut stream = informer.subscribe().unwrap();
    let registration = stream.registration();
    let (stop, brief) = (CancellationToken::new(), Duration::from_secs(1));
    let _running = informer.start(stop.clone());
    wait_for_cache_sync(&stop, brief, [&informer]).await.unwrap();
    let error = wait_for_cache_sync(&stop, brief, [&registration]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the caches are not synced after 1s: subscription of pods: no failure, but not done yet"
    );
    stream.next().await;
    assert!(futures::poll!(stream.next()).is_pending());
    wait_for_cache_sync(&stop, brief, [&registration]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_error_handler_is_told_of_lists_that_fail_and_may_panic() {
    let source = Source::new();
    source.fail_always(ErrorClass::Forbidden, "Access Denied");
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let informer = source.informer_with(options().error_handler(move |error| {
        tx.send((error.class(), error.to_string())).unwrap();
        panic!("as an example");
    }));
    let _running = informer.start(CancellationToken::new());
    let (class, text) = rx.recv().await.unwrap();
    assert_eq!(class, ErrorClass::Forbidden);
    assert!(text.contains("pods: cannot list: forbidden: Access Denied"), "{text}");
    source.stop_failing();
    informer.synced().await.unwrap();
    assert!(informer.status().reflector.handler_panics >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_its_informer_says_what_is_wrong_with_that() {
    let source = Source::new();
    let informer = source.informer();
    let handler = kubewire_informer::HandlerOptions::new().name("pod counter");
    let registration = informer.add_handler_with(Recorder::new(), handler).unwrap();
    let stop = CancellationToken::new();
    let wait = || wait_for_cache_sync(&stop, Duration::from_millis(1), [&registration]);
    assert!(wait().await.unwrap_err().to_string().ends_with(": pod counter of pods: not started (call `start`)"));
    source.fail_always(ErrorClass::Forbidden, "no");
    let _running = informer.start(stop.clone());
    let error = wait().await.unwrap_err().to_string();
    assert!(error.ends_with(": pod counter of pods: cannot list: forbidden: no (1 try)"), "{error}");
    registration.remove();
    let error = wait().await.unwrap_err();
    assert_eq!(error.reason, CacheSyncReason::Stopped);
}
