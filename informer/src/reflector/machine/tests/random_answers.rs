//! Random answers: whatever a server says, the invariants hold, and requests are paced.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Play, Rules};

/// What a server may say, whatever it was asked.
#[derive(Clone, Debug)]
enum Answer {
    Page { version: u8, token: bool },
    Fail(&'static str),
    Event(&'static str),
    Close,
    Wait(u16),
}

fn answer() -> impl Strategy<Value = Answer> {
    let failures = ["410/Expired", "410/Gone", "504/Timeout/ResourceVersionTooLarge", "429", "500", "403", "refused"];
    let more = ["reset", "truncated", "garbage", "422/Invalid"];
    let failure = prop::sample::select([&failures[..], &more[..]].concat());
    let events = vec!["+5", "~6", "-7", "b8", "b9!", "b!", "?", "+"];
    prop_oneof![
        3 => (any::<u8>(), any::<bool>()).prop_map(|(version, token)| Answer::Page { version, token }),
        3 => failure.prop_map(Answer::Fail),
        4 => prop::sample::select(events).prop_map(Answer::Event),
        2 => Just(Answer::Close),
        1 => (0..2000_u16).prop_map(Answer::Wait),
    ]
}

/// Plays the answers round and round; the times of all requests.
fn requests(rules: Rules, answers: &[Answer]) -> Vec<Instant> {
    let mut play = Play::new(rules);
    let mut step = play.input("start");
    let mut times = Vec::new();
    let mut tokens = 0;
    let start = play.now;
    for answer in answers.iter().cycle().take(400) {
        play.machine.validate();
        if let Answer::Wait(millis) = answer {
            let said = play.input(&format!("wait {millis}ms"));
            if let Some(last) = said.rsplit("resync").map(str::trim).find(|said| !said.is_empty()) {
                times.push(play.now);
                step = last.to_owned();
            }
            continue;
        }
        let next = match (step.split(' ').next().unwrap_or_default(), answer) {
            ("list", Answer::Page { version, token }) => {
                tokens += 1;
                let token = if *token { format!(" t{tokens}") } else { String::new() };
                play.input(&format!("page {version}{token}"))
            }
            ("list", Answer::Fail(failure)) => play.input(&format!("list! {failure}")),
            ("watch" | "stream", Answer::Fail(failure)) => play.input(&format!("open! {failure}")),
            ("watch" | "stream", _) => play.input("open"),
            ("read", Answer::Event(event)) => match play.input(event) {
                said if ["gather", "moved", "passed"].contains(&said.as_str()) => "read".to_owned(),
                said => said,
            },
            ("read", Answer::Close) => play.input("close"),
            ("read", Answer::Fail(failure)) => play.input(&format!("err {failure}")),
            ("replace", _) => play.input("taken"),
            ("sleep", _) => play.input("ring"),
            _ => continue,
        };
        if next.starts_with("list") || next.starts_with("watch") || next.starts_with("stream") {
            // Pages are progress; they need no pause.
            if !next.starts_with("list =") {
                times.push(play.now);
            }
        }
        step = next;
        play.machine.take_notes();
    }
    assert!(play.now >= start);
    times
}

proptest! {
    #[test]
    fn whatever_the_server_answers_the_invariants_hold_and_no_requests_go_round_without_a_pause(
        answers in prop::collection::vec(answer(), 1..30),
        watch_list in any::<bool>(),
        resync in any::<bool>(),
        retry_internal in any::<bool>(),
    ) {
        let second = |on: bool| if on { Duration::from_secs(1) } else { Duration::ZERO };
        let rules = Rules {
            watch_list,
            resync_period: second(resync),
            max_internal_error_retry: second(retry_internal),
            ..Rules::default()
        };
        let times = requests(rules, &answers);
        for window in times.windows(25) {
            let stretch = window[24] - window[0];
            prop_assert!(stretch >= Duration::from_millis(800), "25 requests in {stretch:?}");
        }
    }
}
