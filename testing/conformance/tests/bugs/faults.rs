//! Answers of failure, at the opening and within the stream, once and for ever: B07, B25, B31, B41, B43.

use std::time::Duration;

use kubewire_conformance::wire::{Server, Socket};
use kubewire_informer::reflector::RestartCause;
use kubewire_listwatch::{ErrorClass, Limits, Timeouts};

use super::PodRef;
use crate::support::{Options, Run, over_socket, quick, until, within};

const FIRST: &str = "LIST(rv=0,limit=500)";
const HALF: &str =
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{\"name\":\"half\"}},";

/// A server whose scripts may use `$half`, `$html`, `$text`, `$null`.
fn server(script: &str) -> Server {
    Server::new(script)
        .bytes("half", HALF)
        .bytes("nothing", "")
        .bytes("html", "<html><h1>502 Bad Gateway</h1></html>")
        .bytes("text", "upstream connect error or disconnect/reset before headers")
        .bytes("null", "{\"type\":\"ERROR\",\"object\":null}\n")
        .bytes("kindless", "{\"type\":\"ERROR\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n")
        .bytes("texterror", "{\"type\":\"ERROR\",\"object\":\"too old\"}\n")
        .bytes("objecterror", "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"evil\",\"namespace\":\"ns1\"}}}\n")
        .bytes("halfline", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"half\"")
}

fn short_waits() -> Options {
    let timeouts = Timeouts::default().headers(Duration::from_secs(1)).list_idle(Duration::from_secs(1));
    Options { timeouts, ..Options::default() }
}

/// Answers of failure to a list: the answer, and its class.
const LIST_FAULTS: &[(&str, ErrorClass)] = &[
    ("400", ErrorClass::Invalid),
    ("401", ErrorClass::Unauthorized),
    ("403", ErrorClass::Forbidden),
    ("404", ErrorClass::NotFound),
    ("409", ErrorClass::Invalid),
    ("429", ErrorClass::Throttled),
    ("429 after=1 $text", ErrorClass::Throttled),
    ("429 told=1", ErrorClass::Throttled),
    ("429 after=date+2", ErrorClass::Throttled),
    ("500", ErrorClass::Internal),
    ("502 $html", ErrorClass::Unavailable),
    ("503", ErrorClass::Unavailable),
    ("503 after=1", ErrorClass::Unavailable),
    ("503 $text", ErrorClass::Unavailable),
    ("504 reason=Timeout", ErrorClass::Unavailable),
    ("302 header:location=http://127.0.0.1:1/", ErrorClass::Other),
    ("204 $nothing", ErrorClass::Truncated),
    ("200 $html", ErrorClass::Decode),
    ("200 $text", ErrorClass::Decode),
    ("200 $half ■", ErrorClass::Truncated),
    ("200 $half CUT", ErrorClass::Truncated),
    ("200 $half RST", ErrorClass::Transport),
    ("200 $half DEAD", ErrorClass::TimedOut),
    ("200 RST", ErrorClass::Transport),
    ("[x@10] rv=10 CUT", ErrorClass::Truncated),
    ("[x@10] rv=10 RST", ErrorClass::Transport),
    ("RST", ErrorClass::Transport),
    ("CUT", ErrorClass::Transport),
    ("DEAD", ErrorClass::TimedOut),
    ("REFUSED", ErrorClass::ConnectionRefused),
];

/// B41: each fault of a list once, then a good one.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_told_with_its_class_and_asked_for_again() {
    for (fault, class) in LIST_FAULTS {
        let server = server(&format!("LIST → {fault}\n LIST → [x@20 y@21] rv=21"));
        let run = Run::<PodRef>::with(&server, short_waits());
        run.converges_after(&["x@20", "y@21"]).await;
        assert_eq!(
            run.informer.status().last_error().expect(fault).error.class(),
            *class,
            "{fault}: {:?}",
            run.errors()
        );
        assert_eq!(run.errors().len(), 1, "{fault}: {:?}", run.errors());
        assert!(run.errors()[0].starts_with("pods: cannot list: "), "{:?}", run.errors());
        assert_eq!(server.asked()[..2], [FIRST, FIRST], "{fault}");
        run.ends().await;
    }
}

/// B41: each fault of a list for ever (A-budget), and the way back.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_ever_is_asked_for_with_growing_delays_and_recovers_by_itself() {
    let expired = ("410 reason=Expired", ErrorClass::Expired);
    for (fault, class) in LIST_FAULTS.iter().chain([&expired]) {
        let server = server(&format!("LIST ×∞ → {fault}"));
        let run = Run::<PodRef>::with(&server, short_waits());
        let requests = within(&run, Duration::from_secs(5)).await;
        assert!((2..=10).contains(&requests), "{fault}: {requests} requests: {:?}", server.asked());
        tokio::time::sleep(Duration::from_secs(300)).await;
        let log = server.log();
        // Delays without jitter double: each is at least the lower bound of its step.
        let gaps: Vec<f64> = log.windows(2).map(|two| (two[1].at - two[0].at).as_secs_f64()).collect();
        let pauses: Vec<f64> = gaps.into_iter().filter(|gap| *gap > 0.0).collect();
        for (step, gap) in pauses.iter().enumerate() {
            let floor = (0.8 * f64::powi(2.0, i32::try_from(step).unwrap())).min(30.0);
            assert!(*gap >= floor * 0.999 && *gap <= 63.0, "{fault}: pause {step} is {gap} s: {pauses:?}");
        }
        assert!(!run.informer.has_synced());
        assert_eq!(run.informer.status().last_error().unwrap().error.class(), *class, "{fault}");
        let before = server.log().len();
        server.recover();
        server.restored(&["x@10"], 10);
        run.converges_after(&["x@10"]).await;
        assert!(server.log()[before].at.elapsed() < Duration::from_secs(3), "at the first try");
        run.ends().await;
    }
}

/// Answers of failure to the opening of a watch: the answer, the class, and whether the same watch is asked for
/// again (else a list at the last version).
const WATCH_FAULTS: &[(&str, ErrorClass, bool)] = &[
    ("400", ErrorClass::Invalid, false),
    ("401", ErrorClass::Unauthorized, false),
    ("403", ErrorClass::Forbidden, false),
    ("404", ErrorClass::NotFound, false),
    ("409", ErrorClass::Invalid, false),
    ("410", ErrorClass::Expired, false),
    ("410 reason=Expired", ErrorClass::Expired, false),
    ("410 reason=Gone", ErrorClass::Expired, false),
    ("429", ErrorClass::Throttled, true),
    ("500", ErrorClass::Internal, false),
    ("502 $html", ErrorClass::Unavailable, false),
    ("503", ErrorClass::Unavailable, false),
    ("504", ErrorClass::Unavailable, false),
    ("RST", ErrorClass::Transport, true),
    ("CUT", ErrorClass::Transport, true),
    ("DEAD", ErrorClass::TimedOut, true),
    ("REFUSED", ErrorClass::ConnectionRefused, true),
];

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_is_asked_for_again_or_a_list_at_its_version_is() {
    for (fault, class, same) in WATCH_FAULTS {
        let server = server(&format!("LIST → [x@10] rv=10\n WATCH → {fault}"));
        let run = Run::<PodRef>::with(&server, short_waits());
        run.requests(2).await;
        server.happens("+y@11 -x@12");
        run.converges_after(&["y@11"]).await;
        assert_eq!(run.informer.status().last_error().expect(fault).error.class(), *class, "{fault}");
        assert_eq!(run.errors().len(), 1, "{fault}: {:?}", run.errors());
        assert!(run.errors()[0].starts_with("pods: cannot watch: "), "{:?}", run.errors());
        run.requests(if *same { 3 } else { 4 }).await;
        let after = if *same { &["WATCH(10)"][..] } else { &["LIST(rv=10)", "WATCH(12)"] };
        assert_eq!(server.asked()[..2], [FIRST, "WATCH(10)"], "{fault}");
        assert_eq!(&server.asked()[2..], after, "{fault}");
        run.ends().await;
    }
}

/// B41, B43, B07, B31: what a server may do to every watch, for ever (A-budget), and the way back.
#[tokio::test(start_paused = true)]
async fn watches_that_fail_or_end_for_ever_make_no_hot_loop_and_lose_nothing() {
    let others = [
        "■",
        "CUT",
        "200 CUT",
        "200 RST",
        "900ms ■",
        "BM@10 ■",
        "BM@10 900ms ■",
        "$blank ■",
        "$halfline ■",
        "$halfline CUT",
        "ERR:410:Expired ■",
        "ERR:410 …",
        "ERR:500 ■",
        "ERR:500 …",
        "ERR:504 ■",
        "ERR:403 ■",
        "ERR:429 ■",
        "ERR: ■",
        "$null ■",
        "$kindless ■",
        "$texterror ■",
        "$unknown ■",
        "BM@10 RST",
        "BM@10 CUT",
    ];
    for fault in WATCH_FAULTS.iter().map(|(fault, ..)| *fault).chain(others) {
        let server = server(&format!("LIST → [x@10] rv=10\n WATCH ×∞ → {fault}"));
        let server = server.bytes("blank", "\n").bytes("unknown", "{\"type\":\"PING\",\"object\":{}}\n");
        let run = Run::<PodRef>::with(&server, short_waits());
        let requests = within(&run, Duration::from_secs(5)).await;
        assert!((3..=10).contains(&requests), "{fault}: {requests} requests: {:?}", server.asked());
        assert_eq!(run.store(), ["x@10"], "{fault}");
        assert_eq!(run.heard.log(), ["+x@10!"], "{fault}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        server.recover();
        server.happens("~x@11 +y@12");
        run.converges_after(&["x@11", "y@12"]).await;
        run.ends().await;
    }
}

/// B43: with one event each they make progress, and are paced all the same.
#[tokio::test(start_paused = true)]
async fn watches_that_end_after_one_event_each_deliver_all_at_no_more_than_twenty_a_second() {
    for end in ["■", "CUT", "RST"] {
        let lines = (11..111).map(|version| format!("WATCH → +x{version}@{version} {end}"));
        let server = server(&format!("LIST → [] rv=10\n{}", lines.collect::<Vec<_>>().join("\n")));
        let run = Run::<PodRef>::of(&server);
        let requests = within(&run, Duration::from_secs(1)).await;
        assert!((5..=20).contains(&requests), "{requests} requests in the first second");
        until("all are there", || run.store().len() == 100).await;
        let told: Vec<String> = (11..111).map(|version| format!("+x{version}@{version}")).collect();
        assert_eq!(run.heard.log(), told);
        assert_eq!(server.asked().iter().filter(|asked| asked.starts_with("LIST")).count(), 1);
        run.converges_and_ends().await;
    }
}

/// B43: the delays start over after a long time of health, and not after a single good answer.
#[tokio::test(start_paused = true)]
async fn delays_start_over_after_two_minutes_of_health_and_not_before() {
    for (healthy_ms, longest_next) in [(121_000, 1.7), (1_000, 1000.0)] {
        let bad = "WATCH → 500\n LIST → [x@10] rv=10\n".repeat(6);
        let server = server(&format!("LIST → [x@10] rv=10\n {bad} WATCH → {healthy_ms}ms ERR:500 ■"));
        let run = Run::<PodRef>::of(&server);
        run.requests(15).await;
        let log = server.log();
        let next = (log[14].at - log[13].at).as_secs_f64() - f64::from(healthy_ms) / 1000.0;
        assert!(next <= longest_next, "{next} s after {healthy_ms} ms of health");
        assert!(healthy_ms > 120_000 || next >= 25.0, "{next} s after {healthy_ms} ms of health");
        run.ends().await;
    }
}

/// B07: how long the server wants to be left alone, in every form; the same watch, no list.
#[tokio::test(start_paused = true)]
async fn too_many_requests_waits_as_long_as_told_and_asks_for_the_same_watch() {
    // answer, the least and the most seconds before the next request
    let table = [
        ("429 after=2", 2.0, 2.1),
        ("429 after=2 $text", 2.0, 2.1),
        ("429 told=2", 2.0, 2.1),
        ("429", 0.8, 1.6),
        ("429 after=0", 0.8, 1.6),
        ("429 after=-5", 0.8, 1.6),
        ("429 after=soon", 0.8, 1.6),
        ("429 after=", 0.8, 1.6),
        ("429 after=date+30", 28.0, 31.0),
        ("429 after=99999999", 30.0, 61.0),
        ("429 after=99999999999999999999999999", 0.8, 61.0),
        ("429 after=Sun,_06_Nov_1994_08:49:37_GMT", 0.8, 1.6),
        ("ERR:429 ■", 0.8, 1.6),
        ("ERR:0:TooManyRequests …", 0.8, 1.6),
        ("$told …", 2.0, 2.1),
    ];
    let told =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,\"details\":{\"retryAfterSeconds\":2}}}\n";
    for (answer, least, most) in table {
        let server = server(&format!("LIST → [x@10] rv=10\n WATCH → {answer}\n WATCH → +y@11")).bytes("told", told);
        let run = Run::<PodRef>::of(&server);
        run.converges_after(&["x@10", "y@11"]).await;
        assert_eq!(server.asked(), [FIRST, "WATCH(10)", "WATCH(10)"], "{answer}");
        let log = server.log();
        let gap = (log[2].at - log[1].at).as_secs_f64();
        assert!((least..=most).contains(&gap), "{answer}: {gap} s");
        assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::Throttled);
        run.ends().await;
    }
}

/// B25: in every form, within the stream and at its opening; and the list after it fails twice.
#[tokio::test(start_paused = true)]
async fn an_expired_version_leads_to_one_list_that_is_asked_for_until_it_works() {
    let forms = [
        "+y@11 ERR:410:Expired ■",
        "+y@11 ERR:410:Gone ■",
        "+y@11 ERR::Expired ■",
        "+y@11 ERR::Gone ■",
        "+y@11 ERR:410 ■",
        "+y@11 ERR:410:Expired …",
        "+y@11 ERR:410:Expired | +late@12 …",
        "+y@11 ERR:410 DEAD",
        "410",
    ];
    for form in forms {
        let server =
            server(&format!("LIST → [x@10] rv=10\n WATCH → {form}\n LIST ×2 → 500\n LIST → [y@11 z@40] rv=40"));
        let run = Run::<PodRef>::of(&server);
        run.converges_after(&["y@11", "z@40"]).await;
        run.requests(6).await;
        let list = if form == "410" { "LIST(rv=10)" } else { "LIST(rv=11)" };
        assert_eq!(server.asked(), [FIRST, "WATCH(10)", list, list, list, "WATCH(40)"], "{form}");
        let mut log = run.heard.log();
        log.sort();
        assert_eq!(log, ["+x@10!", "+y@11", "+z@40", "-x@10?"], "{form}");
        assert_eq!(run.informer.status().reflector.restarts_by(RestartCause::Failed(ErrorClass::Expired)), 1, "{form}");
        run.ends().await;
    }
}

/// B31: never an object, never the end; on a stream that goes on behind it too.
#[tokio::test(start_paused = true)]
async fn an_error_event_of_any_kind_ends_the_stream_and_loses_nothing() {
    let errors = [
        ("ERR:500:InternalError", ErrorClass::Internal),
        ("ERR:504:Timeout", ErrorClass::Unavailable),
        ("ERR:503", ErrorClass::Unavailable),
        ("ERR:403:Forbidden", ErrorClass::Forbidden),
        ("ERR:401", ErrorClass::Unauthorized),
        ("ERR:404", ErrorClass::NotFound),
        ("ERR:409:Conflict", ErrorClass::Invalid),
        ("ERR:", ErrorClass::Other),
        ("$null", ErrorClass::Other),
        ("$kindless", ErrorClass::Other),
        ("$texterror", ErrorClass::Other),
        ("$objecterror", ErrorClass::Other),
    ];
    for (error, class) in errors {
        for rest in ["■", "+y@12 …", "| +y@12 …", "CUT", "RST", "DEAD"] {
            let server = server(&format!("LIST → [] rv=10\n WATCH → +x@11 {error} {rest}"));
            let run = Run::<PodRef>::of(&server);
            run.requests(2).await;
            server.happens("+y@12");
            run.converges_after(&["x@11", "y@12"]).await;
            assert_eq!(run.informer.status().last_error().unwrap().error.class(), class, "{error} {rest}");
            assert_eq!(server.asked()[2], "LIST(rv=11)", "{error} {rest}");
            assert_eq!(server.asked().len(), 4, "{error} {rest}: {:?}", server.asked());
            assert_eq!(run.heard.log().len(), 2, "{error} {rest}: {:?}", run.heard.log());
            run.ends().await;
        }
    }
}

/// The body ends within a line: what was whole counts, the rest does not.
#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_off_within_an_event_goes_on_from_the_last_whole_one() {
    for end in ["■", "CUT", "RST"] {
        let server = server(&format!("LIST → [] rv=10\n WATCH → +x@11 $halfline {end}"));
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@11"]).await;
        run.requests(3).await;
        assert_eq!(server.asked(), [FIRST, "WATCH(10)", "WATCH(11)"], "{end}");
        server.happens("+y@12");
        run.converges_after(&["x@11", "y@12"]).await;
        assert!(run.errors().is_empty(), "a stream that broke has lost nothing: {:?}", run.errors());
        run.ends().await;
    }
}

/// B41, on real sockets: what hyper makes of it, and no socket is left.
#[tokio::test]
async fn faults_of_real_connections_are_lived_through() {
    let table = [
        "LIST → RST",
        "LIST → CUT",
        "LIST → 200 RST",
        "LIST → $half CUT",
        "LIST → $half RST",
        "LIST → $half ■",
        "LIST → $half DEAD",
        "LIST → DEAD",
        "LIST → 503 $html",
        "LIST → 429 after=0",
        "LIST → [x@10] rv=10\n WATCH → RST",
        "LIST → [x@10] rv=10\n WATCH → +y@11 RST",
        "LIST → [x@10] rv=10\n WATCH → +y@11 CUT",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $halfline CUT",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $halfline RST",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $halfline ■",
        "LIST → [x@10] rv=10\n WATCH → DEAD",
    ];
    for script in table {
        let socket = Socket::listen(server(script)).await;
        let timeouts = Timeouts::default().headers(Duration::from_millis(100)).list_idle(Duration::from_millis(100));
        let run = over_socket::<PodRef>(&socket, Options { timeouts, ..quick() });
        run.requests(script.lines().count() + 1).await;
        socket.server().restored(&["x@10", "y@11"], 11);
        socket.server().happens("~x@12 -y@13 +z@14");
        // Watches of before the restore know nothing of it.
        socket.close().await;
        socket.reopen().await;
        run.has(&["x@12", "z@14"]).await;
        run.ends().await;
        until("no socket is left", || socket.open() == 0).await;
    }
}

/// B41: nobody listens, then somebody does; one loop only.
#[tokio::test]
async fn a_port_that_is_closed_for_a_while_is_found_again_without_a_list() {
    let socket = Socket::listen(Server::new("LIST → [] rv=9\n WATCH → +x@10 …")).await;
    let run = over_socket::<PodRef>(&socket, quick());
    run.converges_after(&["x@10"]).await;
    socket.close().await;
    until("it is refused", || {
        run.informer.status().reflector.restarts_by(RestartCause::Failed(ErrorClass::ConnectionRefused)) >= 3
    })
    .await;
    socket.server().happens("~x@11 +y@12");
    socket.reopen().await;
    run.converges_after(&["x@11", "y@12"]).await;
    let asked = socket.server().asked();
    assert_eq!(asked, [FIRST, "WATCH(9)", "WATCH(10)"]);
    assert!(run.errors().iter().all(|error| error.contains("connection_refused")), "{:?}", run.errors());
    run.ends().await;
    until("no socket is left", || socket.open() == 0).await;
}

/// Very long answers of failure are read in part.
#[tokio::test(start_paused = true)]
async fn a_long_page_of_error_is_cut_and_shown_in_an_excerpt() {
    let server =
        Server::new("LIST → 503 $page | $page | $page RST\n LIST → [x@10] rv=10").bytes("page", vec![b'p'; 1 << 20]);
    let run = Run::<PodRef>::with(&server, Options { limits: Limits::default(), ..Options::default() });
    run.converges_after(&["x@10"]).await;
    assert!(run.errors()[0].len() < 1000 && run.errors()[0].contains("503"), "{}", run.errors()[0].len());
    run.ends().await;
}
