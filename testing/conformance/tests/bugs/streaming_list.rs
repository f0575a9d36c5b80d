//! Streaming lists that do not come to their end: B39.

use std::time::Duration;

use kubewire_conformance::wire::{Server, Thing, event_line};
use kubewire_informer::reflector::ReflectorOptions;
use serde_json::{Value, json};

use super::PodRef;
use crate::support::{Options, Run, until, within};

fn streaming() -> Options {
    Options { reflector: ReflectorOptions::new(), ..Options::default() }
}

/// A server with the object `x@9`; `$ghost` is one that it does not have, `$MARK` are marks of all kinds.
fn server(script: &str) -> Server {
    let mark = |annotations: Value| {
        event_line(
            "BOOKMARK",
            &json!({"kind": "Pod", "metadata": {"resourceVersion": "20", "annotations": annotations}}),
        )
    };
    let mut added = Thing::parse("ghost@8").json();
    added["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    let server = Server::new(script)
        .bytes("ghost", event_line("ADDED", &Thing::parse("ghost@8").json()))
        .bytes("marked", event_line("ADDED", &added))
        .bytes("false", mark(json!({"k8s.io/initial-events-end": "false"})))
        .bytes("True", mark(json!({"k8s.io/initial-events-end": "True"})))
        .bytes("bool", mark(json!({"k8s.io/initial-events-end": true})))
        .bytes("null", mark(Value::Null))
        .bytes("other", mark(json!({"k8s.io/initial-events-ended": "true"})))
        .bytes("node", event_line("BOOKMARK", &json!({"kind": "Node", "metadata": {"resourceVersion": "20", "annotations": {"k8s.io/initial-events-end": "true"}}})))
        .bytes("bare", event_line("BOOKMARK", &json!({"kind": "Pod", "metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}})))
        .bytes("text", "404 page not found\n");
    server.restored(&["x@9"], 20);
    server
}

/// B39
#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_does_not_come_to_its_end_gives_way_to_a_list() {
    // answer, the most seconds before it is synced
    let table = [
        ("$ghost …", 62),
        ("DEAD", 70),
        ("200 DEAD", 62),
        ("$ghost BM@20 …", 62),
        ("$ghost $false …", 62),
        ("$ghost $True …", 62),
        ("$ghost $bool …", 62),
        ("$ghost $null …", 62),
        ("$ghost $other …", 62),
        ("$ghost $node …", 62),
        ("$marked …", 62),
        ("$ghost $bare …", 62),
        ("422", 2),
        ("400", 2),
        ("404", 2),
        ("405", 2),
        ("500", 2),
        ("200 $text", 2),
        ("$ghost ERR:410:Expired ■", 2),
        ("$ghost ERR:500 ■", 2),
        ("$ghost ■", 2),
        ("$ghost CUT", 2),
        ("$ghost RST", 2),
        ("■", 2),
        ("RST", 2),
    ];
    for (answer, limit) in table {
        let server = server(&format!("STREAM ×∞ → {answer}"));
        let run = Run::<PodRef>::with(&server, streaming());
        run.requests(1).await;
        until(answer, || run.informer.has_synced()).await;
        let took = server.log()[0].at.elapsed();
        assert!(took <= Duration::from_secs(limit), "{answer}: synced after {took:?}");
        run.converges_after(&["x@9"]).await;
        assert_eq!(run.heard.log(), ["+x@9!"], "{answer}: nothing of a half list is heard");
        server.happens("+y@21");
        run.converges_and_ends_after(&["x@9", "y@21"]).await;
    }
}

/// B39
#[tokio::test(start_paused = true)]
async fn a_streaming_list_with_its_mark_is_one_request_and_goes_on_as_the_watch() {
    for script in [
        "",
        "STREAM → +x@9 END@20 …",
        "STREAM → +a@3 +x@5 -a@6 ~x@9 BM@12 END@20",
        "STREAM → +x@9 | $blank | END@20",
    ] {
        let server = server(script).bytes("blank", "\n");
        let run = Run::<PodRef>::with(&server, streaming());
        run.converges_after(&["x@9"]).await;
        server.happens("+y@21");
        run.converges_after(&["x@9", "y@21"]).await;
        assert_eq!(server.asked(), ["STREAM()"], "{script}");
        assert_eq!(run.heard.log(), ["+x@9!", "+y@21"], "{script}");
        run.ends().await;
    }
}

/// B39: the list does not work either (A-budget).
#[tokio::test(start_paused = true)]
async fn streams_and_lists_that_both_fail_make_no_hot_loop() {
    for stream in ["$ghost ■", "422", "500", "$ghost ERR:410:Expired ■", "RST", "429", "504 reason=Timeout"] {
        for list in ["500", "410", "RST"] {
            let server = server(&format!("STREAM ×∞ → {stream}\n LIST ×∞ → {list}"));
            let run = Run::<PodRef>::with(&server, streaming());
            let requests = within(&run, Duration::from_secs(5)).await;
            assert!((2..=12).contains(&requests), "{stream}, {list}: {requests}: {:?}", server.asked());
            assert!(!run.informer.has_synced() && run.heard.log().is_empty());
            server.recover();
            run.converges_and_ends_after(&["x@9"]).await;
        }
    }
}

/// A streaming list after an outage: it asks for the last version, and what it leaves out is deleted.
#[tokio::test(start_paused = true)]
async fn a_later_streaming_list_reveals_what_was_missed() {
    let server = Server::new("STREAM → +x@9 +y@10 END@20 ERR:410:Expired ■\n STREAM → +y@10 +z@30 END@40");
    let run = Run::<PodRef>::with(&server, streaming());
    run.has(&["y@10", "z@30"]).await;
    assert_eq!(server.asked(), ["STREAM()", "STREAM(20)"]);
    until("it is told", || run.heard.replayed() == run.store()).await;
    assert!(run.heard.log().contains(&"-x@9?".to_owned()), "{:?}", run.heard.log());
    run.ends().await;
}

/// Older than asked for: refused, as an ordinary list is.
#[tokio::test(start_paused = true)]
async fn a_streaming_list_older_than_asked_is_refused() {
    let server = Server::new("STREAM → +x@9 END@20 -x@21 2000ms ERR:410 ■\n STREAM → +x@9 END@15 …");
    let run = Run::<PodRef>::with(&server, streaming());
    run.requests(3).await;
    until("it is empty", || run.store().is_empty()).await;
    assert_eq!(server.asked(), ["STREAM()", "STREAM(21)", "STREAM(21)"]);
    assert!(!run.heard.log().iter().skip(1).any(|told| told.starts_with("+x")), "{:?}", run.heard.log());
    run.ends().await;
}

/// The mark comes, and then the stream ends at once, for ever (A-budget).
#[tokio::test(start_paused = true)]
async fn streams_that_end_right_behind_their_mark_make_no_hot_loop() {
    for end in ["■", "CUT", "RST", "ERR:410:Expired ■", "ERR:500 …", "BM@20 ■", "$text ■"] {
        let server = server(&format!("STREAM ×∞ → +x@9 END@20 {end}\n WATCH ×∞ → {}", end.replace("BM@20 ", "")));
        let run = Run::<PodRef>::with(&server, streaming());
        let requests = within(&run, Duration::from_secs(5)).await;
        assert!((2..=10).contains(&requests), "{end}: {requests}: {:?}", server.asked());
        assert_eq!(run.heard.log(), ["+x@9!"], "{end}");
        server.recover();
        server.happens("+y@21");
        run.converges_and_ends_after(&["x@9", "y@21"]).await;
    }
}
