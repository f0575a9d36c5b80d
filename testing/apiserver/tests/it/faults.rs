//! What goes wrong on demand, in process.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use futures::StreamExt;
use http_body_util::BodyExt;
use kubewire_apiserver::{ApiServer, BoxError, Fault, Matching, Status, Verb};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::raw::{get, next, rest, send, told, watch};

const PODS: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=100";

async fn with_pods(names: &[&str]) -> ApiServer {
    let server = ApiServer::start().await;
    names.iter().for_each(|name| put(&server, name));
    server
}

fn put(server: &ApiServer, name: &str) {
    server.create("pods", json!({"metadata": {"name": name, "namespace": "default"}})).unwrap();
}

fn kind(error: &BoxError) -> Option<ErrorKind> {
    let mut at: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = at {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(io.kind());
        }
        at = error.source();
    }
    None
}

#[tokio::test]
async fn an_answer_is_replaced_as_often_as_asked_for() {
    let server = with_pods(&["a"]).await;
    for (fault, code, reason) in [
        (Fault::gone(), 410, "Expired"),
        (Fault::too_many_requests(3), 429, "TooManyRequests"),
        (Fault::internal_error(), 500, "InternalError"),
        (Fault::unavailable(), 503, "ServiceUnavailable"),
        (Fault::timeout(), 504, "Timeout"),
        (Fault::answer(Status::unauthorized()), 401, "Unauthorized"),
    ] {
        server.fault(fault.on_list().times(2));
        for _ in 0..2 {
            let answer = get(&server, PODS).await;
            assert_eq!(answer.reason(), (code, reason));
            assert_eq!(
                answer.headers.get("retry-after").map(|value| value.to_str().unwrap()),
                (code == 429).then_some("3")
            );
        }
        assert_eq!(get(&server, PODS).await.code, 200);
    }
    server.fault(Fault::raw(502, "text/html", "<html>bad gateway</html>"));
    let answer = get(&server, PODS).await;
    assert_eq!((answer.code, &answer.body), (502, &json!("<html>bad gateway</html>")));
    assert_eq!((server.faults_left(), server.requests().len()), (0, 19));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_refused_reset_stalled_or_slow() {
    let server = with_pods(&["a"]).await;
    for (fault, expected) in
        [(Fault::refuse(), ErrorKind::ConnectionRefused), (Fault::reset(), ErrorKind::ConnectionReset)]
    {
        server.fault(fault.on(Matching::any().verb(Verb::List).resource("pods").namespace("")));
        let error = send(&server, "GET", PODS, &[], "").await.unwrap_err();
        assert_eq!(kind(&error), Some(expected));
    }
    server.fault(Fault::stall());
    assert!(timeout(Duration::from_secs(3600), send(&server, "GET", PODS, &[], "")).await.is_err());
    server.fault(Fault::delay(Duration::from_secs(9)));
    let begun = tokio::time::Instant::now();
    assert_eq!(get(&server, PODS).await.code, 200);
    assert_eq!(begun.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_refuses_all_breaks_watches_and_comes_back_with_its_objects() {
    let server = with_pods(&["a"]).await;
    let mut open = watch(&server, WATCH).await;
    assert_eq!(next(&mut open, 2).await.len(), 2);
    server.go_down().await;
    assert!(rest(open).await[0].starts_with("broken"));
    let error = send(&server, "GET", PODS, &[], "").await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::ConnectionRefused));
    server.come_back().await;
    assert_eq!(get(&server, PODS).await.names(), ["a"]);
    let open = watch(&server, WATCH).await;
    server.shut_down();
    rest(open).await;
    assert!(send(&server, "GET", PODS, &[], "").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_body_stops_after_so_many_bytes() {
    let server = with_pods(&["a", "b"]).await;
    server.fault(Fault::truncate(100).on_list());
    let cut = send(&server, "GET", PODS, &[], "").await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(cut.len(), 100);
    assert!(serde_json::from_slice::<Value>(&cut).is_err());
    server.fault(Fault::reset_body(100).on_list());
    let error = send(&server, "GET", PODS, &[], "").await.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::ConnectionReset));
    server.fault(Fault::stall_body(100).on_list());
    let body = send(&server, "GET", PODS, &[], "").await.unwrap().into_body();
    assert!(timeout(Duration::from_secs(3600), body.collect()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_stops_after_so_many_changes_or_in_the_middle_of_one() {
    let server = with_pods(&["a", "b", "c"]).await;
    for (fault, whole, last) in [
        (Fault::end_watch(2), 2, None),
        (Fault::end_watch(0), 0, None),
        (Fault::reset_watch(1), 1, Some("broken")),
        (Fault::end_watch_mid_event(1), 1, Some("half")),
        (Fault::reset_watch_mid_event(2), 2, Some("broken")),
    ] {
        server.fault(fault);
        let told = rest(watch(&server, WATCH).await).await;
        assert!(told[..whole].iter().all(|line| line.starts_with("ADDED")), "{told:?}");
        match last {
            None => assert_eq!(told.len(), whole, "{told:?}"),
            Some("broken") => assert!(told[whole].starts_with("broken"), "{told:?}"),
            Some(_) => assert!(told[whole].starts_with(r#""{\"type\":\"ADDED\""#), "{told:?}"),
        }
    }
    server.fault(Fault::stall_watch(1));
    let mut stalled = watch(&server, WATCH).await;
    assert_eq!(next(&mut stalled, 1).await.len(), 1);
    put(&server, "d");
    assert!(timeout(Duration::from_secs(3600), stalled.next()).await.is_err(), "no timeout of the server ends it");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_errors_foreign_lines_and_changes_twice() {
    let server = with_pods(&["a", "b"]).await;
    server.fault(Fault::gone_on_next_watch());
    assert_eq!(rest(watch(&server, WATCH).await).await, ["ERROR 410"]);
    server.fault(Fault::error_event(1, Status::internal("x")));
    assert_eq!(rest(watch(&server, WATCH).await).await[1..], ["ERROR 500"]);
    server.fault(Fault::line(1, "no JSON"));
    let mut open = watch(&server, WATCH).await;
    let told: Vec<Value> = (&mut open).take(3).map(|line| line.unwrap()).collect().await;
    assert_eq!(told[1], "no JSON\n");
    assert_eq!(told[2]["type"], "ADDED");
    server.fault(Fault::repeat_events());
    let mut open = watch(&server, WATCH).await;
    let told = next(&mut open, 5).await;
    assert!(told[0] == told[1] && told[2] == told[3] && told[4].starts_with("END"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_and_the_mark_are_held_back_apart() {
    let server = with_pods(&["a"]).await;
    let kinds =
        |told: Vec<String>| told.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(rest(watch(&server, WATCH).await).await), ["ADDED", "END", "BOOKMARK", "BOOKMARK"]);
    server.fault(Fault::drop_bookmarks());
    assert_eq!(kinds(rest(watch(&server, WATCH).await).await), ["ADDED", "END"]);
    server.fault(Fault::hold_initial_events_end());
    assert_eq!(kinds(rest(watch(&server, WATCH).await).await), ["ADDED", "BOOKMARK", "BOOKMARK"]);
}

#[tokio::test]
async fn faults_are_taken_back() {
    let server = with_pods(&["a"]).await;
    let first = server.fault(Fault::unavailable().always());
    server.fault(Fault::gone().always().on(Matching::any().streaming_list(true)));
    assert_eq!((get(&server, PODS).await.code, get(&server, PODS).await.code), (503, 503));
    server.clear_fault(first);
    assert_eq!(get(&server, PODS).await.code, 200);
    let streaming = format!("{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    assert_eq!(get(&server, &streaming).await.code, 410);
    server.clear_faults();
    let first = watch(&server, &streaming).await.next().await.unwrap();
    assert!(told(first).starts_with("ADDED"));
}

#[tokio::test]
async fn requests_are_recorded_with_what_they_asked_for() {
    let server = with_pods(&["a"]).await;
    send(&server, "GET", "/api/v1/pods?limit=5&continue=", &[("user-agent", "me")], "").await.unwrap();
    get(&server, "/version").await;
    let requests = server.requests();
    let list = &requests[0];
    assert_eq!((list.verb, list.path.as_str(), list.connection), (Some(Verb::List), "/api/v1/pods", None));
    assert_eq!(
        (list.query.get("limit"), list.query.get("continue"), list.query.get("watch")),
        (Some("5"), Some(""), None)
    );
    assert_eq!((list.headers["user-agent"].to_str().unwrap(), list.resource.clone().unwrap()), ("me", "pods".into()));
    assert_eq!(requests[1].verb, None);
    server.clear_requests();
    assert!(server.requests().is_empty());
}
