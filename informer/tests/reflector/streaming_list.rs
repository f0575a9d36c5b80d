//! What reaches the store, by streaming lists.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kubewire_informer::reflector::{ReflectorOptions, ReflectorPhase, RestartCause};
use kubewire_listwatch::VersionMatch;

use super::fake_server::status;
use super::fake_store::FakeStore;
use super::running::Running;

#[tokio::test(start_paused = true)]
async fn the_first_request_asks_for_the_initial_events() {
    let running = Running::start(true, ReflectorOptions::new());
    let watch = running.server.watch().await;
    assert_eq!((watch.version(), watch.options.resource_version_match), ("", Some(VersionMatch::NotOlderThan)));
    assert!(watch.options.send_initial_events && watch.options.allow_bookmarks);
    assert!((300..600).contains(&watch.options.timeout.as_secs()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lister_watcher_without_streaming_lists_is_not_asked_for_one_nor_where_it_is_switched_off() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await;
    let running = Running::start(true, ReflectorOptions::new().watch_list(false));
    running.server.list().await;
}

#[tokio::test(start_paused = true)]
async fn the_net_result_of_the_initial_events_reaches_the_store_as_one_list() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    stream.send("+a@1 +b@2 +c@3 ~a@4 -b@5 b@6");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((running.store.take(), running.monitor.phase()), (vec![], ReflectorPhase::Listing));
    stream.send("b@7! ~c@8");
    assert_eq!(running.store.until("version 8").await, ["list 7: a@4 c@3", "~c@8", "version 8"]);
    let status = running.monitor.status();
    assert_eq!((status.phase, status.list_requests, status.watch_requests), (ReflectorPhase::Watching, 0, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_initial_object_is_transformed_once() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    stream.send("+a@1 +b@2 b@3! +c@4");
    running.store.until("version 4").await;
    assert_eq!(running.store.transforms.load(Ordering::Relaxed), 3, "client-go transforms 5 times");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_before_the_mark_is_gone_though_the_transform_refuses_it() {
    let running = Running::with_store(true, ReflectorOptions::new(), FakeStore::with_poison("bad"));
    let stream = running.server.watch().await.open();
    stream.send("+a@1 +bad@2 -bad@3 b@4!");
    running.store.until("list 4: a@1").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_an_incomplete_stream_brought_is_forgotten() {
    let running = Running::start(true, ReflectorOptions::new());
    let mut stream = running.server.watch().await.open();
    stream.send("+gone@1 +a@2");
    stream.close();
    let watch = running.server.watch().await;
    assert_eq!(watch.version(), "");
    let stream = watch.open();
    stream.send("+a@2 b@3!");
    assert_eq!(running.store.until("list 3: a@2").await.len(), 1);
    assert_eq!(running.monitor.status().restarts_by(RestartCause::NoEndMark), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_falls_back_to_a_list_at_once_and_forgets_what_was_gathered() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    stream.send("+gone@1");
    stream.error(status(500, "InternalError"));
    let list = running.server.list().await;
    assert_eq!((list.version(), list.options.limit, stream.stops()), ("0", Some(500), 1));
    list.ok(&["a@1"], "4");
    assert_eq!(running.server.watch().await.version(), "4");
    assert_eq!(running.store.take(), ["list 4: a@1"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_its_mark_is_given_up_in_time_and_a_list_syncs() {
    let options = ReflectorOptions::new().initial_events_timeout(Duration::from_secs(30));
    let running = Running::start(true, options);
    let stream = running.server.watch().await.open();
    let start = tokio::time::Instant::now();
    stream.send("+a@1 b@20 b@21");
    let list = running.server.list().await;
    assert_eq!((start.elapsed(), stream.stops()), (Duration::from_secs(30), 1));
    list.ok(&["a@1"], "21");
    running.store.until("list 21: a@1").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_trickle_in_keep_a_streaming_list_alive() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    for name in 0..10 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        stream.send(&format!("+p{name}@{name}"));
    }
    stream.send("b@20!");
    let told = running.store.until("list 20: p0@0 p1@1 p2@2 p3@3 p4@4 p5@5 p6@6 p7@7 p8@8 p9@9").await;
    assert_eq!(told.len(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_compared_with_an_ordinary_one_only_where_that_is_asked_for() {
    for (listed, told) in [(&["a@1", "b@2"][..], 0), (&["a@1", "b@3"], 1), (&["a@1"], 1)] {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counter = std::sync::Arc::clone(&count);
        let options = ReflectorOptions::new().check_streaming_lists(true).error_handler(move |error| {
            assert!(error.to_string().contains("differ, first in ns/b"), "{error}");
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let running = Running::start(true, options);
        running.server.watch().await.open().send("+a@1 +b@2 b@5!");
        let list = running.server.list().await;
        assert_eq!((list.version(), list.options.resource_version_match), ("5", Some(VersionMatch::Exact)));
        list.ok(listed, "5");
        running.store.until("list 5: a@1 b@2").await;
        assert_eq!(count.load(Ordering::Relaxed), told);
        running.stop().await;
    }
    let running = Running::start(true, ReflectorOptions::new());
    running.server.watch().await.open().send("+a@1 b@5!");
    running.store.until("list 5: a@1").await;
    assert!(running.server.is_quiet());
    running.stop().await;
}
