//! The frame held against an area that misbehaves on request.

use serde::{Deserialize, Serialize};

use super::*;
use crate::{Area, replay};

struct Puppet;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    impossible: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Input {
    value: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Answer {
    value: u64,
    list: Vec<String>,
}

impl Area for Puppet {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, _: &[String]) -> Result<Self, String> {
        if config.impossible { Err("cannot be built".to_owned()) } else { Ok(Self) }
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        match op {
            "echo" | "better" => Ok(Answer { value: input.value, ..Answer::default() }),
            "panic" => panic!("as asked"),
            "panic_in_task" => {
                let stage = crate::Stage::new();
                stage.spawn(async { panic!("swallowed by the runtime") });
                stage.settle();
                Ok(Answer::default())
            }
            "hang" => loop {
                std::thread::park();
            },
            _ => Err(format!("unknown operation {op:?}")),
        }
    }

    fn deliberate(&self, op: &str, _: &Answer, _: &Answer) -> Option<String> {
        (op == "better").then(|| "X1: a defect".to_owned())
    }
}

/// Runs cases given as (needs and config, steps) and returns the report and whether none failed.
fn report(cases: &[(&str, &str)], args: &[&str]) -> (String, bool) {
    report_within(Duration::from_secs(600), cases, args)
}

fn report_within(limit: Duration, cases: &[(&str, &str)], args: &[&str]) -> (String, bool) {
    let folder = tempdir(cases);
    let runner = Runner::new([("puppet", replay::<Puppet> as Replay)]).limit(limit);
    let mut out = Vec::new();
    let good = runner.run(&folder, args.iter().map(|&arg| arg.to_owned()), &mut out);
    std::fs::remove_dir_all(folder).expect("it is ours");
    (String::from_utf8(out).expect("text"), good)
}

fn tempdir(cases: &[(&str, &str)]) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let id = format!("kubewire-runner-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(id);
    std::fs::create_dir_all(folder.join("puppet")).expect("a place for a test's files");
    for (index, (head, steps)) in cases.iter().enumerate() {
        let text = format!(r#"{{"area":"puppet","name":"case","seed":1,"about":"x"{head},"steps":[{steps}]}}"#);
        std::fs::write(folder.join(format!("puppet/case-{index}.json")), text).expect("a place for a test's files");
    }
    folder
}

const GOOD: &str = r#"{"op":"echo","value":3,"expect":{"value":3,"message":"not compared"}}"#;

#[test]
fn absent_fields_are_empty_ones() {
    let steps = r#"{"op":"echo","expect":{"value":0,"list":[]}},{"op":"echo"},{"op":"echo","expect":{}}"#;
    let (text, good) = report(&[("", GOOD), (r#","config":{"impossible":false}"#, steps)], &[]);
    assert_eq!((text.as_str(), good), ("puppet: 2 passed, 0 differ, 0 skipped\n\n2 passed, 0 failed\n", true));
}

#[test]
fn each_failure_is_told_and_fails_alone() {
    // head | steps | what the report says
    #[rustfmt::skip]
    let table = [
        ("", r#"{"op":"echo","value":3,"expect":{"value":4}}"#, "step 1, echo {\"value\":3}: the answer differs in value\n    expected: {\"value\":4}\n    got:      {\"value\":3}"),
        ("", r#"{"op":"echo","expect":{"list":["a"]}}"#,        "the answer differs in list"),
        ("", r#"{"op":"what","expect":{}}"#,                    "unknown operation \"what\""),
        ("", r#"{"op":"echo","colour":1,"expect":{}}"#,         "input: unknown field `colour`"),
        ("", r#"{"op":"echo","expect":{"colour":0}}"#,          "expect: unknown field `colour`"),
        (r#","config":{"colour":1}"#, GOOD,                     "config: unknown field `colour`"),
        (r#","config":{"impossible":true}"#, GOOD,              "config: cannot be built"),
        (r#","colour":1"#, GOOD,                                "not a trace: unknown field `colour`"),
        ("", "",                                                "a trace without steps"),
        ("", r#"{"op":"panic"}"#,                               "panicked: panicked at"),
        ("", r#"{"op":"panic_in_task"}"#,                       "swallowed by the runtime"),
    ];
    for (head, steps, expected) in table {
        let (text, good) = report(&[("", GOOD), (head, steps), ("", GOOD)], &[]);
        assert!(text.contains(expected), "{steps}: {text}");
        assert!(text.contains("FAILED puppet/case-1.json: "), "{steps}: {text}");
        assert!(text.ends_with("\n\n2 passed, 1 failed\n"), "{steps}: {text}");
        assert!(!good, "{steps}");
    }
}

#[test]
fn a_case_that_hangs_is_given_up() {
    let (text, good) = report_within(Duration::from_millis(10), &[("", r#"{"op":"hang"}"#)], &[]);
    assert!(!good && text.contains("FAILED puppet/case-0.json: still running after 10ms"), "{text}");
}

#[test]
fn an_unknown_area_is_a_failure() {
    let folder = tempdir(&[("", GOOD)]);
    let mut out = Vec::new();
    let good = Runner::new([]).run(&folder, [], &mut out);
    std::fs::remove_dir_all(folder).expect("it is ours");
    let text = String::from_utf8(out).expect("text");
    assert!(!good && text.contains("unknown area \"puppet\""), "{text}");
}

#[test]
fn a_folder_without_traces_is_a_failure() {
    let (text, good) = report(&[], &[]);
    assert!(!good && text.contains("no trace in") && text.ends_with("\n\n0 passed, 1 failed\n"), "{text}");
    let mut out = Vec::new();
    assert!(!Runner::new([]).run(Path::new("no such folder"), [], &mut out));
}

#[test]
fn a_deliberate_difference_is_named_and_counted_and_the_rest_still_compared() {
    let differs = r#"{"op":"better","value":3,"expect":{"value":4}}"#;
    let (text, good) = report(&[("", &format!("{GOOD},{differs},{GOOD}")), ("", GOOD)], &[]);
    assert!(good);
    assert!(text.contains("DIFFERS puppet/case-0.json, step 2: X1: a defect\n"), "{text}");
    assert!(text.contains("puppet: 1 passed, 1 differ, 0 skipped\n"), "{text}");
    let (text, good) = report(&[("", &format!(r#"{differs},{{"op":"echo","expect":{{"value":9}}}}"#))], &[]);
    assert!(!good && text.contains("1 failed"), "{text}");
}

#[test]
fn only_misuse_is_skipped() {
    let (text, good) = report(&[(r#","needs":["misuse"]"#, GOOD), (r#","needs":["batch"]"#, GOOD)], &[]);
    assert!(good && text.contains("puppet: 1 passed, 0 differ, 1 skipped\n"), "{text}");
    assert!(text.contains("SKIPPED puppet/case-0.json: misuse"), "{text}");
}

#[test]
fn arguments_choose_and_list_cases() {
    let cases = [("", GOOD), ("", GOOD), ("", GOOD)];
    let (text, _) = report(&cases, &["--nocapture", "case-1"]);
    assert!(text.ends_with("\n1 passed, 0 failed\n"), "{text}");
    let (text, _) = report(&cases, &["--test-threads", "1", "--skip", "case-1"]);
    assert!(text.ends_with("\n2 passed, 0 failed\n"), "{text}");
    let (text, good) = report(&cases, &["--list"]);
    assert_eq!(text.lines().count(), 3);
    assert!(good && text.starts_with("puppet/case-0.json: test\n"), "{text}");
    let (text, good) = report(&cases, &["a name of another test"]);
    assert!(good && text.ends_with("\n0 passed, 0 failed\n"), "{text}");
}
