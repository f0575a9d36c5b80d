//! What may come in a watch's body, byte by byte: B01, B08, B48.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use kube_client::Config;
use kubewire_conformance::wire::{Server, Socket, Thing, event_line};
use kubewire_indexer::Object;
use kubewire_informer::Delivery;
use kubewire_listwatch::{ClientOptions, ErrorClass, Limits};
use serde_json::{Value, json};

use super::PodRef;
use crate::forms::Served;
use crate::support::{Options, Run, over_socket, quick, within};

/// Characters of 1, 2, 3 and 4 bytes, and an escaped pair of surrogates.
const TEXT: &str = "aé€😀";

fn with_text(text: &str) -> Value {
    let mut object = Thing::parse(text).json();
    object["metadata"]["labels"] = json!({"text": TEXT, "escaped": "SURROGATES"});
    object
}

fn line_with_text(text: &str) -> Vec<u8> {
    let line = String::from_utf8(event_line("ADDED", &with_text(text))).unwrap();
    line.replace("SURROGATES", "\\ud83d\\ude00").into_bytes()
}

/// `$p0 | $p1 | …` for pieces of these bytes.
fn in_pieces(server: Server, body: &[u8], lengths: impl IntoIterator<Item = usize>) -> (Server, String) {
    let (mut server, mut script, mut rest) = (server, String::new(), body);
    for (n, length) in lengths.into_iter().enumerate() {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        server = server.bytes(&format!("p{n}"), piece);
        script.push_str(&format!("$p{n} | "));
        rest = after;
    }
    (server.bytes("rest", rest), script + "$rest")
}

/// B01
#[tokio::test(start_paused = true)]
async fn a_body_cut_at_any_byte_is_read_as_if_it_were_whole() {
    let body = line_with_text("x@11");
    // Every cut within the text and around the ends; every seventh elsewhere.
    let text = body.windows(4).position(|four| four == "aé€".as_bytes().split_at(4).0).unwrap_or(0);
    for cut in (1..body.len()).filter(|cut| cut.abs_diff(text) < 24 || cut % 7 == 0 || body.len() - cut < 4) {
        let server = Server::new("LIST → [] rv=10");
        let (server, pieces) = in_pieces(server, &body, [cut]);
        server.then(&format!("WATCH → {pieces} …"));
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@11"]).await;
        let object = &run.informer.indexer().list().to_vec()[0];
        assert_eq!(object.label("text"), Some(TEXT), "cut at {cut}");
        assert_eq!(object.label("escaped"), Some("😀"), "cut at {cut}");
        assert_eq!(server.asked(), ["LIST(rv=0,limit=500)", "WATCH(10)"]);
    }
}

/// B01
#[tokio::test(start_paused = true)]
async fn a_read_may_hold_the_end_of_one_event_a_whole_one_and_the_begin_of_a_third() {
    let lines = ["x@11", "y@12", "z@13"].map(line_with_text);
    let body = lines.concat();
    let (first, second) = (lines[0].len() * 6 / 10, lines[1].len() + lines[2].len() / 2);
    let second = second + lines[0].len() - first;
    // The last table: each newline by itself.
    let alone: Vec<usize> = lines.iter().flat_map(|line| [line.len() - 1, 1]).collect();
    for lengths in [vec![first, second], alone] {
        let (server, pieces) = in_pieces(Server::new("LIST → [] rv=10"), &body, lengths);
        server.then(&format!("WATCH → {pieces} …"));
        let run = Run::<PodRef>::of(&server);
        run.has(&["x@11", "y@12", "z@13"]).await;
        assert_eq!(run.heard.log(), ["+x@11", "+y@12", "+z@13"]);
        assert_eq!(server.asked().len(), 2);
    }
}

/// B01: 100 events over a real socket, heads and chunk sizes cut too, at all widths.
#[tokio::test]
async fn the_width_of_reads_makes_no_difference_over_a_socket() {
    let kinds = ["+", "~", "-"];
    let events = (0..100).map(|n| format!("{}{}#u{}-{}@{}", kinds[n / 10 % 3], n % 10, n % 10, n / 30, 11 + n));
    let events = events.collect::<Vec<_>>().join(" ");
    let mut whole: Option<Vec<String>> = None;
    for width in [0, 1, 7, 1000] {
        let server = Server::new(&format!("LIST → [] rv=10\n WATCH → {events}"));
        let socket = Socket::listen(server).await.writes_of(width);
        let run = over_socket::<PodRef>(&socket, Options { delivery: Delivery::InOrder, ..quick() });
        run.requests(2).await;
        run.converges().await;
        assert_eq!(socket.server().asked(), ["LIST(rv=0,limit=500)", "WATCH(10)"], "width {width}");
        let log = run.heard.log();
        assert_eq!(*whole.get_or_insert_with(|| log.clone()), log, "width {width}");
        run.ends().await;
    }
}

/// B08: as large as an API server can send, in small writes.
#[tokio::test(start_paused = true)]
async fn an_object_of_three_mebibytes_comes_through_in_writes_of_a_kibibyte() {
    let mut object = Thing::parse("x@11").json();
    object["metadata"]["labels"] = json!({"text": "t".repeat(3 << 20)});
    let body = event_line("ADDED", &object);
    let (server, pieces) = in_pieces(Server::new("LIST → [] rv=10"), &body, vec![1024; body.len() / 1024]);
    server.then(&format!("WATCH → {pieces} …"));
    let run = Run::<PodRef>::of(&server);
    run.has(&["x@11"]).await;
    assert_eq!(run.informer.indexer().list().to_vec()[0].label("text").map(str::len), Some(3 << 20));
    assert_eq!(server.asked().len(), 2);
}

/// B08: beyond the limit it is an error that says so, and the same event comes with the next connection.
#[tokio::test(start_paused = true)]
async fn a_line_without_an_end_is_a_named_error_and_what_was_there_before_stays() {
    let megabyte = vec![b'x'; 1 << 20];
    let server = Server::new("LIST → [x@10] rv=10\n WATCH → ~x@11 $mb | $mb | $mb | $mb | $mb | +y@12 …");
    let server = server.bytes("mb", megabyte);
    let run =
        Run::<PodRef>::with(&server, Options { limits: Limits::default().line(2 << 20), ..Options::default() });
    run.has(&["x@11", "y@12"]).await;
    assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::TooLong);
    let error = run.informer.status().last_error().unwrap().error.to_string();
    assert!(error.contains("pods") && error.contains("2097152"), "{error}");
    assert!(error.len() < 1000, "{}", error.len());
    assert_eq!(server.asked(), ["LIST(rv=0,limit=500)", "WATCH(10)", "LIST(rv=11)", "WATCH(12)"]);
    run.converges_and_ends().await;
}

/// B08, B48: whatever is wrong with each and every watch, the server is asked no more than ten times in 5 s.
#[tokio::test(start_paused = true)]
async fn foreign_bytes_for_ever_make_no_hot_loop() {
    for body in ["no json\n", "{\"type\":\"ADDED\"", "\n\n\n", "{}\n", &"x".repeat(3000), "\u{1f}\u{8b}\u{8}\n"] {
        for end in ["■", "CUT", "RST", "…"] {
            let server = Server::new(&format!("LIST ×∞ → [x@10] rv=10\n WATCH ×∞ → $body {end}")).bytes("body", body);
            let limits = Limits::default().line(2000);
            let run = Run::<PodRef>::with(&server, Options { limits, ..Options::default() });
            let requests = within(&run, Duration::from_secs(5)).await;
            assert!(requests <= 10, "{requests} requests with {body:?} {end}: {:?}", server.asked());
            server.recover();
            server.happens("+y@11");
            run.converges_and_ends().await;
        }
    }
}

/// What a line leads to.
enum Then {
    /// The stream goes on.
    GoesOn,
    /// It goes on, and an unknown event was counted.
    Unknown,
    /// The stream ends by an error of this class, and a list from the last good version follows.
    Relist(ErrorClass),
}

fn table() -> Vec<(&'static str, Vec<u8>, Then)> {
    use Then::{GoesOn, Relist, Unknown};
    let decode = || Relist(ErrorClass::Decode);
    let own = |text: &str| text.as_bytes().to_vec();
    let pod = Thing::parse("z@99").json();
    let status =
        |code: u16| format!("{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":{code}}}\n").into_bytes();
    let crlf =
        [&event_line("BOOKMARK", &json!({"metadata": {"resourceVersion": "11"}})), &b"\r\n\r\n"[..]].concat();
    vec![
        ("blank", own("\n"), GoesOn),
        ("spaces", own("   \n\t\n"), GoesOn),
        ("a thousand blanks", own(&"\n".repeat(1000)), GoesOn),
        ("carriage returns", crlf, GoesOn),
        ("text", own("upstream connect error\n"), decode()),
        ("html", own("<html>\n<body>504</body>\n</html>\n"), decode()),
        ("bare status 410", status(410), Relist(ErrorClass::Expired)),
        ("bare status 500", status(500), Relist(ErrorClass::Internal)),
        ("bare object", format!("{pod}\n").into_bytes(), decode()),
        ("unknown type", event_line("PING", &pod), Unknown),
        ("lower case", event_line("added", &pod), Unknown),
        ("empty type", event_line("", &pod), Unknown),
        ("no type", format!("{{\"object\":{pod}}}\n").into_bytes(), decode()),
        ("no object", own("{\"type\":\"ADDED\"}\n"), decode()),
        ("null object", event_line("MODIFIED", &Value::Null), decode()),
        ("text for an object", event_line("DELETED", &json!("z")), decode()),
        ("a list", own("[1,2]\n"), decode()),
        ("a number", own("17\n"), decode()),
        ("null", own("null\n"), decode()),
        ("NUL", own("\0\n"), decode()),
        ("byte-order mark", own("\u{feff}\n"), decode()),
        ("broken UTF-8", vec![0xff, 0xfe, b'\n'], decode()),
        (
            "two events in a line",
            [event_line("ADDED", &pod).trim_ascii(), &event_line("ADDED", &pod)].concat(),
            decode(),
        ),
        ("a bookmark of nothing", event_line("BOOKMARK", &Value::Null), Unknown),
        (
            "a bookmark of another kind",
            event_line("BOOKMARK", &json!({"kind": "Node", "metadata": {"resourceVersion": "99"}})),
            Unknown,
        ),
        ("a bookmark without a version", event_line("BOOKMARK", &json!({"kind": "Pod", "metadata": {}})), Unknown),
        (
            "a bookmark with a number",
            event_line("BOOKMARK", &json!({"metadata": {"resourceVersion": 99}})),
            Unknown,
        ),
    ]
}

/// B48
#[tokio::test(start_paused = true)]
async fn lines_that_are_no_events_are_passed_by_or_end_the_stream_and_lose_nothing() {
    for (name, line, then) in table() {
        let server = Server::new("LIST → [] rv=10\n WATCH → +x@11 $line +y@12 …").bytes("line", line);
        let run = Run::<PodRef>::of(&server);
        run.converges_after(&["x@11", "y@12"]).await;
        let status = run.informer.status();
        let (unknown, asked): (u64, &[&str]) = match &then {
            Then::GoesOn => (0, &["LIST(rv=0,limit=500)", "WATCH(10)"]),
            Then::Unknown => (1, &["LIST(rv=0,limit=500)", "WATCH(10)"]),
            Then::Relist(class) => {
                assert_eq!(status.last_error().expect(name).error.class(), *class, "{name}");
                (0, &["LIST(rv=0,limit=500)", "WATCH(10)", "LIST(rv=11)", "WATCH(12)"])
            }
        };
        assert_eq!(server.asked(), asked, "{name}");
        assert_eq!(status.reflector.unknown_events, unknown, "{name}");
        assert_eq!(run.errors().len(), usize::try_from(unknown).unwrap(), "{name}: {:?}", run.errors());
        run.ends().await;
    }
}

/// B48: the body counts, not what the header says of it.
#[tokio::test(start_paused = true)]
async fn another_content_type_makes_no_difference() {
    let run = Run::<PodRef>::script(
        "LIST → header:content-type=text/html [x@10] rv=10\n WATCH → header:content-type=text/plain +y@11",
    );
    run.converges_after(&["x@10", "y@11"]).await;
    assert_eq!(run.server.asked().len(), 2);
}

/// B01: a server that compresses, one member an event, though it was asked not to.
#[tokio::test]
async fn a_compressed_watch_is_refused_in_words_and_tried_again() {
    // A member with "hello\n"; its content does not matter, as it is not unpacked.
    let member = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\xe7\x02\0 0:6\x06\0\0\0";
    let server = Server::new(
        "LIST → [x@10] rv=10
         WATCH ×2 → header:content-encoding=gzip $member | $member | $member ■
         WATCH → $member | $member ■",
    );
    let socket = Socket::listen(server.bytes("member", *member)).await;
    let run = over_socket::<PodRef>(&socket, quick());
    run.requests(7).await;
    socket.server().happens("+y@11");
    run.converges().await;
    assert!(socket.server().log().iter().all(|asked| asked.header("accept-encoding") == Some("identity")));
    let errors = run.errors();
    assert!(errors.len() == 2 && errors[0].contains("compressed (gzip)"), "{errors:?}");
    run.ends().await;
}

fn packed(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// B01: the same where it was asked for, cut in pieces of any width. A member that breaks off costs another watch, and
/// no list.
#[tokio::test]
async fn a_compressed_list_and_watch_are_read_where_gzip_was_asked_for() {
    let event = |kind, text| packed(event_line(kind, &Thing::parse(text).json()));
    let list = r#"{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"x","namespace":"ns1","uid":"u-x","resourceVersion":"10"}}]}"#;
    let (first, second) = (event("ADDED", "y@11"), event("MODIFIED", "x@12"));
    for width in [0, 1, 7] {
        let server = Server::new(
            "LIST → header:content-encoding=gzip $list
             WATCH → header:content-encoding=gzip $first $half ■
             WATCH → header:content-encoding=gzip $second ■
             WATCH → +z@13 …",
        );
        let server = server.bytes("list", packed(list)).bytes("first", first.clone());
        let server = server.bytes("half", &second[..second.len() / 2]).bytes("second", second.clone());
        let socket = Socket::listen(server).await.writes_of(width);
        let config = Config::new(format!("http://{}", socket.address()).parse().unwrap());
        let client = ClientOptions::new().gzip(true).build(config).unwrap();
        let run = Run::start_list_watch(socket.server(), PodRef::pods(client), quick(), usize::MAX);
        run.has(&["x@12", "y@11", "z@13"]).await;
        let server = socket.server();
        assert_eq!(server.asked(), ["LIST(rv=0,limit=500)", "WATCH(10)", "WATCH(11)", "WATCH(12)"]);
        assert!(server.log().iter().all(|asked| asked.header("accept-encoding") == Some("gzip")));
        assert_eq!(run.heard.replayed(), run.store());
        run.ends().await;
    }
}
