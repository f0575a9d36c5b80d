//! Pages that are wrong, answers that dawdle, restores, and the counts of all that.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::BodyExt;
use kubewire_apiserver::{ApiServer, Fault, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::raw::{get, next, rest, send, told, watch};

const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=true&timeoutSeconds=100";

async fn with_pods(names: &[&str]) -> ApiServer {
    let server = ApiServer::start().await;
    names.iter().for_each(|name| drop(put(&server, name)));
    server
}

fn put(server: &ApiServer, name: &str) -> String {
    let pod = json!({"metadata": {"name": name, "namespace": "default"}});
    let written = server.create("pods", pod).unwrap();
    written["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_page_has_foreign_items_or_repeats_or_reverses_its_own() {
    let server = with_pods(&["a", "b"]).await;
    server.fault(Fault::more_items([r#"{"metadata":null}"#, "7"]));
    let page = get(&server, PODS).await;
    assert_eq!(page.body["items"].as_array().unwrap().len(), 4);
    assert_eq!(page.body["items"][1], 7);
    server.fault(Fault::repeat_items());
    assert_eq!(get(&server, PODS).await.names(), ["a", "a", "b", "b"]);
    server.fault(Fault::reverse_items());
    assert_eq!(get(&server, PODS).await.names(), ["b", "a"]);
    assert_eq!(get(&server, PODS).await.names(), ["a", "b"]);
    let counts = BTreeMap::from([("foreign items", 1), ("items repeated", 1), ("items reversed", 1)]);
    assert_eq!(server.faults_hit(), counts);
}

#[tokio::test]
async fn a_continue_token_is_empty_repeated_or_expired() {
    let server = with_pods(&["a", "b", "c"]).await;
    let token = |page: &Value| page["metadata"]["continue"].as_str().map(str::to_owned);
    server.fault(Fault::same_token());
    let first = token(&get(&server, "/api/v1/pods?limit=1").await.body).unwrap();
    let second = format!("/api/v1/pods?limit=1&continue={first}");
    assert_eq!(token(&get(&server, &second).await.body), Some(first), "a list that begins has met nothing");
    server.fault(Fault::empty_token());
    assert_eq!(token(&get(&server, PODS).await.body), Some(String::new()));
    for new in [None, Some("new")] {
        server.fault(Fault::expired_token(new));
        assert_eq!(get(&server, PODS).await.code, 200);
        let expired = get(&server, &second).await;
        assert_eq!((expired.reason(), token(&expired.body).as_deref()), ((410, "Expired"), new));
    }
}

#[tokio::test]
async fn a_time_to_come_back_is_said_in_seconds_or_as_a_date() {
    let server = with_pods(&[]).await;
    server.fault(Fault::answer(Status::too_many_requests(90).retry_after_as_date()));
    let answer = get(&server, PODS).await;
    let at = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
    assert!(at("date").ends_with(" GMT") && at("retry-after").ends_with(" GMT") && at("date") != at("retry-after"));
    assert_eq!(at("date").len(), "Mon, 02 Mar 2026 10:00:00 GMT".len());
}

#[tokio::test(start_paused = true)]
async fn a_body_drips_whole_but_slowly() {
    let server = with_pods(&["a", "b"]).await;
    let whole = send(&server, "GET", PODS, &[], "").await.unwrap().into_body().collect().await.unwrap().to_bytes();
    server.fault(Fault::drip(20, Duration::from_secs(1)));
    let begun = Instant::now();
    let mut body = send(&server, "GET", PODS, &[], "").await.unwrap().into_body();
    let mut dripped = Vec::new();
    while let Some(piece) = body.frame().await {
        let piece = piece.unwrap().into_data().unwrap();
        assert!(!piece.is_empty() && piece.len() <= 20);
        dripped.extend(piece);
    }
    assert_eq!(dripped, whole);
    assert!(begun.elapsed() >= Duration::from_secs(whole.len() as u64 / 20));
    assert_eq!(server.faults_hit(), BTreeMap::from([("slow drip", 1)]));
}

#[tokio::test(start_paused = true)]
async fn changes_of_two_objects_come_in_the_other_order_and_those_of_one_do_not() {
    let server = with_pods(&[]).await;
    server.fault(Fault::swap_events());
    let mut open = watch(&server, WATCH).await;
    for name in ["a", "b", "c"] {
        put(&server, name);
    }
    server.delete("pods", "default", "c").unwrap();
    let names: Vec<String> = next(&mut open, 4).await;
    let order: Vec<&str> = names.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(order, ["ADDED", "ADDED", "ADDED", "DELETED"]);
    assert!(names[0].contains('b') && names[1].contains('a') && names[2].contains('c'), "{names:?}");
    assert_eq!(server.faults_hit(), BTreeMap::from([("events swapped", 1)]));
}

#[tokio::test(start_paused = true)]
async fn a_restore_brings_objects_back_with_their_versions_and_breaks_watches() {
    for raised in [false, true] {
        let server = with_pods(&["a", "b"]).await;
        let then = server.resource_version();
        server.modify("pods", "default", "a", |pod| pod["metadata"]["labels"] = json!({"new": "yes"})).unwrap();
        server.delete("pods", "default", "b").unwrap();
        let lost = put(&server, "c");
        let before: u64 = lost.parse().unwrap();
        let mut open = watch(&server, &format!("{WATCH}&resourceVersion={lost}")).await;
        put(&server, "d");
        assert_eq!(next(&mut open, 1).await.len(), 1);

        let next_version = if raised { before + 1000 } else { then + 1 };
        assert!(server.restore(then, next_version));
        assert!(told(futures::StreamExt::next(&mut open).await.unwrap()).starts_with("broken"));
        let list = get(&server, PODS).await;
        assert_eq!((list.names(), &list.body["items"][0]["metadata"]["labels"]), (vec!["a", "b"], &Value::Null));
        assert_eq!(list.body["metadata"]["resourceVersion"], next_version.to_string());
        let refused = rest(watch(&server, &format!("{WATCH}&resourceVersion={lost}")).await).await;
        let (code, reason) = if raised { (410, "version compacted") } else { (504, "version too large") };
        assert!(refused[0].contains(&code.to_string()), "{refused:?}");
        assert_eq!(server.faults_hit(), BTreeMap::from([("reset: etcd was restored", 1), (reason, 1)]));
        assert!(!server.restore(then, 1), "the history is lost");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_open_is_counted_until_it_is_read_or_dropped() {
    let server = with_pods(&["a"]).await;
    let mut open = watch(&server, WATCH).await;
    next(&mut open, 1).await;
    let list = send(&server, "GET", PODS, &[], "").await.unwrap();
    assert_eq!(server.requests_open(), 2);
    drop(list);
    drop(open);
    assert_eq!(server.requests_open(), 0);
    server.close_watches();
    assert_eq!(server.faults_hit(), BTreeMap::new(), "nobody was there to meet it");
}
