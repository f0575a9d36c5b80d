//! What a watch tells.

use std::time::Duration;

use futures::StreamExt;
use kubewire_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::raw::{get, next, rest, told, watch};

const PATH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

fn put(server: &ApiServer, name: &str, label: &str) -> String {
    let map = json!({"metadata": {"name": name, "namespace": "default", "labels": {"l": label}}});
    let stored = match server.get("configmaps", "default", name) {
        None => server.create("configmaps", map),
        Some(_) => server.update("configmaps", map),
    };
    stored.unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

fn delete(server: &ApiServer, name: &str) -> String {
    let deleted = server.delete("configmaps", "default", name).unwrap();
    deleted["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_watch_replays_all_changes_after_its_version_and_then_tells_new_ones() {
    let server = ApiServer::start().await;
    let a = put(&server, "a", "1");
    let b = put(&server, "b", "1");
    let gone = delete(&server, "a");
    let mut watch = watch(&server, &format!("{PATH}&resourceVersion={a}")).await;
    assert_eq!(next(&mut watch, 2).await, [format!("ADDED b@{b}"), format!("DELETED a@{gone}")]);
    let changed = put(&server, "b", "2");
    assert_eq!(next(&mut watch, 1).await, [format!("MODIFIED b@{changed}")]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_nowhere_or_from_zero_begins_with_what_is_there() {
    let server = ApiServer::start().await;
    let (b, a) = (put(&server, "b", "1"), put(&server, "a", "1"));
    for query in ["", "&resourceVersion=0", "&resourceVersion="] {
        let mut watch = watch(&server, &format!("{PATH}{query}")).await;
        assert_eq!(next(&mut watch, 2).await, [format!("ADDED a@{a}"), format!("ADDED b@{b}")], "{query}");
        let changed = put(&server, "c", "1");
        assert_eq!(next(&mut watch, 1).await, [format!("ADDED c@{changed}")], "no mark without bookmarks");
        delete(&server, "c");
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_its_mark_and_goes_on_as_a_watch() {
    let server = ApiServer::start().await;
    let a = put(&server, "a", "1");
    let now = put(&server, "other", "2");
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=l=1";
    let mut watch = watch(&server, &format!("{PATH}{query}")).await;
    assert_eq!(next(&mut watch, 2).await, [format!("ADDED a@{a}"), format!("END @{now}")]);
    let changed = put(&server, "a", "1");
    assert_eq!(changed, a, "what changes nothing is not written");
    let gone = delete(&server, "a");
    assert_eq!(next(&mut watch, 1).await, [format!("DELETED a@{gone}")]);
}

#[tokio::test]
async fn impossible_options_are_refused() {
    let server = ApiServer::start().await;
    for (query, code) in [
        ("&sendInitialEvents=true", 422),
        ("&sendInitialEvents=true&resourceVersionMatch=Exact", 422),
        ("&resourceVersionMatch=NotOlderThan", 422),
        ("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", 422),
        ("&resourceVersion=x", 400),
        ("&timeoutSeconds=x", 400),
        ("&timeoutSeconds=18446744073709551615", 400),
        ("&limit=x", 400),
        ("&fieldSelector=spec.x=y", 400),
    ] {
        assert_eq!(get(&server, &format!("{PATH}{query}")).await.code, code, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_or_too_far_is_told_inside_the_stream() {
    let server = ApiServer::start().await;
    let old = put(&server, "a", "1");
    put(&server, "a", "2");
    server.compact();
    let mut lines = watch(&server, &format!("{PATH}&resourceVersion={old}")).await;
    let error: Value = lines.next().await.unwrap().unwrap();
    assert_eq!(
        (&error["type"], &error["object"]["code"], &error["object"]["reason"]),
        (&json!("ERROR"), &json!(410), &json!("Expired"))
    );
    assert!(error["object"]["message"].as_str().unwrap().starts_with("too old resource version:"));
    assert!(lines.next().await.is_none());

    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000000";
    assert_eq!(rest(watch(&server, &format!("{PATH}{query}")).await).await, ["ERROR 504"]);
}

#[tokio::test(start_paused = true)]
async fn what_enters_or_leaves_a_selection_is_added_or_deleted() {
    let server = ApiServer::start().await;
    let mut watch = watch(&server, &format!("{PATH}&labelSelector=l=1&fieldSelector=metadata.name!=hidden")).await;
    put(&server, "a", "2");
    put(&server, "hidden", "1");
    let entered = put(&server, "a", "1");
    let left = put(&server, "a", "2");
    put(&server, "a", "3");
    let again = put(&server, "a", "1");
    let gone = delete(&server, "a");
    let expected = [
        format!("ADDED a@{entered}"),
        format!("DELETED a@{left}"),
        format!("ADDED a@{again}"),
        format!("DELETED a@{gone}"),
    ];
    assert_eq!(next(&mut watch, 4).await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_selection_is_told_in_its_previous_state() {
    let server = ApiServer::start().await;
    put(&server, "a", "1");
    let mut watch =
        watch(&server, &format!("{PATH}&labelSelector=l=1&resourceVersion={}", server.resource_version())).await;
    let left = put(&server, "a", "2");
    let line = watch.next().await.unwrap().unwrap();
    assert_eq!(line["object"]["metadata"]["labels"]["l"], "1");
    assert_eq!(told(Ok(line)), format!("DELETED a@{left}"));
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_are_not_told() {
    let server = ApiServer::start().await;
    let mut watch = watch(&server, PATH).await;
    server.create("configmaps", json!({"metadata": {"name": "x", "namespace": "kube-system"}})).unwrap();
    let own = put(&server, "a", "1");
    assert_eq!(next(&mut watch, 1).await, [format!("ADDED a@{own}")]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end_to_those_who_take_them() {
    let server = ApiServer::start().await;
    let from = server.resource_version();
    server.skip_resource_versions(7);
    let begun = tokio::time::Instant::now();
    let query = format!("&resourceVersion={from}&timeoutSeconds=150");
    let told = rest(watch(&server, &format!("{PATH}{query}&allowWatchBookmarks=true")).await).await;
    assert_eq!(told, vec![format!("BOOKMARK @{}", from + 7); 3]);
    assert_eq!(begun.elapsed().as_secs(), 150);
    assert!(rest(watch(&server, &format!("{PATH}{query}")).await).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_lasts_between_half_an_hour_and_an_hour() {
    let server = ApiServer::start().await;
    let begun = tokio::time::Instant::now();
    assert!(rest(watch(&server, PATH).await).await.is_empty());
    assert!((1800..3600).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_its_time_however_long_or_busy_that_is() {
    let server = ApiServer::start().await;
    // It waits for changes, and no instant is too far.
    let mut open = watch(&server, &format!("{PATH}&timeoutSeconds=9223372036854775807")).await;
    put(&server, "m", "a");
    assert!(next(&mut open, 1).await[0].starts_with("ADDED"));
    let mut busy = watch(&server, &format!("{PATH}&timeoutSeconds=10")).await;
    let mut seen = 0;
    let begun = tokio::time::Instant::now();
    while !next(&mut busy, 1).await.is_empty() {
        seen += 1;
        put(&server, "m", &seen.to_string());
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!((begun.elapsed().as_secs(), seen), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn closed_watches_end_in_order_and_can_go_on_where_they_were() {
    let server = ApiServer::start().await;
    let mut open = watch(&server, PATH).await;
    let a = put(&server, "a", "1");
    assert_eq!(next(&mut open, 1).await, [format!("ADDED a@{a}")]);
    server.close_watches();
    assert!(rest(open).await.is_empty());
    let b = put(&server, "b", "1");
    let mut again = watch(&server, &format!("{PATH}&resourceVersion={a}")).await;
    assert_eq!(next(&mut again, 1).await, [format!("ADDED b@{b}")]);
    server.reset_watches();
    let told = rest(again).await;
    assert!(told[0].starts_with("broken: connection reset"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_last_handle_to_the_server_is_gone() {
    let server = ApiServer::start().await;
    let open = watch(&server, PATH).await;
    drop(server);
    let begun = tokio::time::Instant::now();
    assert!(rest(open).await.is_empty());
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_too_far_behind_is_cut_off() {
    let server = ApiServer::builder().watch_backlog_max(10).start().await.unwrap();
    let slow = watch(&server, PATH).await;
    let by_history = ApiServer::builder().history_len_max(10).start().await.unwrap();
    let slow_by_history = watch(&by_history, PATH).await;
    for n in 0..20 {
        put(&server, "a", &n.to_string());
        put(&by_history, "a", &n.to_string());
    }
    assert!(rest(slow).await.is_empty());
    assert!(rest(slow_by_history).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_watches_of_many_changes_each_see_all_in_order() {
    let server = ApiServer::start().await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watch(&server, PATH).await);
    }
    let writer = tokio::spawn({
        let server = server.clone();
        async move {
            for n in 0..500 {
                put(&server, &format!("m{}", n % 7), &n.to_string());
                if n % 50 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    });
    let seen = futures::future::join_all(watches.iter_mut().map(|watch| next(watch, 500))).await;
    writer.await.unwrap();
    assert!(seen.iter().all(|told| *told == seen[0]));
    assert_eq!(seen[0].len(), 500);
}
