//! Which object it is, and which state is the newer one: B09, B15, B49, and a server that goes back in time.

use kubewire_conformance::wire::Server;
use kubewire_informer::Delivery;

use super::PodRef;
use crate::support::{Options, Run, until};

const DELIVERIES: [Delivery; 3] = [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder];

fn delivered(delivery: Delivery) -> Options {
    Options { delivery, ..Options::default() }
}

/// B09
#[tokio::test(start_paused = true)]
async fn an_object_made_anew_under_its_name_is_told_with_both_uids() {
    // what the server does, what the handler hears
    let table: [(&str, &[&str]); 4] = [
        ("WATCH → ERR:410:Expired ■\n LIST → [x#u2@30] rv=30", &["~x@10>x#u2@30"]),
        ("WATCH → -x@11 +x#u2@12", &["-x@11", "+x#u2@12"]),
        ("WATCH → ~x#u2@12", &["~x@10>x#u2@12"]),
        ("WATCH → +x#u2@12", &["~x@10>x#u2@12"]),
    ];
    for delivery in DELIVERIES {
        for (script, told) in table {
            let server = Server::new(&format!("LIST → [x@10] rv=10\n {script}"));
            let run = Run::<PodRef>::with(&server, delivered(delivery));
            run.converges_after(&[told.last().unwrap().rsplit(['>', '+']).next().unwrap()]).await;
            assert_eq!(run.heard.log(), [&["+x@10!"], told].concat(), "{delivery:?} {script}");
            let by_uid = |uid| run.informer.indexer().by_index("uid", uid).unwrap().len();
            assert_eq!((by_uid("u-x"), by_uid("u2")), (0, 1), "{delivery:?} {script}");
            run.ends().await;
        }
    }
}

/// B15
#[tokio::test(start_paused = true)]
async fn a_deletion_that_only_a_list_reveals_is_told_once_with_the_last_state() {
    for delivery in DELIVERIES {
        for lost in ["WATCH → ERR:410:Expired ■", "WATCH → 410", "WATCH → 500", "WATCH ×4 → RST"] {
            let server = Server::new(&format!("LIST → [x@10 y@11] rv=11\n {lost}\n LIST → [y@11] rv=40"));
            let run = Run::<PodRef>::with(&server, delivered(delivery));
            run.converges_after(&["y@11"]).await;
            assert_eq!(run.heard.log().last().unwrap(), "-x@10?", "{delivery:?} {lost}");
            assert!(run.informer.indexer().by_index("uid", "u-x").unwrap().is_empty());
            // A second one, in the next stream, of what is not there any more.
            server.happens("-x@41 +z@42");
            run.has(&["y@11", "z@42"]).await;
            let deletions = run.heard.log().iter().filter(|told| told.starts_with("-x")).count();
            // In order every deletion is told, as client-go does.
            assert_eq!(deletions, if delivery == Delivery::InOrder { 2 } else { 1 }, "{:?}", run.heard.log());
            run.ends().await;
        }
    }
}

/// B49
#[tokio::test(start_paused = true)]
async fn a_list_older_than_asked_is_refused_and_nothing_deleted_comes_back() {
    for stale in ["LIST → [x@10] rv=12", "LIST ×2 → [x@10] rv=12", "LIST → [x@10] rv=9", "LIST → [x@10] rv=015"]
    {
        let server = Server::new(&format!("LIST → [x@10] rv=10\n WATCH → ~x@15 -x@16 ■\n WATCH → 410\n {stale}"));
        let run = Run::<PodRef>::of(&server);
        let refused = 1 + usize::from(stale.contains("×2"));
        run.requests(4 + refused + 1).await;
        assert_eq!(server.asked()[3..4 + refused], vec!["LIST(rv=16)"; 1 + refused], "{stale}");
        until("it is synced with the truth", || {
            run.store().is_empty() && run.informer.last_sync_resource_version() == "16"
        })
        .await;
        assert!(
            !run.heard.log().iter().any(|told| told.starts_with("+x") && told != "+x@10!"),
            "{:?}",
            run.heard.log()
        );
        assert!(run.errors().iter().any(|error| error.contains("not older than 16")), "{:?}", run.errors());
        server.happens("+y@17");
        run.converges_and_ends_after(&["y@17"]).await;
    }
}

/// B49: what a bookmark or an event says of the past moves the watch back, and lets no older list in.
#[tokio::test(start_paused = true)]
async fn a_bookmark_or_an_event_that_goes_back_lets_no_older_list_in() {
    for back in ["BM@12", "BM@9 BM@12", "~y@12", "BM@12 BM@opaque BM@12"] {
        let server = Server::new(&format!(
            "LIST → [x@10 y@8] rv=10\n WATCH → ~x@15 -x@16 {back} ■\n WATCH → 410\n LIST ×2 → [x@14 y@8] rv=14"
        ));
        let run = Run::<PodRef>::of(&server);
        run.requests(6).await;
        assert_eq!(server.asked()[2..6], ["WATCH(12)", "LIST(rv=16)", "LIST(rv=16)", "LIST(rv=16)"], "{back}");
        until("it is synced with the truth", || !run.store().iter().any(|thing| thing.starts_with('x'))).await;
        let log = run.heard.log();
        assert!(!log.iter().any(|told| told.starts_with("+x") && told != "+x@10!"), "{back}: {log:?}");
        server.happens("+z@20");
        until("the next", || run.store().contains(&"z@20".to_owned())).await;
        run.ends().await;
    }
}

/// A version that no server understands, from whoever stands in between: it is refused for ever, so it is dropped.
#[tokio::test(start_paused = true)]
async fn a_version_that_no_server_understands_is_dropped_after_three_lists() {
    for (told, refused) in [("99999999999999999999", "400"), ("18446744073709551616", "422"), ("10", "414")] {
        let server = Server::new(&format!(
            "LIST → [x@10] rv=10\n WATCH → BM@{told} 2000ms ■\n WATCH → {refused}\n LIST ×3 → {refused}"
        ));
        let run = Run::<PodRef>::of(&server);
        run.requests(7).await;
        let lists: Vec<String> = server.asked()[3..7].to_vec();
        let asked = format!("LIST(rv={told})");
        assert_eq!(lists, [&asked, &asked, &asked, "LIST(limit=500)"]);
        run.ends().await;
    }
}

/// B49: versions are decimal numbers of any length; texts are not compared.
#[tokio::test(start_paused = true)]
async fn versions_longer_than_any_integer_are_compared_as_numbers() {
    let [older, newer, newest] = ["9", "18446744073709551616", "18446744073709551617"];
    for (first, second, refused) in
        [(newer, older, true), (newest, newer, true), (newer, newest, false), (older, newer, false)]
    {
        let server = Server::new(&format!(
            "LIST → [x@{first}] rv={first}\n WATCH → 410\n LIST → [y@{second}] rv={second}\n LIST → [z@{newest}] rv={newest}"
        ));
        let run = Run::<PodRef>::of(&server);
        let wanted = if refused { format!("z@{newest}") } else { format!("y@{second}") };
        run.has(&[&wanted]).await;
        run.ends().await;
    }
}

/// B49: a stream that tells old states again. As client-go, each event is applied as it comes; the version
/// follows it, so that the next watch brings the newer states again.
#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_back_is_followed_and_put_right_by_the_next_watch() {
    let server = Server::new("LIST → [x@10] rv=10\n WATCH → ~x@15 | ~x@14 | -x@16 | ~x@15 2000ms ■");
    let run = Run::<PodRef>::with(&server, delivered(Delivery::InOrder));
    run.has(&["x@15"]).await;
    run.requests(3).await;
    run.has(&[]).await;
    assert_eq!(server.asked(), ["LIST(rv=0,limit=500)", "WATCH(10)", "WATCH(15)"]);
    until("it is told", || run.heard.log().last().is_some_and(|told| told == "-x@16")).await;
    run.ends().await;
}

/// Duplicate and unordered events of several objects: the store ends as the server's.
#[tokio::test(start_paused = true)]
async fn duplicate_and_unordered_events_end_in_the_same_store() {
    for (events, store) in [
        ("+x@11 +x@11 ~x@12 ~x@12 -x@13 -x@13 +y@14 +y@14", &["y@14"][..]),
        ("+x@11 +y@12 ~x@13 | +x@13 | ~y@14 ~x@15", &["x@15", "y@14"]),
        ("~x@11 ~y@12", &["x@11", "y@12"]),
        ("-x@11 -y@12 +y#u2@13", &["y#u2@13"]),
    ] {
        for delivery in DELIVERIES {
            let run = Run::<PodRef>::with(
                &Server::new(&format!("LIST → [] rv=10\n WATCH → {events}")),
                delivered(delivery),
            );
            run.has(store).await;
            assert_eq!(run.store(), run.server.truth(), "{events}");
            let log = run.heard.log();
            let twice = log.iter().filter(|told| told.starts_with('+')).count();
            let once = log.iter().filter(|told| told.starts_with('+')).collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!(twice, once, "{delivery:?}: an object that is there is not added: {log:?}");
            run.ends().await;
        }
    }
}

/// The server is restored from a backup: its versions go back. It is refused three times, then asked for its most
/// recent state, and believed.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_to_an_older_state_is_believed_in_the_end() {
    let too_large = "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}";
    for (lost, lists) in [
        ("WATCH → 2000ms ERR:410:Expired ■", &["LIST(rv=16)", "LIST(rv=16)", "LIST(rv=16)", "LIST(limit=500)"][..]),
        ("WATCH → 2000ms ERR:410:Expired ■\n LIST → 504 $large", &["LIST(rv=16)", "LIST()"]),
        ("WATCH → 2000ms ■\n WATCH → 504 $large\n LIST → 504 $large", &["LIST(rv=16)", "LIST()"]),
    ] {
        let server = Server::new(&format!("LIST → [x@10 y@16] rv=16\n {lost}")).bytes("large", too_large);
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@10", "y@16"]).await;
        run.requests(2).await;
        server.restored(&["x@5"], 7);
        run.has(&["x@5"]).await;
        let asked: Vec<String> = server.asked().into_iter().filter(|asked| asked.starts_with("LIST")).skip(1).collect();
        assert_eq!(asked, lists, "{lost}");
        server.happens("+z@8");
        run.converges_and_ends_after(&["x@5", "z@8"]).await;
    }
}

/// A watch that begins behind the present: an event that fell between list and watch is replayed, none is lost.
#[tokio::test(start_paused = true)]
async fn what_happens_between_list_and_watch_is_not_lost() {
    for early in ["-x@11", "~x@11", "-x@11 +x#u2@12", "+y@11 -y@12"] {
        let server = Server::new("LIST → [x@10] rv=10 500ms ■");
        let run = Run::<PodRef>::of(&server);
        run.requests(1).await;
        server.happens(early);
        run.requests(2).await;
        server.happens("+z@20");
        until("the last", || run.store().contains(&"z@20".to_owned())).await;
        run.converges_and_ends().await;
    }
}

/// Bookmarks with odd versions: the position follows them, as in client-go, and nothing is lost by it.
#[tokio::test(start_paused = true)]
async fn bookmarks_that_go_back_or_far_ahead_or_are_no_numbers_lose_nothing() {
    // bookmarks, where the next watch begins
    for (bookmarks, version) in
        [("BM@11", "11"), ("BM@9", "9"), ("BM@12 BM@11", "11"), ("BM@011", "011"), ("BM@opaque", "opaque")]
    {
        let server = Server::new(&format!("LIST → [x@10] rv=10\n WATCH → ~x@11 {bookmarks} 2000ms ■"));
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@11"]).await;
        run.requests(3).await;
        assert_eq!(server.asked()[2], format!("WATCH({version})"), "{bookmarks}");
        server.happens("+y@20");
        run.has(&["x@11", "y@20"]).await;
        until("it is told", || run.heard.replayed() == run.store()).await;
        run.ends().await;
    }
}
