use std::time::Duration;

use super::{Play, streaming};
use crate::reflector::rules::Rules;

#[test]
fn the_list_is_complete_at_the_mark_and_the_same_stream_goes_on() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         +1                   -> gather
         ~2                   -> gather
         -3                   -> gather
         b4                   -> gather
         version              -> \"\"
         b5!                  -> replace 5
         version              -> \"\"
         taken                -> read
         version              -> \"5\"
         +6                   -> moved
         b7!                  -> moved
         close                -> watch 7",
    );
}

#[test]
fn later_streaming_lists_ask_for_the_last_version() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         b5!                  -> replace 5
         taken                -> read
         +6                   -> moved
         err 410/Expired      -> sleep
         wait 61s             -> stream 6
         open! 410/Expired    -> stream
         open                 -> read
         b9!                  -> replace 9
         taken                -> read
         err 500              -> sleep
         wait 61s             -> stream 9
         open! 504/Timeout/ResourceVersionTooLarge -> stream
         open! 403            -> list any limit 500",
    );
}

#[test]
fn a_refused_streaming_list_falls_back_to_a_list_and_the_next_cycle_tries_again() {
    for refusal in ["422/Invalid", "400", "403", "500", "503", "reset", "garbage"] {
        let mut play = Play::new(streaming());
        play.lines(&format!(
            "start               -> stream
             open! {refusal}     -> list 0 limit 500
             page 4              -> replace 4
             taken               -> watch 4
             open                -> read
             err 410             -> sleep
             wait 61s            -> stream 4"
        ));
        assert!(play.failures().iter().all(|failure| !failure.ends_with('!')), "the list may still succeed");
    }
}

#[test]
fn nobody_there_or_too_busy_asks_for_the_same_stream_after_a_delay() {
    Play::new(streaming()).lines(
        "start                -> stream
         open! 429            -> sleep
         wait 700ms           ->
         wait 61s             -> stream
         open! refused        -> sleep
         wait 61s             -> stream
         open                 -> read
         +1                   -> gather
         err 429              -> sleep
         wait 61s             -> stream
         open                 -> read
         b5!                  -> replace 5",
    );
}

#[test]
fn a_stream_that_ends_before_its_mark_is_asked_for_again_at_once() {
    for end in ["close", "err truncated", "err reset"] {
        Play::new(streaming()).lines(&format!(
            "start               -> stream
             open                -> read
             +1                  -> gather
             {end}               -> stream
             open                -> read
             +1                  -> gather
             wait 2s             ->
             {end}               -> stream
             open                -> read
             b5!                 -> replace 5"
        ));
    }
}

#[test]
fn a_stream_that_ends_at_once_without_an_event_falls_back_to_a_list() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         close                -> list 0 limit 500",
    );
    Play::new(streaming()).lines(
        "start                -> stream
         wait 1s              ->
         open                 -> read
         close                -> stream",
    );
}

#[test]
fn the_time_that_a_server_takes_to_answer_counts_for_no_limit_of_the_stream() {
    Play::new(streaming()).lines(
        "start                -> stream
         wait 300s            ->
         open                 -> read
         +1                   -> gather
         close                -> stream
         wait 300s            ->
         open                 -> read
         wait 59s             ->
         b5!                  -> replace 5",
    );
}

#[test]
fn an_error_before_the_mark_falls_back_to_a_list() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         +1                   -> gather
         err 500/InternalError -> list 0 limit 500",
    );
}

#[test]
fn streams_that_always_end_before_their_mark_are_given_up_and_the_lesson_is_remembered() {
    let mut play = Play::new(streaming());
    play.lines("start -> stream");
    let start = play.now;
    let mut streams = 1;
    let last = loop {
        play.lines("open -> read\n+1 -> gather");
        match play.input("close").as_str() {
            "stream" => streams += 1,
            other => break other.to_owned(),
        }
    };
    assert_eq!((streams, last.as_str(), play.now), (6, "list 0 limit 500", start));
    play.lines(
        "page 4               -> replace 4
         taken                -> watch 4
         open                 -> read
         +5                   -> moved
         err 410              -> sleep
         wait 61s             -> list 5
         page 6               -> replace 6
         taken                -> watch 6
         open                 -> read
         wait 600s            ->
         err 410              -> sleep
         wait 61s             -> stream 6",
    );
}

#[test]
fn streams_that_end_before_their_mark_are_counted_anew_in_each_cycle() {
    let mut play = Play::new(streaming());
    play.lines("start -> stream\nopen -> read\nb5! -> replace 5\ntaken -> read");
    for _ in 0..10 {
        play.lines(
            "err 410             -> sleep
             wait 61s            -> stream 5
             open                -> read
             +6                  -> gather
             close               -> stream 5
             open                -> read
             b5!                 -> replace 5
             taken               -> read",
        );
    }
}

#[test]
fn a_refused_version_is_not_asked_for_without_a_version_for_ever() {
    let mut play = Play::new(streaming());
    play.lines("start -> stream");
    let quick = (0..100).take_while(|_| play.input("open! 410/Expired") == "stream").count();
    assert_eq!(quick, 5);
}

#[test]
fn without_pacing_a_streaming_list_is_asked_for_again_at_once_however_often() {
    let mut play = Play::new(Rules { pace_short_streams: false, ..streaming() });
    play.lines("start -> stream");
    for _ in 0..50 {
        play.lines("open -> read\n+1 -> gather\nclose -> stream");
    }
}

#[test]
fn a_stream_without_its_mark_is_given_up_after_a_minute_without_progress() {
    for silence in ["wait 59s ->", "wait 30s ->\nb20 -> gather\nwait 29s ->"] {
        let mut play = Play::new(streaming());
        play.lines(&format!(
            "start               -> stream
             wait 61s            ->
             open                -> read
             wait 59s            ->
             +1                  -> gather
             {silence}
             wait 1s             -> list 0 limit 500
             page 30             -> replace 30
             taken               -> watch 30
             open                -> read
             err 410             -> sleep
             wait 61s            -> list 30"
        ));
        assert!(play.failures().contains(&"truncated".to_owned()));
    }
}

#[test]
fn a_stream_closed_after_a_long_time_without_its_mark_is_given_up() {
    let mut play = Play::new(streaming());
    play.lines("start -> stream\nopen -> read");
    for _ in 0..10 {
        play.lines("wait 30s ->\n+1 -> gather");
    }
    play.lines("close -> list 0 limit 500");
}

#[test]
fn a_mark_without_a_version_or_older_than_asked_is_not_taken() {
    Play::new(streaming()).lines("start -> stream\nopen -> read\nb! -> list 0 limit 500");
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         b16!                 -> replace 16
         taken                -> read
         err 410              -> sleep
         wait 61s             -> stream 16
         open                 -> read
         b12!                 -> sleep
         wait 61s             -> stream 16
         open                 -> read
         b16!                 -> replace 16",
    );
}

#[test]
fn a_streaming_list_is_asked_for_from_the_newest_version_and_goes_on_as_the_watch_from_its_own() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         b16!                 -> replace 16
         taken                -> read
         +20                  -> moved
         b12                  -> moved
         err 410              -> sleep
         wait 61s             -> stream 20
         open                 -> read
         b18!                 -> sleep
         wait 61s             -> stream 20
         open                 -> read
         b20!                 -> replace 20
         taken                -> read
         close                -> sleep",
    );
}

#[test]
fn a_watch_after_a_streaming_list_that_is_refused_as_expired_ends_the_cycle() {
    let mut play = Play::new(streaming());
    play.lines(
        "start                -> stream
         open                 -> read
         b5!                  -> replace 5
         taken                -> read
         +6                   -> moved
         close                -> watch 6
         open! 410/Expired    -> sleep",
    );
    assert!(play.failures().contains(&"expired!".to_owned()));
}

#[test]
fn a_stream_closed_right_after_its_mark_counts_as_very_short() {
    Play::new(streaming()).lines(
        "start                -> stream
         open                 -> read
         +1                   -> gather
         b5!                  -> replace 5
         taken                -> read
         close                -> sleep
         wait 61s             -> stream 5",
    );
}

#[test]
fn nothing_is_read_for_ever_without_an_alarm_before_the_mark() {
    for before in ["start -> stream\nopen -> read", "start -> stream\nopen -> read\n+1 -> gather"] {
        let mut play = Play::new(streaming());
        play.lines(before);
        let limit = play.machine.alarm().expect("a deadline") - play.now;
        assert_eq!(limit, Duration::from_secs(60));
    }
}
