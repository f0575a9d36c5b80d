use std::time::Duration;

use super::{Play, listing, streaming};
use crate::reflector::rules::Rules;

#[test]
fn the_first_list_asks_for_version_zero_in_pages_and_later_ones_for_the_last_version_at_once() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 10              -> replace 10
         taken                -> watch 10
         open                 -> read
         +12                  -> moved
         err 410/Expired      -> sleep
         wait 61s             -> list 12
         page 15              -> replace 15",
    );
}

#[test]
fn a_page_size_holds_for_every_list() {
    Play::new(Rules { page_size: Some(4), ..listing() }).lines(
        "start                -> list 0 limit 4
         page 10 C1           -> list =C1 limit 4
         page 10 C2           -> list =C2 limit 4
         page 10              -> replace 10
         taken                -> watch 10
         open! 500            -> sleep
         wait 61s             -> list 10 or later limit 4
         page 12              -> replace 12",
    );
}

#[test]
fn a_version_that_lists_answer_and_watches_refuse_is_given_up() {
    // A server whose watch cache is younger than what etcd still has, asked in pages: an exact list, then 410, for ever.
    for expired in ["err 410/Expired", "open! 410/Expired", "err 410/Gone"] {
        Play::new(listing()).lines(&format!(
            "start                -> list 0 limit 500
             page 10 t            -> list =t limit 500
             page 11              -> replace 10
             taken                -> watch 10
             open                 -> read
             +12                  -> moved
             err 410/Expired      -> sleep
             wait 61s             -> list 12 limit 500
             page 12              -> replace 12
             taken                -> watch 12
             {open}
             {expired}            -> sleep
             wait 61s             -> list any limit 500
             page 15              -> replace 15
             taken                -> watch 15
             open                 -> read
             err 410/Expired      -> sleep
             wait 61s             -> list 15 limit 500",
            open = if expired.starts_with("err") { "open -> read" } else { "" },
        ));
    }
}

#[test]
fn a_first_list_that_came_in_pages_makes_later_ones_ask_for_pages_too() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 10 t            -> list =t limit 500
         page 11              -> replace 10
         taken                -> watch 10
         open! 500            -> sleep
         wait 61s             -> list 10 limit 500",
    );
}

#[test]
fn pages_of_a_later_list_change_nothing() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 10              -> replace 10
         taken                -> watch 10
         open! 500            -> sleep
         wait 61s             -> list 10
         list! 410/Expired    -> list any
         list! 500            -> sleep
         wait 61s             -> list any limit 500
         page 20 t            -> list =t limit 500
         page 20              -> replace 20
         taken                -> watch 20
         open! 500            -> sleep
         wait 61s             -> list 20",
    );
}

#[test]
fn a_refused_version_is_asked_for_without_one_at_once_and_until_a_list_succeeds() {
    for refusal in ["410/Expired", "410/Gone", "410", "504/Timeout/ResourceVersionTooLarge"] {
        Play::new(listing()).lines(&format!(
            "start               -> list 0 limit 500
             page 10             -> replace 10
             taken               -> watch 10
             open! 500           -> sleep
             wait 61s            -> list 10
             list! {refusal}     -> list any
             list! {refusal}     -> sleep
             wait 61s            -> list any limit 500
             list! 503           -> sleep
             wait 61s            -> list any limit 500
             page 20             -> replace 20
             taken               -> watch 20
             open! 500           -> sleep
             wait 61s            -> list 20",
        ));
    }
}

#[test]
fn the_three_formats_of_too_large_a_version_are_one_class() {
    let mut status = kubewire_listwatch::Status::default();
    status.code = 504;
    status.message = "Too large resource version: 30, current: 20".to_owned();
    let old_server = kubewire_listwatch::RequestError::from_status(status);
    for refusal in [
        super::error("504/Timeout/ResourceVersionTooLarge"),
        super::error("504/Timeout/Too large resource version"),
        old_server,
    ] {
        let mut play = Play::new(listing());
        play.lines("start -> list 0 limit 500");
        let step = play.machine.listed(play.now, Err(&refusal));
        assert_eq!(super::print(&step), "list any limit 500");
    }
}

#[test]
fn an_expired_continuation_leads_to_the_full_list_at_the_first_version() {
    Play::new(Rules { page_size: Some(2), ..listing() }).lines(
        "start                -> list 0 limit 2
         page 10              -> replace 10
         taken                -> watch 10
         open! 500            -> sleep
         wait 61s             -> list 10 or later limit 2
         page 11 t            -> list =t limit 2
         list! 410/Expired    -> list 10 or later
         list! 410/Expired    -> list any limit 2",
    );
}

#[test]
fn a_continuation_that_is_gone_leads_to_a_list_without_a_version() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 10 t            -> list =t limit 500
         list! 410/Gone       -> list any limit 500
         page 12              -> replace 12",
    );
}

#[test]
fn any_other_failure_lists_again_after_a_delay_and_tells_the_handler_once() {
    for (failure, class) in [
        ("500/InternalError", "internal"),
        ("503/ServiceUnavailable", "unavailable"),
        ("403/Forbidden", "forbidden"),
        ("404/NotFound", "not_found"),
        ("429/TooManyRequests", "throttled"),
        ("refused", "connection_refused"),
        ("reset", "transport"),
        ("truncated", "truncated"),
        ("garbage", "decode"),
    ] {
        let mut play = Play::new(listing());
        play.lines(&format!(
            "start               -> list 0 limit 500
             list! {failure}     -> sleep
             wait 700ms          ->
             wait 61s            -> list 0 limit 500"
        ));
        assert_eq!(play.failures(), [format!("{class}!")]);
    }
}

#[test]
fn delays_grow_and_a_server_that_is_away_is_asked_no_more_than_ten_times_in_five_seconds() {
    for failure in ["500", "502", "503", "504", "403", "refused", "reset", "429", "garbage"] {
        let mut play = Play::new(listing());
        play.lines("start -> list 0 limit 500");
        let (start, mut requests, mut delays) = (play.now, 1, Vec::new());
        for _ in 0..12 {
            play.lines(&format!("list! {failure} -> sleep"));
            let before = play.now;
            play.lines("ring -> list 0 limit 500");
            delays.push(play.now - before);
            requests += u32::from(play.now - start < Duration::from_secs(5));
        }
        assert!(requests <= 10, "{requests} requests");
        assert!(delays[0] >= Duration::from_millis(800) && delays[0] < Duration::from_millis(1600));
        assert!(delays[11] >= Duration::from_secs(30) && delays[11] < Duration::from_secs(60));
    }
}

#[test]
fn a_wish_to_be_left_alone_is_honoured_within_a_minute() {
    for (failure, seconds) in [("429;after=20", 20), ("503;after=20", 20), ("429;after=86400", 60)] {
        let mut play = Play::new(listing());
        play.lines(&format!("start -> list 0 limit 500\n list! {failure} -> sleep"));
        let slept = play.machine.alarm().expect("the end of the sleep") - play.now;
        assert_eq!(slept, Duration::from_secs(seconds), "{failure}");
    }
    let mut play = Play::new(listing());
    play.lines("start -> list 0 limit 500\n list! 429;after=0 -> sleep");
    assert!(play.machine.alarm().expect("the end of the sleep") - play.now >= Duration::from_millis(800));
}

#[test]
fn a_list_without_a_version_is_an_error_and_not_a_watch_from_nowhere() {
    let mut play = Play::new(listing());
    play.lines(
        "start                -> list 0 limit 500
         page                 -> sleep
         wait 61s             -> list 0 limit 500
         page 10              -> replace 10",
    );
    assert_eq!(play.failures(), ["decode!"]);
}

#[test]
fn a_repeated_token_is_an_error_after_two_requests() {
    let mut play = Play::new(listing());
    play.lines(
        "start                -> list 0 limit 500
         page 10 t1           -> list =t1 limit 500
         page 10 t1           -> sleep",
    );
    assert_eq!(play.failures(), ["decode!"]);
}

const OLDER: &str = "start                -> list 0 limit 500
         page 16              -> replace 16
         taken                -> watch 16
         open! 410/Expired    -> sleep
         wait 61s             -> list 16";

#[test]
fn an_answer_older_than_asked_is_refused_and_asked_for_again() {
    let mut play = Play::new(listing());
    play.lines(OLDER);
    play.failures();
    play.lines(
        "page 12              -> sleep
         wait 61s             -> list 16
         page 9               -> sleep
         wait 61s             -> list 16
         page 18446744073709551616 -> replace 18446744073709551616",
    );
    assert_eq!(play.failures(), ["unavailable!", "unavailable!"]);
}

#[test]
fn a_server_that_stays_behind_is_believed_when_asked_for_its_most_recent_state() {
    let mut play = Play::new(listing());
    play.lines(OLDER);
    play.lines(
        "page 12              -> sleep
         wait 61s             -> list 16
         page 12              -> sleep
         wait 61s             -> list 16
         page 12              -> sleep
         wait 61s             -> list any limit 500
         page 12              -> replace 12
         taken                -> watch 12",
    );
}

/// What a lagging server said in between does not make an older list acceptable; what was restored still is.
#[test]
fn an_event_or_a_bookmark_that_goes_back_does_not_lower_what_a_list_must_reach() {
    // events, where the watch goes on, what lists are asked for
    for (events, last, floor) in
        [("+20 b12", "12", "20"), ("~20 ~13", "13", "20"), ("-20 b9", "9", "20"), ("b20 bopaque", "opaque", "20")]
    {
        let mut play = Play::new(listing());
        play.lines("start -> list 0 limit 500\npage 16 -> replace 16\ntaken -> watch 16\nopen -> read");
        for event in events.split(' ') {
            play.input(event);
        }
        play.lines(&format!(
            "version              -> \"{last}\"
             err truncated        -> watch {last}
             open! 410            -> sleep
             wait 61s             -> list {floor}
             page 18              -> sleep
             wait 61s             -> list {floor}
             page 21              -> replace 21
             taken                -> watch 21
             open! 410            -> sleep
             wait 61s             -> list 21"
        ));
        assert!(play.failures().contains(&"unavailable!".to_owned()), "18 is refused");
    }
}

#[test]
fn after_a_trusted_list_that_went_back_the_versions_of_before_mean_nothing() {
    let mut play = Play::new(listing());
    play.lines(OLDER);
    play.lines(
        "list! 504/Timeout/ResourceVersionTooLarge -> list any
         page 7               -> replace 7
         taken                -> watch 7
         open                 -> read
         +8                   -> moved
         err 410              -> sleep
         wait 61s             -> list 8
         page 8               -> replace 8",
    );
}

#[test]
fn a_version_that_the_server_does_not_understand_is_dropped_after_three_lists() {
    let mut play = Play::new(listing());
    play.lines(
        "start                -> list 0 limit 500
         page 16              -> replace 16
         taken                -> watch 16
         open                 -> read
         b99999999999999999999 -> moved
         err truncated        -> watch 99999999999999999999
         open! 400/BadRequest -> sleep
         wait 61s             -> list 99999999999999999999
         list! 400/BadRequest -> sleep
         wait 61s             -> list 99999999999999999999
         list! 400/BadRequest -> sleep
         wait 61s             -> list 99999999999999999999
         list! 400/BadRequest -> sleep
         wait 61s             -> list any limit 500
         page 17              -> replace 17
         taken                -> watch 17",
    );
}

#[test]
fn older_answers_are_taken_where_that_is_asked_for_or_where_versions_are_no_numbers() {
    let mut play = Play::new(Rules { refuse_older_answers: false, ..listing() });
    play.lines(OLDER);
    play.lines("page 12 -> replace 12");
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page b               -> replace b
         taken                -> watch b
         open! 410/Expired    -> sleep
         wait 61s             -> list b
         page a               -> replace a",
    );
}

#[test]
fn the_version_moves_only_when_the_store_has_the_list() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 10              -> replace 10
         version              -> \"\"
         taken                -> watch 10
         version              -> \"10\"",
    );
}

#[test]
fn resync_checks_run_from_the_list_to_the_end_of_the_cycle() {
    Play::new(Rules { resync_period: Duration::from_secs(10), ..listing() }).lines(
        "start                -> list 0 limit 500
         wait 60s             ->
         page 10              -> replace 10
         taken                -> watch 10
         wait 9s              ->
         open                 -> read
         wait 1s              -> resync
         +11                  -> moved
         close                -> watch 11
         wait 21s             -> resync resync
         open! 429            -> sleep
         wait 700ms           ->
         wait 61s             -> watch 11 resync resync resync resync resync resync
         open                 -> read
         err 410/Expired      -> sleep
         wait 61s             -> list 11
         wait 61s             ->",
    );
}

#[test]
fn a_streaming_list_counts_resync_checks_from_its_end_mark() {
    Play::new(Rules { resync_period: Duration::from_secs(10), ..streaming() }).lines(
        "start                -> stream
         open                 -> read
         wait 15s             ->
         b5!                  -> replace 5
         taken                -> read
         wait 9s              ->
         wait 1s              -> resync",
    );
}
