//! The thing under test, and the replay of one case through it.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Case, Step};

/// A thing under test. One is built for each case.
///
/// Its three types are plain structs that deserialize with `default` and `deny_unknown_fields`: absent fields
/// are false, zero or empty, as the traces mean it, and a field that nobody knows fails the case.
pub trait Area: Sized {
    /// What a case's `config` may hold.
    type Config: DeserializeOwned;
    /// All inputs of all operations.
    type Input: DeserializeOwned;
    /// All that an answer may hold.
    type Answer: DeserializeOwned + Serialize + PartialEq;

    /// Builds a fresh one, for a case that needs these abilities.
    fn build(config: Self::Config, needs: &[String]) -> Result<Self, String>;

    /// Does one operation and answers. An error is a failure of the replay, such as an unknown operation; an
    /// error that the thing under test gave is part of the answer.
    fn step(&mut self, op: &str, input: Self::Input) -> Result<Self::Answer, String>;

    /// Whether an answer is as good as the reference's.
    fn agrees(&self, expected: &Self::Answer, got: &Self::Answer) -> bool {
        expected == got
    }

    /// Why an answer that does not agree is nevertheless right: the rule that is called a defect in the
    /// reference, and what is better here. Without an implementation there is no such answer.
    fn deliberate(&self, op: &str, expected: &Self::Answer, got: &Self::Answer) -> Option<String> {
        let _ = (op, expected, got);
        None
    }
}

/// How a case ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every answer was as the reference's.
    Passed,
    /// Some answers differ on purpose, all others were right.
    Differs(Vec<Difference>),
    /// Not replayed, and why.
    Skipped(String),
    /// An answer was wrong, or there was none.
    Failed(Failure),
}

/// An answer that differs on purpose.
#[derive(Debug)]
pub struct Difference {
    /// The step's number, from 1.
    pub step: usize,
    /// The rule and why.
    pub reason: String,
}

/// What went wrong, for people.
#[derive(Debug, Default)]
pub struct Failure {
    /// The step's number, from 1; 0 if it was before the first.
    pub step: usize,
    /// The step's operation with its input.
    pub operation: String,
    /// What is wrong, and which fields differ.
    pub problem: String,
    /// The answer of the reference, where there is one to compare.
    pub expected: String,
    /// The answer that was given instead.
    pub got: String,
}

impl Failure {
    /// A failure that has no step.
    pub fn before(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }

    fn at(step: usize, of: &Step, problem: impl Into<String>) -> Self {
        let input = if of.input.is_empty() { String::new() } else { format!(" {}", json(&of.input)) };
        Self { step, operation: bounded(&format!("{}{input}", of.op)), ..Self::before(problem) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.step > 0 {
            write!(f, "step {}, {}: ", self.step, self.operation)?;
        }
        write!(f, "{}", self.problem)?;
        if !self.expected.is_empty() || !self.got.is_empty() {
            write!(f, "\n    expected: {}\n    got:      {}", self.expected, self.got)?;
        }
        Ok(())
    }
}

/// Replays one case, up to its end or its first wrong answer.
pub fn replay<A: Area>(case: &Case) -> Outcome {
    if case.needs.iter().any(|need| need == "misuse") {
        return Outcome::Skipped("misuse: `done` of a key that is not held never queues it here (Q9, a defect)".into());
    }
    match try_replay::<A>(case) {
        Ok(differences) if differences.is_empty() => Outcome::Passed,
        Ok(differences) => Outcome::Differs(differences),
        Err(failure) => Outcome::Failed(failure),
    }
}

fn try_replay<A: Area>(case: &Case) -> Result<Vec<Difference>, Failure> {
    let config = decode(&case.config).map_err(|error| Failure::before(format!("config: {error}")))?;
    let mut area = A::build(config, &case.needs).map_err(|error| Failure::before(format!("config: {error}")))?;
    let mut differences = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let fail = |problem: String| Failure::at(index + 1, step, problem);
        let input = decode(&step.input).map_err(|error| fail(format!("input: {error}")))?;
        let mut expect = step.expect.clone();
        expect.remove("message");
        let expected: A::Answer = decode(&expect).map_err(|error| fail(format!("expect: {error}")))?;
        let got = area.step(&step.op, input).map_err(&fail)?;
        if area.agrees(&expected, &got) {
            continue;
        }
        match area.deliberate(&step.op, &expected, &got) {
            Some(reason) => differences.push(Difference { step: index + 1, reason }),
            None => return Err(compare(fail(String::new()), &expected, &got)),
        }
    }
    Ok(differences)
}

fn decode<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(fields.clone())).map_err(|error| error.to_string())
}

/// Names the fields that differ and puts both answers beside each other, without the fields in which both are
/// the same.
fn compare(failure: Failure, expected: &impl Serialize, got: &impl Serialize) -> Failure {
    let (mut expected, mut got) = (fields(expected), fields(got));
    let same: Vec<String> = expected.keys().filter(|&key| expected.get(key) == got.get(key)).cloned().collect();
    for key in &same {
        expected.remove(key);
        got.remove(key);
    }
    let mut names: Vec<&str> = expected.keys().chain(got.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    Failure {
        problem: format!("the answer differs in {}", names.join(", ")),
        expected: bounded(&json(&expected)),
        got: bounded(&json(&got)),
        ..failure
    }
}

/// The top level fields that are not empty.
fn fields(answer: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(answer) else { return Map::new() };
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(value) => value.as_f64() != Some(0.0),
        Value::String(value) => !value.is_empty(),
        Value::Array(value) => !value.is_empty(),
        Value::Object(value) => !value.is_empty(),
    });
    fields
}

fn json(fields: &Map<String, Value>) -> String {
    Value::Object(fields.clone()).to_string()
}

/// Cuts a text that would fill screens.
fn bounded(text: &str) -> String {
    const CHARS_MAX: usize = 3_000;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}... ({} bytes more)", &text[..at], text.len() - at),
    }
}
