//! Everything that can go wrong with one request or one stream.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewire_apiserver::{Fault, Status};

use crate::dice::Dice;
use crate::tally::Tally;

/// A line of a watch longer than the clients of a run take.
pub(crate) const LINE_LEN_MAX: usize = 32 * 1024;

/// The state of the object that is in some pages and not on the server, as witnesses write it: see "undecodable item".
pub(crate) const GHOST_STATE: &str = "g@1";

/// One of all kinds. Where `silence` is not noticed, what falls silent is rare: it costs the rest of the watch's time.
pub(crate) fn any(dice: &mut Dice, silence: bool) -> Fault {
    let fault = match dice.below(13) {
        0..=2 => answer(dice),
        3 => at_the_wire(dice),
        4..=5 => page(dice),
        6..=7 => error_event(dice),
        8..=9 => line(dice),
        _ => stream(dice, silence),
    };
    if dice.chance(0.2) { fault.times(1 + dice.below(4) as usize) } else { fault }
}

/// In place of the right answer.
fn answer(dice: &mut Dice) -> Fault {
    let seconds = dice.below(5) as u32;
    let fault = match dice.below(18) {
        0 => Fault::gone(),
        1 => Fault::too_many_requests(seconds),
        2 => Fault::answer(Status::too_many_requests(seconds).retry_after_as_date()).named("answer 429, a date"),
        3 => Fault::internal_error(),
        4 => Fault::unavailable(),
        5 => Fault::timeout(),
        6 => Fault::answer(Status::unauthorized()),
        7 => Fault::answer(Status::new(403, "Forbidden", "not today")),
        8 => Fault::answer(Status::new(404, "NotFound", "the server could not find the requested resource")),
        9 => Fault::answer(Status::new(409, "Conflict", "come again")),
        10 => Fault::answer(Status::version_too_large(1 << 50, 1)).named("answer 504, version too large"),
        11 => Fault::answer(Status::bad_request("no")),
        12 => Fault::raw(200, "text/html", "<html><body>Sign in, please</body></html>").named("foreign answer 200"),
        13 => Fault::raw(502, "text/plain", "bad gateway").named("foreign answer 502"),
        14 => Fault::raw(200, "application/json", "").named("empty answer"),
        15 => Fault::raw(200, "application/json", "{\"kind\":\"Status\",\"apiVersion\":\"v1\"")
            .named("answer of half a status"),
        16 => Fault::raw(200, "application/json", "null\n").named("answer null"),
        _ => Fault::raw(500, "application/json", "[]").named("answer 500 without a status"),
    };
    match dice.below(3) {
        0 => fault.on_list(),
        1 => fault.on_watch(),
        _ => fault,
    }
}

fn at_the_wire(dice: &mut Dice) -> Fault {
    match dice.below(5) {
        0 => Fault::refuse(),
        1 => Fault::reset(),
        2 => Fault::stall(),
        _ => Fault::delay(dice.seconds(90)),
    }
}

fn page(dice: &mut Dice) -> Fault {
    let skipped = dice.below(3) as usize;
    match dice.below(7) {
        0 => Fault::more_items([r#"{"metadata":null}"#, "{}", "null"]),
        1 => Fault::more_items([r#"{"metadata":{"namespace":"ns-1","name":"ghost","uid":"g","resourceVersion":"1","labels":{"tier":"front"}},"data":7,"spec":7}"#]).named("undecodable item"),
        2 => Fault::repeat_items(),
        3 => Fault::reverse_items(),
        4 => Fault::empty_token(),
        5 => Fault::same_token().after(skipped),
        _ => Fault::expired_token(dice.one_of(&[None, Some("bmV3")])).after(skipped),
    }
}

fn error_event(dice: &mut Dice) -> Fault {
    let events = dice.below(5) as usize;
    let (status, name) = match dice.below(12) {
        0 => (Status::version_too_old(1, 2), "410 in the stream"),
        1 => (Status::new(410, "Gone", "gone"), "410 Gone in the stream"),
        2 => (Status::too_many_requests(3), "429 in the stream"),
        3 => (Status::internal("injected"), "500 in the stream"),
        4 => (Status::unavailable(), "503 in the stream"),
        5 => (Status::timeout(), "504 in the stream"),
        6 => (Status::version_too_large(1 << 50, 1), "504 in the stream, version too large"),
        7 => (Status::unauthorized(), "401 in the stream"),
        8 => (Status::new(403, "Forbidden", "not today"), "403 in the stream"),
        9 => (Status::new(404, "NotFound", "not here"), "404 in the stream"),
        10 => (Status::new(409, "Conflict", "come again"), "409 in the stream"),
        _ => (Status::new(0, "", ""), "error without a code in the stream"),
    };
    Fault::error_event(events, status).named(name)
}

/// A line of a watch that is none, or says nothing that could be believed.
fn line(dice: &mut Dice) -> Fault {
    let events = dice.below(5) as usize;
    let (line, name) = match dice.below(16) {
        0 => (String::new(), "blank line"),
        1 => ("Sign in, please".to_owned(), "line of foreign text"),
        2 => (r#"{"type":"PATCHED","object":{}}"#.to_owned(), "event of an unknown type"),
        3 => (r#"{"type":"ADDED","object":{"metadata":null}}"#.to_owned(), "event with null metadata"),
        4 => (r#"{"type":"MODIFIED","object":null}"#.to_owned(), "event with a null object"),
        5 => (r#"{"type":"DELETED","object":{"metadata":{"name":7}}}"#.to_owned(), "event with a name that is none"),
        6 => (r#"{"type":"ERROR","object":null}"#.to_owned(), "error with a null object"),
        7 => (r#"{"type":"ERROR","object":{"kind":"Pod"}}"#.to_owned(), "error of another kind"),
        8 => (r#"{"type":"BOOKMARK","object":null}"#.to_owned(), "bookmark with a null object"),
        9 => (r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#.to_owned(), "bookmark without a version"),
        10 => (r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#.to_owned(), "bookmark with an empty version"),
        11 => (
            r#"{"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"999999999"}}}"#
                .to_owned(),
            "bookmark of another kind",
        ),
        12 => (r#"{"type":"ADDED","object":{"metadata":{"na"#.to_owned(), "half a line"),
        13 => (format!(r#"{{"type":"ADDED","object":"{}"}}"#, "x".repeat(LINE_LEN_MAX)), "very long line"),
        14 => (" \t\r".to_owned(), "line of spaces"),
        _ => ("[]".to_owned(), "line of another JSON"),
    };
    Fault::line(events, line).named(name)
}

fn stream(dice: &mut Dice, silence: bool) -> Fault {
    let (events, bytes) = (dice.below(6) as usize, dice.below(6_000));
    let silent = silence || dice.chance(0.2);
    match dice.below(16) {
        0 => Fault::end_watch(events),
        1 => Fault::reset_watch(events),
        2 => Fault::end_watch_mid_event(events),
        3 => Fault::reset_watch_mid_event(events),
        4 if silent => Fault::stall_watch(events),
        5 if silent => Fault::stall_watch_mid_event(events),
        6 | 15 if silent => Fault::stall_body(bytes),
        5 | 7 => Fault::truncate(bytes),
        4 | 8 => Fault::reset_body(bytes),
        9 => Fault::truncate(0).on_watch().times(2 + dice.below(10) as usize).named("watch closed at once"),
        10 => Fault::drop_bookmarks().times(4),
        11 => Fault::hold_initial_events_end().times(3),
        12 => Fault::repeat_events(),
        13 => Fault::swap_events(),
        14 => Fault::drip(1 + dice.below(3_000) as usize, dice.up_to(Duration::from_secs(3))),
        _ => Fault::drip(1 + dice.below(50) as usize, Duration::ZERO).named("split at any byte"),
    }
}

/// Whether a list may have come that proves nothing of what it lacks: one with an object without a name (such a line in a
/// streaming list is one too), or with an object that is not there. What is gone may stay in a store until the next list.
pub(crate) fn may_keep_what_is_gone(hit: &BTreeMap<&'static str, u64>) -> bool {
    let has = |name: &str| hit.contains_key(name);
    let is_nameless_line = has("event with null metadata") || has("event with a null object");
    has("foreign items") || has("undecodable item") || (is_nameless_line && has("line in a streaming list"))
}

/// What is to occur in the usual seeds of each kind of delivery.
const KINDS: [&str; 78] = [
    "401 in the stream",
    "403 in the stream",
    "404 in the stream",
    "409 in the stream",
    "410 Gone in the stream",
    "410 in the stream",
    "429 in the stream",
    "500 in the stream",
    "503 in the stream",
    "504 in the stream",
    "504 in the stream, version too large",
    "all watches closed",
    "all watches reset",
    "answer 400",
    "answer 401",
    "answer 403",
    "answer 404",
    "answer 409",
    "answer 410",
    "answer 429",
    "answer 429, a date",
    "answer 500",
    "answer 500 without a status",
    "answer 503",
    "answer 504",
    "answer 504, version too large",
    "answer null",
    "answer of half a status",
    "blank line",
    "body reset",
    "body stalled",
    "body truncated",
    "bookmark dropped",
    "bookmark of another kind",
    "bookmark with a null object",
    "bookmark with an empty version",
    "bookmark without a version",
    "continue token expired",
    "continue token expired, new one",
    "continue token repeated",
    "empty answer",
    "empty continue token",
    "end mark held back",
    "error of another kind",
    "error with a null object",
    "error without a code in the stream",
    "event of an unknown type",
    "event repeated",
    "event with a name that is none",
    "event with a null object",
    "event with null metadata",
    "events swapped",
    "foreign answer 200",
    "foreign answer 502",
    "foreign items",
    "half a line",
    "items repeated",
    "items reversed",
    "late answer",
    "line of another JSON",
    "line of foreign text",
    "line of spaces",
    "no answer",
    "not allowed",
    "refused",
    "refused: the server is down",
    "reset",
    "reset: etcd was restored",
    "slow drip",
    "split at any byte",
    "token unknown",
    "undecodable item",
    "version compacted",
    "very long line",
    "watch closed at once",
    "watch ended",
    "watch reset",
    "watch stalled",
];

/// # Panics
///
/// Where a kind of fault has met nothing.
pub(crate) fn all_occur_in(tally: &Tally) {
    let missing: Vec<_> = KINDS.iter().filter(|kind| !tally.faults.contains_key(*kind)).collect();
    assert!(missing.is_empty(), "these faults have met nothing: {missing:?}");
}
