//! Connections that are open and dead, and those that are slow and alive: B19.

use std::time::Duration;

use kubewire_conformance::wire::{Server, Socket, Verb};
use kubewire_listwatch::Timeouts;

use super::PodRef;
use crate::support::{Options, Run, over_socket, quick, until};

const FIRST: &str = "LIST(rv=0,limit=500)";

/// B19: the client's own deadline, by paused time.
#[tokio::test(start_paused = true)]
async fn a_watch_on_a_dead_connection_is_left_when_its_own_time_is_over() {
    let half = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na";
    for rest in ["DEAD", "$half DEAD", "| $half DEAD"] {
        let server = Server::new(&format!("LIST → [] rv=10\n WATCH → +x@11 {rest}")).bytes("half", half);
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@11"]).await;
        server.happens("+y@12");
        run.requests(3).await;
        let log = server.log();
        let asked_for: u64 = log[1].param("timeoutSeconds").unwrap().parse().unwrap();
        let lived = log[2].at - log[1].at;
        assert!((300..600).contains(&asked_for), "{asked_for}");
        assert!(lived >= Duration::from_secs(asked_for), "{lived:?} of {asked_for} s");
        assert!(lived <= Duration::from_secs(asked_for + 10), "{lived:?} of {asked_for} s");
        assert_eq!(server.asked(), [FIRST, "WATCH(10)", "WATCH(11)"], "{rest}");
        run.converges_after(&["x@11", "y@12"]).await;
        run.ends().await;
    }
}

/// B19: seconds, spread over a range.
#[tokio::test(start_paused = true)]
async fn watches_ask_for_an_end_in_seconds_that_differ() {
    let server = Server::new("LIST → [] rv=10\n WATCH ×20 → 2000ms ■");
    let run = Run::<PodRef>::of(&server);
    run.requests(21).await;
    let log = server.log();
    let watches = log.iter().filter(|asked| asked.verb() == Verb::Watch);
    let mut seconds: Vec<u64> = watches.map(|asked| asked.param("timeoutSeconds").unwrap().parse().unwrap()).collect();
    assert!(seconds.iter().all(|seconds| (300..600).contains(seconds)), "{seconds:?}");
    seconds.sort_unstable();
    seconds.dedup();
    assert!(seconds.len() > 10, "{seconds:?}");
    run.ends().await;
}

/// B19: bookmarks alone are life, silence is not, where an idle limit is set.
#[tokio::test(start_paused = true)]
async fn bookmarks_keep_a_watch_alive_and_silence_ends_it() {
    let bookmarks: String = (11..31).map(|version| format!("BM@{version} 20000ms ")).collect();
    let server = Server::new(&format!("LIST → [x@10] rv=10\n WATCH → {bookmarks} DEAD"));
    let timeouts = Timeouts::default().watch_idle(Duration::from_secs(30)).watch_margin(Duration::from_secs(600));
    let run = Run::<PodRef>::with(&server, Options { timeouts, ..Options::default() });
    run.requests(3).await;
    let log = server.log();
    let lived = (log[2].at - log[1].at).as_secs();
    assert!((409..=412).contains(&lived), "{lived} s: as long as there were bookmarks, and 30 s");
    assert_eq!(server.asked(), [FIRST, "WATCH(10)", "WATCH(30)"]);
    run.ends().await;
}

/// B19, on real sockets: the next watch has a new connection, and the dead one is closed.
#[tokio::test]
async fn the_watch_after_a_dead_one_has_a_new_connection_and_the_dead_one_is_closed() {
    let socket = Socket::listen(Server::new("LIST → [] rv=10\n WATCH → +x@11 DEAD")).await;
    let timeouts = Timeouts::default().watch_idle(Duration::from_millis(100));
    let run = over_socket::<PodRef>(&socket, Options { timeouts, ..quick() });
    run.has(&["x@11"]).await;
    socket.server().happens("+y@12");
    run.converges_after(&["x@11", "y@12"]).await;
    let log = socket.server().log();
    assert_eq!(log[2].to_string(), "WATCH(11)");
    assert_ne!(log[2].connection, log[1].connection);
    until("the dead connection is closed", || socket.open() <= 1).await;
    run.ends().await;
    until("no socket is left", || socket.open() == 0).await;
}

/// A slow drip is no fault: it is read as it comes.
#[tokio::test(start_paused = true)]
async fn a_list_and_a_watch_that_drip_are_read_to_their_end() {
    let list = "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns1\",\"uid\":\"u-x\",\"resourceVersion\":\"10\"}}]}";
    let mut server = Server::new("");
    let mut drip = String::new();
    for (n, piece) in list.as_bytes().chunks(8).enumerate() {
        server = server.bytes(&format!("l{n}"), piece);
        drip.push_str(&format!("$l{n} 29000ms "));
    }
    server.then(&format!("LIST → {drip} ■\n WATCH → +y@11 20000ms +z@12"));
    let run = Run::<PodRef>::of(&server);
    run.has(&["x@10", "y@11", "z@12"]).await;
    assert_eq!(server.asked(), [FIRST, "WATCH(10)"]);
    run.ends().await;
}

/// Stopped at any place, nothing is left of it.
#[tokio::test]
async fn a_stop_leaves_no_task_and_no_socket_wherever_it_comes() {
    let half = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na";
    for script in [
        "LIST → DEAD",
        "LIST → $half DEAD",
        "LIST → [] rv=10\n WATCH → DEAD",
        "LIST → [] rv=10\n WATCH → $half DEAD",
        "LIST → [] rv=10\n WATCH → +x@11 …",
        "LIST ×∞ → 500",
    ] {
        let socket = Socket::listen(Server::new(script).bytes("half", half)).await;
        let run = over_socket::<PodRef>(&socket, quick());
        run.requests(script.lines().count()).await;
        run.ends().await;
        until("no socket is left", || socket.open() == 0).await;
    }
}
