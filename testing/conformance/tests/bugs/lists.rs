//! What a list may look like: B04, B11, B37, and pages that go wrong.

use std::time::Duration;

use kubewire_conformance::wire::{Server, Thing};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_listwatch::{ErrorClass, Limits};
use serde_json::json;

use super::PodRef;
use crate::support::{Options, Run, until, within};

const FIRST: &str = "LIST(rv=0,limit=500)";

fn paged() -> Options {
    Options { reflector: ReflectorOptions::new().watch_list(false).page_size(2), ..Options::default() }
}

/// B04
#[tokio::test(start_paused = true)]
async fn a_list_with_missing_parts_is_taken_or_refused_and_asked_for_again() {
    let pod = || Thing::parse("x@5").json();
    let with = |change: fn(&mut serde_json::Value)| {
        let mut pod = pod();
        change(&mut pod);
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": [pod]})
    };
    let meta = || json!({"resourceVersion": "10"});
    // body, what is in the store (None: refused, and the second list counts), objects that were not taken
    let table = [
        (json!({"metadata": meta(), "items": []}), Some(vec![]), 0),
        (json!({"metadata": meta(), "items": null}), Some(vec![]), 0),
        (json!({"metadata": meta()}), Some(vec![]), 0),
        (json!({"metadata": null, "items": []}), None, 0),
        (json!({"items": []}), None, 0),
        (json!({"metadata": {}, "items": [pod()]}), None, 0),
        (json!({"metadata": {"resourceVersion": ""}, "items": [pod()]}), None, 0),
        (json!({"metadata": {"resourceVersion": null}, "items": [pod()]}), None, 0),
        (
            with(|pod| {
                pod.as_object_mut().unwrap().remove("apiVersion");
                pod.as_object_mut().unwrap().remove("kind");
            }),
            Some(vec!["x@5"]),
            0,
        ),
        (with(|pod| pod["metadata"] = json!(null)), Some(vec![]), 1),
        (with(|pod| _ = pod.as_object_mut().unwrap().remove("metadata")), Some(vec![]), 1),
        (with(|pod| pod["metadata"]["name"] = json!("")), Some(vec![]), 1),
        (with(|pod| pod["metadata"]["name"] = json!(null)), Some(vec![]), 1),
        (with(|pod| *pod = json!(null)), Some(vec![]), 1),
        (with(|pod| *pod = json!({})), Some(vec![]), 1),
        (with(|pod| *pod = json!([])), Some(vec![]), 1),
        (with(|pod| *pod = json!("x")), Some(vec![]), 1),
        (json!({"kind": "Status", "code": 500, "status": "Failure"}), None, 0),
        (json!({"kind": "Status", "code": 200, "status": "Success"}), None, 0),
        (json!([]), None, 0),
        (json!(null), None, 0),
        (json!("x"), None, 0),
        (json!({"metadata": meta(), "items": {}}), None, 0),
        (json!({"metadata": meta(), "items": "x"}), None, 0),
        (json!({"metadata": [], "items": []}), None, 0),
    ];
    for (body, taken, bad) in table {
        let server = Server::new("LIST → $body\n LIST → [good@20] rv=20").bytes("body", body.to_string());
        let run = Run::<PodRef>::of(&server);
        match taken {
            Some(store) => {
                until(&format!("{body} is taken"), || run.informer.has_synced()).await;
                run.requests(2).await;
                assert_eq!(run.store(), store, "{body}");
                assert_eq!(server.asked(), [FIRST, "WATCH(10)"], "{body}");
            }
            None => {
                run.converges_after(&["good@20"]).await;
                run.requests(3).await;
                assert_eq!(server.asked(), [FIRST, FIRST, "WATCH(20)"], "{body}");
                assert_eq!(run.errors().len(), 1, "{body}: {:?}", run.errors());
            }
        }
        let status = run.informer.status().reflector;
        assert_eq!(status.undecodable + status.not_taken, bad, "{body}: {:?}", run.errors());
        if bad > 0 {
            assert!(run.errors()[0].starts_with("pods: "), "{:?}", run.errors());
        }
        run.ends().await;
    }
}

/// B37
#[tokio::test(start_paused = true)]
async fn of_two_fields_of_one_name_the_last_one_counts_wherever_they_stand() {
    let item = |members: &str| format!("{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",{members}}}");
    let of =
        |uid: &str| format!("{{\"name\":\"x\",\"namespace\":\"ns1\",\"uid\":\"{uid}\",\"resourceVersion\":\"7\"}}");
    let table = [
        item(&format!("\"metadata\":{},\"metadata\":{}", of("u-old"), of("u-x"))),
        item(&format!(
            "\"metadata\":{}",
            of("u-x")
                .replace("\"name\"", "\"resourceVersion\":\"6\",\"labels\":{\"a\":\"1\"},\"labels\":{},\"name\"")
        )),
        item(&format!("\"metadata\":{},\"kind\":\"Pod\"", of("u-x"))),
    ];
    for item in table {
        let event = format!("{{\"type\":\"PING\",\"type\":\"ADDED\",\"object\":{{}},\"object\":{item}}}\n");
        let server = Server::new("LIST → [$item] rv=10\n LIST → [] rv=10\n WATCH ×2 → $event …");
        let server = server.bytes("item", item.clone()).bytes("event", event);
        for by in ["list", "watch"] {
            let run = Run::<PodRef>::of(&server);
            run.has(&["x@7"]).await;
            assert!(run.errors().is_empty(), "{by} {item}: {:?}", run.errors());
            assert_eq!(run.informer.indexer().by_index("uid", "u-x").unwrap().len(), 1, "{by} {item}");
        }
    }
}

/// B37
#[tokio::test(start_paused = true)]
async fn of_an_object_that_a_list_names_twice_the_later_state_counts_once() {
    for list in [
        "LIST → [x@10 y@11 x@12] rv=12",
        "LIST → [x@10 y@11] rv=12 continue=t1\n LIST → [x@12] rv=12",
        "LIST → [x#u0@10 y@11] rv=12 continue=t1\n LIST → [x@12] rv=12",
    ] {
        let run = Run::<PodRef>::with(&Server::new(list), paged());
        run.converges_after(&["x@12", "y@11"]).await;
        let adds = run.heard.log().iter().filter(|told| told.starts_with("+x")).count();
        assert_eq!(adds, 1, "{list}: {:?}", run.heard.log());
        run.ends().await;
    }
}

/// B11
#[tokio::test(start_paused = true)]
async fn paging_ends_where_the_token_is_empty_or_null_and_goes_on_over_empty_pages() {
    let first = "LIST(rv=0,limit=2)";
    let next = |token: &str| format!("LIST(limit=2,continue={token})");
    let null = "{\"metadata\":{\"resourceVersion\":\"30\",\"continue\":null},\"items\":[]}";
    let table: [(&str, &[&str], Vec<String>); 6] = [
        ("LIST → [a@1 b@2] rv=9 continue=t1\n LIST → [c@3] rv=9 continue=", &["a@1", "b@2", "c@3"], vec![next("t1")]),
        ("LIST → [a@1 b@2] rv=9 continue=t1\n LIST → $null", &["a@1", "b@2"], vec![next("t1")]),
        (
            "LIST → [a@1] rv=9 continue=t1\n LIST → [] rv=9 continue=t2\n LIST → [c@3] rv=9",
            &["a@1", "c@3"],
            vec![next("t1"), next("t2")],
        ),
        ("LIST → [a@1 b@2 c@3 d@4] rv=9", &["a@1", "b@2", "c@3", "d@4"], vec![]),
        ("LIST → [] rv=9 continue=", &[], vec![]),
        // The version of the list is the first page's.
        ("LIST → [a@1] rv=9 continue=t1\n LIST → [b@2] rv=11", &["a@1", "b@2"], vec![next("t1")]),
    ];
    for (script, store, pages) in table {
        let server = Server::new(script).bytes("null", null);
        let run = Run::<PodRef>::with(&server, paged());
        until(script, || run.informer.has_synced()).await;
        run.requests(2 + pages.len()).await;
        assert_eq!(run.store(), store, "{script}");
        let asked: Vec<String> = [vec![first.to_owned()], pages, vec!["WATCH(9)".to_owned()]].concat();
        assert_eq!(server.asked(), asked, "{script}");
        run.ends().await;
    }
}

/// B11
#[tokio::test(start_paused = true)]
async fn a_token_that_comes_again_is_an_error_within_three_requests_and_no_list() {
    let server = Server::new("LIST ×∞ → [a@1 b@2] rv=9 continue=t1");
    let run = Run::<PodRef>::with(&server, paged());
    until("an error", || !run.errors().is_empty()).await;
    assert!(server.asked().len() <= 3, "{:?}", server.asked());
    assert!(run.errors()[0].contains("same continue token"), "{:?}", run.errors());
    assert!(!run.informer.has_synced() && run.store().is_empty());
    let requests = within(&run, Duration::from_secs(5)).await;
    assert!(requests <= 10, "{requests}");
    server.recover();
    server.restored(&["a@1", "b@2"], 9);
    run.converges_and_ends().await;
}

/// B11: a circle of several tokens, an endless supply of new ones that is cut short by an error.
#[tokio::test(start_paused = true)]
async fn a_circle_of_tokens_is_left_however_long_it_is() {
    let circle = ["t1", "t2", "t3"].map(|token| format!("LIST → [a@1] rv=9 continue={token}")).join("\n");
    let server = Server::new(&[circle.as_str(); 20].join("\n"));
    let run = Run::<PodRef>::with(&server, paged());
    until("an error", || !run.errors().is_empty()).await;
    assert!(server.asked().len() <= 12, "{:?}", server.asked());
    assert!(!run.informer.has_synced());
    run.ends().await;
}

/// A continue token expires at any page, with and without a new token: the whole list is asked for, at the
/// version of before; nothing of the half list is seen.
#[tokio::test(start_paused = true)]
async fn a_token_that_expires_at_any_page_costs_one_full_list() {
    for page in 1..4 {
        for refusal in ["410 reason=Expired", "410 reason=Expired token=t9", "410 reason=Gone", "410"] {
            let mut script: Vec<String> =
                (0..page).map(|n| format!("LIST → [gone{n}@{n}] rv=9 continue=t{n}")).collect();
            script.push(format!("LIST → {refusal}"));
            script.push("LIST → [a@1 b@2] rv=20".to_owned());
            let server = Server::new(&script.join("\n"));
            let run = Run::<PodRef>::with(&server, paged());
            run.converges_after(&["a@1", "b@2"]).await;
            assert_eq!(server.asked().len(), page + 3, "{refusal}: {:?}", server.asked());
            let full = &server.asked()[page + 1];
            let wanted = if refusal.contains("Expired") { "LIST(rv=0)" } else { "LIST(limit=2)" };
            assert_eq!(full, wanted, "{refusal} at page {page}");
            let mut log = run.heard.log();
            log.sort();
            assert_eq!(log, ["+a@1!", "+b@2!"], "{refusal} at page {page}");
            run.ends().await;
        }
    }
}

/// The full list fails too, and so does the next one.
#[tokio::test(start_paused = true)]
async fn expired_tokens_for_ever_make_no_hot_loop() {
    let pairs = "LIST → [a@1] rv=9 continue=t1\n LIST → 410 reason=Expired\n LIST → 500\n";
    let server = Server::new(&pairs.repeat(40));
    let run = Run::<PodRef>::with(&server, paged());
    let requests = within(&run, Duration::from_secs(5)).await;
    // Three requests each try.
    assert!(requests <= 12, "{requests}: {:?}", server.asked());
    assert!(!run.informer.has_synced());
    assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::Internal);
    run.ends().await;
}

/// A page fails in any other way: the list begins anew, after a delay, and the half of before is forgotten.
#[tokio::test(start_paused = true)]
async fn a_page_that_fails_leaves_nothing_of_its_list() {
    for fault in ["500", "503", "RST", "CUT", "$half ■", "$half CUT", "$half RST", "$foreign ■", "[x@3] rv=9 CUT"] {
        let script = format!(
            "LIST → [gone@1] rv=9 continue=t1\n LIST → {fault}\n LIST → [a@2] rv=20 continue=t2\n LIST → [b@3] rv=20"
        );
        let server = Server::new(&script)
            .bytes("half", "{\"items\":[{\"metadata\":{\"name\":\"h\"}},{")
            .bytes("foreign", "hello");
        let run = Run::<PodRef>::with(&server, paged());
        run.has(&["a@2", "b@3"]).await;
        let mut log = run.heard.log();
        log.sort();
        assert_eq!(log, ["+a@2!", "+b@3!"], "{fault}");
        assert_eq!(server.asked().len(), 5, "{fault}: {:?}", server.asked());
        assert_eq!(run.errors().len(), 1, "{fault}: {:?}", run.errors());
        run.ends().await;
    }
}

/// An item beyond its limit, and a list without an end to its other members: errors that say so, and the way back.
#[tokio::test(start_paused = true)]
async fn an_item_that_is_too_long_fails_its_list_in_words() {
    for body in [
        "{\"items\":[{\"a\":\"LONG\"}],\"metadata\":{\"resourceVersion\":\"9\"}}",
        "{\"metadata\":{\"a\":\"LONG\"},\"items\":[]}",
    ] {
        let body = body.replace("LONG", &"l".repeat(3 << 20));
        let server = Server::new("LIST ×2 → $body\n LIST → [a@1] rv=10").bytes("body", body);
        let limits = Limits::default().item(1 << 20);
        let run = Run::<PodRef>::with(&server, Options { limits, ..Options::default() });
        run.converges_after(&["a@1"]).await;
        assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::TooLong);
        assert!(run.errors().iter().all(|error| error.len() < 1000), "{:?}", run.errors());
        assert_eq!(run.errors().len(), 2);
        run.ends().await;
    }
}

/// More objects than allowed, in one page, in several, and as the initial events of a stream: nothing of them is
/// taken, and the error says what to do.
#[tokio::test(start_paused = true)]
async fn a_list_of_more_objects_than_allowed_is_told_and_taken_when_it_fits() {
    for (streams, lists) in [
        (false, "LIST ×2 → [a@1 b@2 c@3 d@4] rv=9"),
        (false, "LIST → [a@1 b@2] rv=9 continue=t1\n LIST → [c@3 d@4] rv=9 continue=t2"),
        (true, "STREAM → +a@1 +b@2 ~a@5 +c@3 +d@4 …\n LIST → [a@1 b@2 c@3 d@4] rv=9"),
    ] {
        let server = Server::new(lists);
        server.restored(&["a@5", "b@2", "z@10"], 10);
        let reflector = ReflectorOptions::new().watch_list(streams).list_len_max(3);
        let run = Run::<PodRef>::with(&server, Options { reflector, ..Options::default() });
        run.converges_after(&["a@5", "b@2", "z@10"]).await;
        assert!(run.errors().iter().any(|error| error.contains("list_len_max")), "{lists}: {:?}", run.errors());
        assert_eq!(run.heard.log(), ["+a@5!", "+b@2!", "+z@10!"], "{lists}");
        run.ends().await;
    }
}
