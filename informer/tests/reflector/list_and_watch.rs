//! What reaches the store, in list and watch mode.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kubewire_informer::reflector::{ReflectorOptions, RestartCause};
use kubewire_listwatch::{ErrorClass, ListMeta};

use super::fake_server::{refused, status};
use super::fake_store::FakeStore;
use super::running::Running;

#[tokio::test(start_paused = true)]
async fn a_list_goes_to_the_store_at_once_and_the_watch_begins_there() {
    let running = Running::start(false, ReflectorOptions::new());
    let list = running.server.list().await;
    assert_eq!((list.version(), list.options.limit, &list.options.continue_token), ("0", Some(500), &None));
    list.ok(&["a@3", "b@7"], "10");
    let watch = running.server.watch().await;
    assert_eq!(watch.version(), "10");
    assert!(watch.options.allow_bookmarks && !watch.options.send_initial_events);
    assert!(watch.options.resource_version_match.is_none());
    assert!((300..600).contains(&watch.options.timeout.as_secs()) && watch.options.timeout.subsec_nanos() == 0);
    assert_eq!(running.store.take(), ["list 10: a@3 b@7"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_reach_the_store_in_order_and_the_last_version_is_that_of_the_last_event() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&["foo@1"], "10").await;
    stream.send("-foo@20 ~bar@55 +baz@32");
    let told = running.store.until("version 32").await;
    assert_eq!(told, ["list 10: foo@1", "-foo@20", "version 20", "~bar@55", "version 55", "+baz@32", "version 32"]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(running.monitor.resource_version(), "32");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_store_is_told_the_version_after_each_event_bookmarks_included() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&[], "10").await;
    stream.send("+a@10 +b@20 b@30 -a@40");
    let told = running.store.until("version 40").await;
    let versions: Vec<_> = told.iter().filter(|word| word.starts_with("version")).collect();
    assert_eq!(versions, ["version 10", "version 20", "version 30", "version 40"]);
    assert!(told.contains(&"bookmark 30".to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_are_put_together_and_a_full_list_takes_the_place_of_a_partial_one() {
    let running = Running::start(false, ReflectorOptions::new().page_size(2));
    running.server.list().await.page(&["a@1", "b@2"], ListMeta::new("10").continued("t1"));
    running.server.list().await.page(&["c@3", "d@4"], ListMeta::new("10").continued("t2"));
    running.server.list().await.fail(status(410, "Expired"));
    let full = running.server.list().await;
    assert_eq!((full.version(), full.options.limit), ("0", None));
    full.ok(&["a@1", "c@3", "e@11"], "11");
    let mut stream = running.server.watch().await.open();
    assert_eq!(running.store.take(), ["list 11: a@1 c@3 e@11"]);
    stream.send("b@12");
    stream.close();
    running.server.watch().await.fail(status(410, "Expired"));
    for (token, pods) in [("C1", ["a@1", "b@2"]), ("C2", ["c@3", "d@4"])] {
        running.server.list().await.page(&pods, ListMeta::new("13").continued(token));
    }
    running.server.list().await.ok(&["e@5"], "14");
    running.store.until("list 13: a@1 b@2 c@3 d@4 e@5").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_cycle_leaves_the_store_as_it_is() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&["a@1"], "10").await;
    stream.error(status(410, "Expired"));
    running.server.list().await.fail(status(500, "InternalError"));
    running.server.list().await.page(&["b@2"], ListMeta::new("11").continued("t"));
    running.server.list().await.fail(status(500, "InternalError"));
    running.server.list().await.ok(&["a@1", "b@2"], "11");
    running.server.watch().await.fail(status(403, "Forbidden"));
    let list = running.server.list().await;
    assert_eq!(list.version(), "11");
    assert_eq!(running.store.take(), ["list 10: a@1", "list 11: a@1 b@2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_event_ends_the_stream_by_us_and_a_list_follows() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&["bad@1", "b@2", "c@3"], "3").await;
    stream.send("+d@4");
    stream.error(kubewire_listwatch::RequestError::new(ErrorClass::Decode, "not a status"));
    let list = running.server.list().await;
    assert_eq!((list.version(), stream.stops()), ("4", 1));
    list.ok(&["b@2", "c@3", "d@4"], "5");
    running.store.until("list 5: b@2 c@3 d@4").await;
    assert_eq!(running.server.watch().await.version(), "5");
    assert_eq!(running.monitor.resource_version(), "5");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_fails_loses_the_event_but_not_the_version() {
    let store = FakeStore::with_poison("bad");
    let running = Running::with_store(false, ReflectorOptions::new(), store);
    let stream = running.server.list_and_watch(&["a@1", "bad@2"], "10").await;
    stream.send("+bad@11 ~a@12 ~bad@13 -bad@14");
    let told = running.store.until("version 14").await;
    assert_eq!(told, ["list 10: a@1 keep bad", "version 11", "~a@12", "version 12", "version 13", "version 14"]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((running.monitor.status().not_taken, running.monitor.resource_version()), (4, "14".to_owned()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_had_events_is_opened_again_without_a_delay() {
    let running = Running::start(false, ReflectorOptions::new());
    let mut stream = running.server.list_and_watch(&[], "10").await;
    stream.send("+a@11");
    stream.close();
    let before = tokio::time::Instant::now();
    assert_eq!(running.server.watch().await.version(), "11");
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(running.monitor.status().restarts_by(RestartCause::Closed), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_at_the_start_and_as_an_event_ask_for_a_delay_each_and_for_no_list() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&[], "10");
    let start = tokio::time::Instant::now();
    running.server.watch().await.fail(status(429, "TooManyRequests"));
    let watch = running.server.watch().await;
    assert!(start.elapsed() >= Duration::from_millis(800));
    let stream = watch.open();
    let start = tokio::time::Instant::now();
    stream.error(status(429, "TooManyRequests"));
    let mut stream = running.server.watch().await.open();
    assert!(start.elapsed() >= Duration::from_millis(1600));
    stream.send("b@11");
    stream.close();
    running.server.watch().await;
    let status = running.monitor.status();
    assert_eq!(status.restarts_by(RestartCause::Failed(ErrorClass::Throttled)), 2);
    assert_eq!((status.list_requests, status.watch_requests), (1, 4));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn four_times_too_many_requests_make_one_list_and_five_watches() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&[], "10");
    for _ in 0..4 {
        let watch = running.server.watch().await;
        assert_eq!(watch.version(), "10");
        watch.fail(status(429, "TooManyRequests"));
    }
    let _stream = running.server.watch().await.open();
    let (lists, watches) = (&running.server.lists, &running.server.watches);
    assert_eq!((lists.load(Ordering::Relaxed), watches.load(Ordering::Relaxed)), (1, 5));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resync_checks_come_by_their_period_and_ask_whether_they_are_wanted() {
    let wanted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (wanted_too, asked_too) = (Arc::clone(&wanted), Arc::clone(&asked));
    let options = ReflectorOptions::new().resync_period(Duration::from_secs(10)).should_resync(move || {
        asked_too.fetch_add(1, Ordering::Relaxed);
        wanted_too.load(Ordering::Relaxed)
    });
    let running = Running::start(false, options);
    let _stream = running.server.list_and_watch(&[], "10").await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!((asked.load(Ordering::Relaxed), running.store.resyncs.load(Ordering::Relaxed)), (2, 0));
    wanted.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((asked.load(Ordering::Relaxed), running.store.resyncs.load(Ordering::Relaxed)), (4, 2));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_should_resync_leaves_out_that_resync_only() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    let options = ReflectorOptions::new().resync_period(Duration::from_secs(10)).should_resync(move || {
        assert!(asked.fetch_add(1, Ordering::Relaxed) > 0, "not the first time");
        true
    });
    let running = Running::start(false, options);
    let _stream = running.server.list_and_watch(&[], "10").await;
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(running.store.resyncs.load(Ordering::Relaxed), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resyncs_go_on_while_the_next_watch_waits() {
    let running = Running::start(false, ReflectorOptions::new().resync_period(Duration::from_secs(1)));
    running.server.list().await.ok(&[], "10");
    for _ in 0..4 {
        running.server.watch().await.fail(refused());
    }
    let _watch = running.server.watch().await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(running.store.resyncs.load(Ordering::Relaxed) >= 8);
    running.stop().await;
}
