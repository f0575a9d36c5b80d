//! Areas `queue`, `delaying` and `ratelimitqueue`.
//!
//! Each script drives two queues that must give the same answers: for one the clock jumps, for the other it runs
//! through time.

mod subject;

use kubewire_conformance::Area;
use serde::{Deserialize, Serialize};

use crate::limiter::Description;
use subject::Subject;

pub(crate) struct Queues {
    jumping: Subject,
    running: Subject,
    tolerance_ns: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    limiter: Option<Description>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    key: String,
    /// May be negative.
    delay_ns: i64,
    by_ns: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    len: usize,
    shutting_down: bool,
    waiting: usize,
    woken: Vec<Woken>,
    drain: String,
    key: String,
    shutdown: bool,
    would_block: bool,
    groups: Vec<Vec<String>>,
    delay_ns: u64,
    requeues: u32,
    due: Vec<Due>,
}

/// How a get that waited returned: with a key, or with the news of the shut down.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Woken {
    #[serde(skip_serializing_if = "String::is_empty")]
    key: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shutdown: bool,
}

/// Delayed adds that took place at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Due {
    at_ns: u64,
    keys: Vec<String>,
}

impl Area for Queues {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, _: &[String]) -> Result<Self, String> {
        let limiter = || config.limiter.as_ref().map(Description::build).transpose();
        Ok(Self {
            jumping: Subject::new(limiter()?, false),
            running: Subject::new(limiter()?, true),
            tolerance_ns: config.limiter.as_ref().map_or(0, Description::tolerance_ns),
        })
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        let (jumped, ran) = (self.jumping.step(op, input.clone())?, self.running.step(op, input)?);
        if jumped == ran {
            Ok(jumped)
        } else {
            Err(format!("a clock that jumps and one that runs give two answers: {jumped:?} and {ran:?}"))
        }
    }

    fn agrees(&self, expected: &Answer, got: &Answer) -> bool {
        let rest = |answer: &Answer| {
            let mut woken = answer.woken.clone();
            woken.sort();
            let Answer { len, shutting_down, waiting, shutdown, would_block, requeues, .. } = *answer;
            let flags = (len, shutting_down, waiting, shutdown, would_block, requeues);
            (flags, woken, answer.drain.clone(), answer.key.clone())
        };
        rest(expected) == rest(got)
            && expected.delay_ns.abs_diff(got.delay_ns) <= self.tolerance_ns
            && same_groups(&expected.groups, &got.groups)
            && same_moments(&expected.due, &got.due, self.tolerance_ns)
    }
}

/// Keys in one group may come in any order among themselves, and in what was got each is a group by itself.
fn same_groups(expected: &[Vec<String>], got: &[Vec<String>]) -> bool {
    let mut got = got.iter().flatten();
    let groups_fit = expected.iter().all(|group| {
        let mut these: Vec<&String> = got.by_ref().take(group.len()).collect();
        these.sort();
        let mut group: Vec<&String> = group.iter().collect();
        group.sort();
        these == group
    });
    groups_fit && got.next().is_none()
}

/// The keys that came due, each within the tolerance of its moment.
fn same_moments(expected: &[Due], got: &[Due], tolerance_ns: u64) -> bool {
    let flat = |due: &[Due]| -> Vec<(String, u64)> {
        let mut all: Vec<_> = due.iter().flat_map(|due| due.keys.iter().map(|key| (key.clone(), due.at_ns))).collect();
        all.sort();
        all
    };
    let (expected, got) = (flat(expected), flat(got));
    expected.len() == got.len()
        && expected.iter().zip(&got).all(|(one, other)| one.0 == other.0 && one.1.abs_diff(other.1) <= tolerance_ns)
}
