use std::time::Duration;

use super::{Play, listing};
use crate::reflector::machine::Machine;
use crate::reflector::rules::Rules;
use kubewire_ratelimit::Random;

const OPEN: &str = "start -> list 0 limit 500
                    page 10 -> replace 10
                    taken -> watch 10
                    open -> read";

fn watching() -> Play {
    let mut play = Play::new(listing());
    play.lines(OPEN);
    play
}

#[test]
fn events_move_the_version_as_they_come_bookmarks_included() {
    watching().lines("+20 -> moved\n~15 -> moved\n-32 -> moved\nb40 -> moved\nversion -> \"40\"");
}

#[test]
fn events_that_are_not_known_or_have_no_version_leave_it() {
    watching().lines("? -> passed\n?30 -> passed\n+ -> passed\nb -> passed\nversion -> \"10\"");
}

#[test]
fn a_watch_from_version_zero_moves_only_after_something_else_than_an_add() {
    Play::new(listing()).lines(
        "start                -> list 0 limit 500
         page 0               -> replace 0
         taken                -> watch 0
         open                 -> read
         +37                  -> passed
         close                -> watch 0
         open                 -> read
         +37                  -> passed
         ~38                  -> moved
         +39                  -> moved",
    );
}

#[test]
fn a_watch_that_ends_is_opened_again_at_once_from_the_last_version() {
    for end in ["close", "err truncated", "err reset"] {
        let mut play = watching();
        play.failures();
        play.lines(&format!("+11 -> moved\nb12 -> moved\nwait 2s ->\n{end} -> watch 12"));
        assert!(play.failures().iter().all(|failure| !failure.ends_with('!')));
    }
}

#[test]
fn a_watch_without_an_event_within_a_second_counts_as_failed() {
    let mut play = watching();
    play.lines("wait 999ms ->\nclose -> sleep\nwait 700ms ->\nwait 61s -> list 10");
    assert_eq!(play.failures(), ["truncated"], "the handler is not told");
}

#[test]
fn a_watch_without_an_event_that_lived_for_a_second_counts_from_its_request() {
    watching().lines("wait 1s ->\nclose -> watch 10");
    let mut play = Play::new(listing());
    play.lines(
        "start                -> list 0 limit 500
         page 10              -> replace 10
         taken                -> watch 10
         wait 1s              ->
         open                 -> read
         close                -> watch 10",
    );
}

#[test]
fn nobody_there_or_too_busy_asks_for_the_same_watch_again_after_a_delay() {
    for refusal in ["refused", "429/TooManyRequests"] {
        let mut play = watching();
        play.lines(&format!(
            "b12                 -> moved
             close               -> watch 12
             open! {refusal}     -> sleep
             wait 700ms          ->
             wait 61s            -> watch 12
             open! {refusal}     -> sleep
             wait 61s            -> watch 12
             open                -> read"
        ));
        assert_eq!(play.failures().len(), 2, "told of each");
    }
}

#[test]
fn a_connection_that_dies_before_the_answer_costs_no_list_unless_each_does() {
    for death in ["reset", "truncated", "slow"] {
        let mut play = watching();
        play.lines(&format!(
            "b12                 -> moved
             close               -> watch 12
             open! {death}       -> sleep
             wait 700ms          ->
             wait 61s            -> watch 12
             open! {death}       -> sleep
             wait 61s            -> watch 12
             open                -> read
             b13                 -> moved
             close               -> watch 13"
        ));
        for _ in 0..3 {
            play.lines(&format!("open! {death} -> sleep\nwait 61s -> watch 13"));
        }
        play.lines(&format!("open! {death} -> sleep\nwait 61s -> list 13"));
    }
}

#[test]
fn any_other_refusal_of_a_watch_leads_to_a_list_after_a_delay() {
    for refusal in ["410/Expired", "403", "500", "503", "504/Timeout/ResourceVersionTooLarge", "garbage"] {
        watching().lines(&format!(
            "b12                 -> moved
             close               -> watch 12
             open! {refusal}     -> sleep
             wait 700ms          ->
             wait 61s            -> list 12"
        ));
    }
}

#[test]
fn a_refused_watch_waits_as_long_as_the_server_asks_within_a_minute() {
    for (refusal, seconds) in [("429;after=2", 2), ("429;after=100000", 60)] {
        let mut play = watching();
        play.lines(&format!("b12 -> moved\nclose -> watch 12\nopen! {refusal} -> sleep"));
        assert_eq!(play.machine.alarm().map(|due| due - play.now), Some(Duration::from_secs(seconds)));
        play.lines("ring -> watch 12");
    }
}

#[test]
fn an_error_in_the_stream_leads_to_a_list_and_the_handler_is_not_told() {
    for error in ["410/Expired", "410/Gone", "410", "500/InternalError", "503", "403", "0", "garbage"] {
        let mut play = watching();
        play.failures();
        play.lines(&format!("~12 -> moved\nerr {error} -> sleep\nwait 700ms ->\nwait 61s -> list 12"));
        assert!(play.failures().iter().all(|failure| !failure.ends_with('!')), "{error}");
    }
}

#[test]
fn too_many_requests_in_the_stream_leads_to_the_next_watch_after_a_delay() {
    let mut play = watching();
    play.lines("~12 -> moved\nerr 429 -> sleep\nwait 700ms ->\nwait 61s -> watch 12");
    play.lines("open -> read\n err 429;after=5 -> sleep");
    assert!(play.machine.alarm().expect("a sleep") - play.now >= Duration::from_secs(5));
}

#[test]
fn internal_errors_are_retried_for_as_long_as_allowed() {
    for (seconds, gap, retries) in [(0, 1, 0), (30, 1, 31), (30, 61, 1000)] {
        let rules = Rules { max_internal_error_retry: Duration::from_secs(seconds), ..listing() };
        let mut play = Play::new(rules);
        play.lines(OPEN);
        let mut retried = 0;
        while retried < 1000 {
            play.input(&format!("wait {gap}s"));
            match play.input("err 500/InternalError").as_str() {
                "watch 10" => play.lines("open -> read"),
                _ => break,
            }
            retried += 1;
        }
        assert_eq!(retried, retries, "{seconds} s, one each {gap} s");
    }
}

#[test]
fn internal_errors_that_are_retried_make_no_hot_loop() {
    let mut play = Play::new(Rules { max_internal_error_retry: Duration::from_secs(30), ..listing() });
    play.lines(OPEN);
    let quick =
        (0..100).take_while(|_| play.input("err 500/InternalError") == "watch 10" && play.input("open") == "read");
    assert!(quick.count() <= 10);
}

/// How many requests a server sees in a stretch of time from the first list on, if each of its watches ends at
/// once after these events.
fn requests_within(stretch: Duration, events: &[&str]) -> u32 {
    let mut play = Play::new(listing());
    let start = play.now;
    let mut step = play.input("start");
    let mut requests = 0;
    while play.now - start < stretch {
        requests += u32::from(step.starts_with("list") || step.starts_with("watch"));
        step = match step.split(' ').next() {
            Some("list") => play.input("page 10"),
            Some("replace") => play.input("taken"),
            Some("watch") => play.input("open"),
            Some("read") => {
                for event in events {
                    play.input(event);
                }
                play.input("close")
            }
            _ => play.input("ring"),
        };
    }
    requests
}

#[test]
fn watches_that_end_at_once_are_paced() {
    assert!(requests_within(Duration::from_secs(5), &[]) <= 10, "without an event");
    assert!(requests_within(Duration::from_secs(5), &["?"]) <= 10, "with an unknown event");
    assert!(requests_within(Duration::from_secs(5), &["b11"]) <= 10, "with a bookmark");
    assert!(requests_within(Duration::from_secs(1), &["+11"]) <= 21, "with an event: 20 watches a second");
    assert!(requests_within(Duration::from_secs(10), &["+11"]) <= 120);
    assert!(requests_within(Duration::from_secs(10), &["+11"]) >= 90, "and no slower than that");
}

#[test]
fn without_pacing_a_watch_that_brought_something_is_followed_at_once_however_often() {
    let mut play = Play::new(Rules { pace_short_streams: false, ..listing() });
    play.lines(OPEN);
    for version in 11..61 {
        play.lines(&format!("b{version} -> moved\nclose -> watch {version}\nopen -> read"));
    }
}

#[test]
fn a_server_that_refuses_each_watch_is_asked_no_more_than_ten_times_in_five_seconds() {
    for refusal in ["refused", "429", "410/Expired", "500", "403"] {
        let mut play = watching();
        play.lines("wait 1s ->\nclose -> watch 10");
        let start = play.now;
        let mut requests = 1;
        let mut step = play.input(&format!("open! {refusal}"));
        while play.now - start < Duration::from_secs(5) {
            requests += u32::from(step.starts_with("list") || step.starts_with("watch"));
            step = match step.split(' ').next() {
                Some("list") => play.input("page 10"),
                Some("replace") => play.input("taken"),
                Some("watch") => play.input(&format!("open! {refusal}")),
                _ => play.input("ring"),
            };
        }
        assert!(requests <= 10, "{requests} requests");
    }
}

#[test]
fn two_minutes_of_health_start_the_delays_over() {
    let mut play = watching();
    for _ in 0..6 {
        play.lines("close -> sleep");
        play.input("ring");
        play.lines("page 10 -> replace 10\ntaken -> watch 10\nopen -> read");
    }
    play.lines("wait 120s ->\nerr 410 -> sleep");
    assert!(play.machine.alarm().expect("a sleep") - play.now < Duration::from_millis(1600));
}

#[test]
fn watches_ask_for_an_end_at_a_random_whole_second_within_once_and_twice_the_minimum() {
    for (minimum, low, high) in [(300, 300, 600), (1800, 1800, 3600)] {
        let rules = Rules { min_watch_timeout: Duration::from_secs(minimum), ..listing() };
        let mut machine = Machine::new(rules, Random::seeded(7));
        let timeouts: Vec<Duration> = (0..200).map(|_| machine.watch_timeout()).collect();
        assert!(timeouts.iter().all(|timeout| (low..high).contains(&timeout.as_secs()) && timeout.subsec_nanos() == 0));
        assert!(timeouts.iter().collect::<std::collections::HashSet<_>>().len() > 20, "they differ");
    }
}
