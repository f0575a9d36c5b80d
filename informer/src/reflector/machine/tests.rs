//! Tables of the rules, and random answers against the invariants.

use std::time::{Duration, Instant};

use kubewire_listwatch::{ErrorClass, ListMeta, ListOptions, RequestError, Status, VersionMatch, WatchOptions};
use kubewire_ratelimit::Random;

use super::{Activity, Change, Heard, Machine, Note, Rang, Rules, Step, Weight};

mod list_rules;
mod random_answers;
mod stream_rules;
mod watch_rules;

/// A machine, a time, and what happened, in a short notation.
///
/// | input | means |
/// |---|---|
/// | `start` | the first step |
/// | `page 10`, `page 10 t1` | a page of a list at version 10, with the token of the next one |
/// | `list! 410/Expired` | the list request fails by this status |
/// | `taken` | the store has the list |
/// | `open`, `open! 429` | the watch request is answered |
/// | `+5` `~5` `-5` `b5` `b5!` `?` | an event at version 5: added, modified, deleted, bookmark, end mark; or an unknown one |
/// | `close`, `err 500/InternalError` | the stream ends, by itself or by this error |
/// | `wait 2s` | time passes; resync checks print as `resync` |
/// | `ring` | time passes until the alarm |
///
/// Errors may be `refused`, `reset`, `truncated`, `garbage`, or a status `code/reason/cause`, each with `;after=2`
/// for a Retry-After of 2 s.
pub(super) struct Play {
    pub(super) machine: Machine,
    pub(super) now: Instant,
}

impl Play {
    pub(super) fn new(rules: Rules) -> Self {
        Self { machine: Machine::new(rules, Random::seeded(1)), now: Instant::now() }
    }

    /// Plays lines of `input -> step`, and checks each.
    pub(super) fn lines(&mut self, script: &str) {
        for (number, line) in script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (input, want) = line.split_once("->").unwrap_or((line, ""));
            let got = self.input(input.trim());
            assert_eq!(got, want.trim(), "line {}: {}", number + 1, line.trim());
            self.machine.validate();
        }
    }

    pub(super) fn input(&mut self, input: &str) -> String {
        let now = self.now;
        let (word, rest) = input.split_once(' ').unwrap_or((input, ""));
        match word {
            "start" => print(&self.machine.start(now)),
            "page" => {
                let mut parts = rest.split(' ');
                let mut meta = ListMeta::new(parts.next().unwrap_or_default());
                meta.continue_token = parts.next().map(str::to_owned);
                print(&self.machine.listed(now, Ok(&meta)))
            }
            "list!" => print(&self.machine.listed(now, Err(&error(rest)))),
            "taken" => print(&self.machine.replaced(now)),
            "open" => print(&self.machine.opened(now, Ok(()))),
            "open!" => print(&self.machine.opened(now, Err(&error(rest)))),
            "close" => print(&self.machine.closed(now, None)),
            "err" => print(&self.machine.closed(now, Some(&error(rest)))),
            "wait" => self.pass(duration(rest)),
            "ring" => {
                let due = self.machine.alarm().expect("an alarm");
                self.pass(due.duration_since(now))
            }
            "version" => format!("{:?}", self.machine.last_version()),
            event => self.event(event),
        }
    }

    fn event(&mut self, event: &str) -> String {
        let (sign, version) = event.split_at(1);
        let end = version.ends_with('!');
        let change = match sign {
            "+" => Change::Added,
            "~" | "-" => Change::Other,
            "b" => Change::Bookmark { initial_events_end: end },
            _ => Change::Nothing,
        };
        match self.machine.event(self.now, change, version.trim_end_matches('!')) {
            Heard::Gather => "gather".to_owned(),
            Heard::PassOn { moved: true } => "moved".to_owned(),
            Heard::PassOn { moved: false } => "passed".to_owned(),
            Heard::Complete(step) => print(&step),
        }
    }

    /// Lets time run, alarm by alarm.
    fn pass(&mut self, by: Duration) -> String {
        let end = self.now + by;
        let mut said = Vec::new();
        while let Some(due) = self.machine.alarm().filter(|due| *due <= end) {
            self.now = due;
            match self.machine.rang(due) {
                Rang::Nothing => {}
                Rang::Resync => said.push("resync".to_owned()),
                Rang::Step(step) => said.push(print(&step)),
            }
        }
        self.now = end;
        said.join(" ")
    }

    /// The failures noted since the last call; those that the error handler is told of have an `!`.
    pub(super) fn failures(&mut self) -> Vec<String> {
        let failed = |note: Note| match note {
            Note::Failed { kind, weight: Weight::Told } => Some(format!("{}!", kind.class())),
            Note::Failed { kind, .. } => Some(kind.class().to_string()),
            Note::Restart(_) => None,
        };
        self.machine.take_notes().into_iter().filter_map(failed).collect()
    }
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().expect("milliseconds")),
        None => Duration::from_secs(text.trim_end_matches('s').parse().expect("seconds")),
    }
}

pub(super) fn error(text: &str) -> RequestError {
    let (what, after) = text.split_once(";after=").map_or((text, None), |(what, after)| (what, Some(after)));
    let error = match what {
        "refused" => RequestError::new(ErrorClass::ConnectionRefused, "nobody listens"),
        "reset" => RequestError::new(ErrorClass::Transport, "reset by peer"),
        "slow" => RequestError::new(ErrorClass::TimedOut, "no answer"),
        "truncated" => RequestError::new(ErrorClass::Truncated, "half a line"),
        "garbage" => RequestError::new(ErrorClass::Decode, "<html>"),
        status => {
            let mut parts = status.split('/');
            let mut status = Status::default();
            status.code = parts.next().and_then(|code| code.parse().ok()).unwrap_or_default();
            status.reason = parts.next().unwrap_or_default().to_owned();
            status.causes = parts.map(str::to_owned).collect();
            RequestError::from_status(status)
        }
    };
    error.with_retry_after(after.map(|seconds| Duration::from_secs(seconds.parse().expect("seconds"))))
}

/// `list 0 limit 500`, `watch 5`, `stream 5` (a streaming list), `read`, `replace 5`, `sleep`.
pub(super) fn print(step: &Step) -> String {
    match step {
        Step::List { options, anew } => print_list(options, *anew),
        Step::Watch(options) => print_watch(options),
        Step::Read => "read".to_owned(),
        Step::Replace { resource_version } => format!("replace {resource_version}"),
        Step::Sleep => "sleep".to_owned(),
    }
}

fn print_list(options: &ListOptions, anew: bool) -> String {
    assert_eq!(options.continue_token.is_none(), anew, "only a continuation goes on with what was gathered");
    let mut text = match (&options.continue_token, &options.resource_version) {
        (Some(token), None) => format!("list ={token}"),
        (None, None) => "list any".to_owned(),
        (None, Some(version)) => format!("list {version}"),
        (Some(_), Some(_)) => panic!("a version beside a token"),
    };
    match options.resource_version_match {
        None => {}
        Some(VersionMatch::NotOlderThan) if options.resource_version.is_some() => text.push_str(" or later"),
        Some(rule) => panic!("{rule:?} has no place here"),
    }
    if let Some(limit) = options.limit {
        text.push_str(&format!(" limit {limit}"));
    }
    text
}

fn print_watch(options: &WatchOptions) -> String {
    assert!(options.allow_bookmarks);
    assert_eq!(options.resource_version_match.is_some(), options.send_initial_events);
    let word = if options.send_initial_events { "stream" } else { "watch" };
    format!("{word} {}", options.resource_version).trim_end().to_owned()
}

pub(super) fn listing() -> Rules {
    Rules { watch_list: false, ..Rules::default() }
}

pub(super) fn streaming() -> Rules {
    Rules::default()
}

impl Machine {
    /// The numbered invariants of the file's head, as far as one state shows them.
    pub(super) fn validate(&self) {
        self.position.validate();
        let cycle_over = matches!(self.activity(), Activity::New) || matches!(self.state, super::State::Listing(_));
        assert!(!cycle_over || self.resync_due.is_none(), "2: no resync timer while a list is under way");
        assert!(self.rules.resync_period > Duration::ZERO || self.resync_due.is_none(), "2: no resync period");
        assert!(self.quick_streams <= 5, "3: quick streaming lists are bounded");
        if let super::State::Opening(attempt) = &self.state {
            assert!(attempt.events == 0 && attempt.objects == 0);
            if attempt.kind == super::AttemptKind::Watch {
                assert!(!self.last_version().is_empty(), "1: no watch from nowhere");
                assert_eq!(attempt.version, self.last_version(), "1: a watch begins where the last one ended");
            }
        }
    }
}
