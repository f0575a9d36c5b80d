//! Objects that cannot be decoded are skipped, counted and told of, and never taken for deleted.

use std::sync::Arc;
use std::time::Duration;

use kubewire_informer::reflector::{ReflectorErrorKind, ReflectorOptions};
use kubewire_listwatch::{EventKind, ListMeta, WatchEvent};
use parking_lot::Mutex;

use super::fake_server::{bad_event, bad_item, pod};
use super::running::Running;

#[tokio::test(start_paused = true)]
async fn a_bad_object_of_a_list_is_skipped_and_kept() {
    let running = Running::start(false, ReflectorOptions::new());
    let items = vec![Ok(pod("a@1")), Err(bad_item(Some("b"), Some("2"))), Ok(pod("c@3"))];
    running.server.list().await.items(items, ListMeta::new("10"));
    running.store.until("list 10: a@1 c@3 keep b").await;
    assert_eq!(running.monitor.status().undecodable, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_bad_object_that_has_no_name_is_incomplete() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.items(vec![Ok(pod("a@1")), Err(bad_item(None, None))], ListMeta::new("10"));
    running.store.until("list 10: a@1 incomplete").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_is_skipped_and_the_list_is_complete() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.ok(&["a@1", "@2"], "10");
    running.store.until("list 10: a@1").await;
    assert_eq!(running.monitor.status().not_taken, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_event_moves_the_version_where_it_has_one_and_a_bad_delete_still_deletes() {
    let running = Running::start(false, ReflectorOptions::new());
    let stream = running.server.list_and_watch(&["a@1"], "10").await;
    stream.send("+d@11");
    stream.event(bad_event(EventKind::Added, Some("e"), Some("12")));
    stream.send("+f@13");
    stream.event(bad_event(EventKind::Modified, Some("e"), None));
    stream.event(WatchEvent::Unknown { kind: "PING".to_owned() });
    stream.event(bad_event(EventKind::Deleted, Some("e"), Some("15")));
    let told = running.store.until("version 15").await;
    assert_eq!(told[1..], ["+d@11", "version 11", "version 12", "+f@13", "version 13", "-ns/e", "version 15"]);
    let status = running.monitor.status();
    assert_eq!((status.undecodable, status.unknown_events), (3, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bad_initial_events_are_kept_unless_a_good_state_follows() {
    let running = Running::start(true, ReflectorOptions::new());
    let stream = running.server.watch().await.open();
    stream.event(bad_event(EventKind::Added, Some("bad"), Some("1")));
    stream.event(bad_event(EventKind::Added, Some("repaired"), Some("2")));
    stream.event(bad_event(EventKind::Added, Some("gone"), Some("3")));
    stream.event(bad_event(EventKind::Deleted, Some("gone"), Some("4")));
    stream.send("~repaired@5 +a@6");
    stream.event(bad_event(EventKind::Modified, Some("a"), Some("7")));
    stream.send("b@8!");
    running.store.until("list 8: repaired@5 a@6 keep bad").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_handler_is_told_of_each_with_resource_key_and_field() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let options = ReflectorOptions::new().error_handler(move |error| {
        assert!(matches!(error.kind(), ReflectorErrorKind::Item(_)));
        sink.lock().push(error.to_string());
    });
    let running = Running::start(false, options);
    running.server.list().await.items(vec![Err(bad_item(Some("b"), None))], ListMeta::new("10"));
    let stream = running.server.watch().await.open();
    stream.event(bad_event(EventKind::Modified, Some("c"), None));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let told = told.lock().clone();
    assert_eq!(
        told,
        ["b", "c"].map(|name| format!(
            "pods: skipped an object that cannot be decoded: ns/{name}: spec.replicas: a text where a number belongs"
        ))
    );
    running.stop().await;
}
