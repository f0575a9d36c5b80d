//! One object that cannot be decoded among others that can: B29; and values that nobody knows yet.

use std::any::TypeId;

use kubewire_conformance::wire::{Server, Thing, event_line};
use serde_json::{Value, json};

use super::PodRef;
use crate::forms::Typed;
use crate::support::{Run, until};

/// An object whose labels are none in any representation.
fn bad(text: &str) -> Value {
    let mut object = Thing::parse(text).json();
    object["metadata"]["labels"] = json!({"uid": []});
    object
}

/// An object whose container port is a text.
fn bad_to_a_typed_one(text: &str) -> Value {
    let mut object = Thing::parse(text).json();
    object["spec"]["containers"][0]["ports"] = json!([{"containerPort": "http"}]);
    object
}

/// B29: in a list and in a watch, in place of a good state that was there before, and as a deletion.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_harms_no_other_and_recovers_when_it_is_repaired() {
    let server = Server::new(
        "LIST → [a@1 $b c@3] rv=10
         WATCH → +d@11 $e | +f@13 …",
    );
    let server = server.bytes("b", bad("b@2").to_string()).bytes("e", event_line("ADDED", &bad("e@12")));
    let run = Run::<PodRef>::of(&server);
    run.has(&["a@1", "c@3", "d@11", "f@13"]).await;
    let errors = run.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    for (error, name) in errors.iter().zip(["ns1/b", "ns1/e"]) {
        assert!(error.starts_with("pods: ") && error.contains(name), "{error}");
        assert!(error.contains("labels"), "{error}");
    }
    assert_eq!(run.informer.status().reflector.undecodable, 2);
    assert_eq!(run.informer.last_sync_resource_version(), "13");
    assert_eq!(server.asked().len(), 2);
    server.happens("~e@14 ~b@15");
    run.has(&["a@1", "b@15", "c@3", "d@11", "e@14", "f@13"]).await;
    assert_eq!(server.asked().len(), 2, "no new request was needed");
    assert_eq!(run.heard.replayed(), run.store());
    run.ends().await;
}

/// B29: the good state of before stays, and is never told as deleted; a bad deletion deletes by its key.
#[tokio::test(start_paused = true)]
async fn a_bad_state_leaves_the_good_one_of_before_and_a_bad_deletion_deletes() {
    let server = Server::new(
        "LIST → [x@1 y@2] rv=10
         WATCH → $xbad ERR:410:Expired ■
         LIST → [$xlist y@2] rv=20
         WATCH → 2000ms $xgone …",
    );
    let server = server
        .bytes("xbad", event_line("MODIFIED", &bad("x@11")))
        .bytes("xlist", bad("x@11").to_string())
        .bytes("xgone", event_line("DELETED", &bad("x@21")));
    let run = Run::<PodRef>::of(&server);
    run.requests(4).await;
    until("the second list", || run.informer.last_sync_resource_version() == "20").await;
    assert_eq!(run.store(), ["x@1", "y@2"]);
    assert!(!run.heard.log().iter().any(|told| told.starts_with('-')), "{:?}", run.heard.log());
    run.has(&["y@2"]).await;
    until("it is told", || run.heard.replayed() == run.store()).await;
    assert_eq!(run.informer.status().reflector.undecodable, 3);
    run.ends().await;
}

/// B29: who does not decode does not fail; the error names the field.
#[tokio::test(start_paused = true)]
async fn dynamic_and_packed_objects_take_what_a_typed_one_cannot() {
    let server = Server::new("LIST → [a@1 $b] rv=10\n WATCH → $e +f@13 …");
    let server = server.bytes("b", bad_to_a_typed_one("b@2").to_string());
    let server = server.bytes("e", event_line("ADDED", &bad_to_a_typed_one("e@12")));
    let run = Run::<PodRef>::of(&server);
    if TypeId::of::<PodRef>() == TypeId::of::<Typed>() {
        run.has(&["a@1", "f@13"]).await;
        let errors = run.errors();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors.iter().all(|error| error.contains("spec.containers[0].ports[0].containerPort")), "{errors:?}");
    } else {
        run.has(&["a@1", "b@2", "e@12", "f@13"]).await;
        assert!(run.errors().is_empty(), "{:?}", run.errors());
    }
    run.ends().await;
}

/// B29: every object is bad, for ever: no loop, and it is synced, as nothing more can be known.
#[tokio::test(start_paused = true)]
async fn a_kind_of_which_every_object_is_bad_is_listed_once() {
    let server = Server::new("LIST → [$b $b2] rv=10\n WATCH → $e $e2 …");
    let server = server
        .bytes("b", bad("b@2").to_string())
        .bytes("b2", bad("b2@2").to_string())
        .bytes("e", event_line("ADDED", &bad("e@12")))
        .bytes("e2", event_line("MODIFIED", &bad("e@13")));
    let run = Run::<PodRef>::of(&server);
    until("four errors", || run.errors().len() == 4).await;
    assert!(run.informer.has_synced() && run.store().is_empty());
    assert_eq!(server.asked().len(), 2);
    run.ends().await;
}

/// Nested 100,000 deep, where a field is known and where none is: taken, or refused by itself; never a crash.
/// B29
#[tokio::test(start_paused = true)]
async fn an_object_nested_a_hundred_thousand_deep_harms_no_other() {
    const DEPTH: usize = 100_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}null{}", open.repeat(DEPTH), close.repeat(DEPTH));
        for (place, version) in [("\"unknown\":DEEP", 12), ("\"spec\":{\"containers\":DEEP}", 13)] {
            let meta = |version| {
                format!(
                    "{{\"metadata\":{{\"name\":\"deep\",\"namespace\":\"ns1\",\"resourceVersion\":\"{version}\"}}"
                )
            };
            let object = |version| format!("{},{}}}", meta(version), place.replace("DEEP", &deep));
            let event = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", object(version));
            let server = Server::new("LIST → [x@1 $item y@2] rv=10\n WATCH → +z@11 $event ~x@14 …");
            let server = server.bytes("item", object(5)).bytes("event", event.into_bytes());
            let run = Run::<PodRef>::of(&server);
            until("the last event", || run.store().contains(&"x@14".to_owned())).await;
            let (store, refused) = (run.store(), run.informer.status().reflector.undecodable);
            assert!(["y@2", "z@11"].iter().all(|name| store.contains(&(*name).to_owned())), "{store:?}");
            let taken = usize::from(store.iter().any(|thing| thing.starts_with("deep")));
            assert_eq!(taken * 2 + refused as usize, 2, "both states are taken, or both told: {:?}", run.errors());
            assert!(run.errors().iter().all(|error| error.contains("ns1/deep") && error.len() < 1000));
            assert_eq!(server.asked(), ["LIST(rv=0,limit=500)", "WATCH(10)"]);
            run.ends().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn values_that_nobody_knows_yet_are_taken_as_they_are() {
    let mut object = Thing::parse("x@11").json();
    object["spec"]["restartPolicy"] = json!("Sometimes");
    object["spec"]["newField"] = json!({"deep": [1, null, {"x": 1e300}]});
    object["status"] =
        json!({"phase": "Zombie", "conditions": [{"type": "Odd", "status": "Perhaps"}], "qosClass": ""});
    object["metadata"]["annotations"] = json!({"text": ""});
    object["metadata"]["labels"] = Value::Null;
    object["metadata"]["finalizers"] = Value::Null;
    let server = Server::new("LIST → [$x] rv=11\n WATCH → $e …");
    let mut later = object.clone();
    later["metadata"]["resourceVersion"] = json!("12");
    let server = server.bytes("x", object.to_string()).bytes("e", event_line("MODIFIED", &later));
    let run = Run::<PodRef>::of(&server);
    run.has(&["x@12"]).await;
    assert!(run.errors().is_empty(), "{:?}", run.errors());
    assert_eq!(run.heard.log(), ["+x@11!", "~x@11>12"]);
    run.ends().await;
}

/// B04
#[tokio::test(start_paused = true)]
async fn events_whose_object_has_no_name_or_version_are_told_and_harm_nothing() {
    let with = |metadata: Value| {
        let mut object = Thing::parse("x@11").json();
        object["metadata"] = metadata;
        object
    };
    for metadata in [
        Value::Null,
        json!({}),
        json!({"name": null, "resourceVersion": "11"}),
        json!({"name": "", "namespace": "ns1", "resourceVersion": "11"}),
        json!("x"),
        json!([]),
    ] {
        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            let server = Server::new("LIST → [a@1] rv=10\n WATCH → $e +b@12 …")
                .bytes("e", event_line(kind, &with(metadata.clone())));
            let run = Run::<PodRef>::of(&server);
            run.has(&["a@1", "b@12"]).await;
            assert_eq!(run.errors().len(), 1, "{kind} {metadata}: {:?}", run.errors());
            assert_eq!(server.asked().len(), 2, "{kind} {metadata}");
            run.converges_and_ends().await;
        }
    }
    // Without a version it is an object, and the position stays.
    let server = Server::new("LIST → [] rv=10\n WATCH → $e 2000ms ■");
    let server =
        server.bytes("e", event_line("ADDED", &with(json!({"name": "x", "namespace": "ns1", "uid": "u-x"}))));
    let run = Run::<PodRef>::of(&server);
    run.has(&["x@"]).await;
    run.requests(3).await;
    assert_eq!(server.asked()[2], "WATCH(10)");
    run.ends().await;
}

