//! Area `ratelimiters`: the limiters by themselves, and the keyed back-off.

use std::time::{Duration, Instant};

use kubewire_conformance::Area;
use kubewire_ratelimit::BackoffTable;
use serde::{Deserialize, Serialize};

use crate::limiter::{Description, Limiter, whole_nanos};

pub(crate) struct RateLimiters {
    subject: Subject,
    now: Instant,
    tolerance_ns: u64,
}

enum Subject {
    Limiter(Limiter),
    Backoff(BackoffTable<String>),
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    limiter: Option<Description>,
    backoff: Option<Backoff>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Backoff {
    initial_ns: u64,
    max_ns: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    key: String,
    times: Option<u64>,
    by_ns: u64,
    /// Negative for a time to come.
    event_ago_ns: i64,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    delays_ns: Vec<u64>,
    delay_ns: u64,
    requeues: u32,
    in_backoff: bool,
}

impl Area for RateLimiters {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, _: &[String]) -> Result<Self, String> {
        // Far enough from the earliest instant there may be, so that events of any age can be told.
        let now = Instant::now() + Duration::from_secs(100 * 365 * 86_400);
        let tolerance_ns = config.limiter.as_ref().map_or(0, Description::tolerance_ns);
        let subject = match (config.limiter, config.backoff) {
            (Some(limiter), None) => Subject::Limiter(limiter.build()?),
            (None, Some(Backoff { initial_ns, max_ns })) => {
                Subject::Backoff(BackoffTable::new(Duration::from_nanos(initial_ns), Duration::from_nanos(max_ns)))
            }
            _ => return Err("either a limiter or a backoff".to_owned()),
        };
        Ok(Self { subject, now, tolerance_ns })
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        if op == "advance" {
            self.now += Duration::from_nanos(input.by_ns);
            return Ok(Answer::default());
        }
        match &mut self.subject {
            Subject::Limiter(limiter) => limit(limiter, op, input, self.now),
            Subject::Backoff(table) => back_off(table, op, input, self.now),
        }
    }

    fn agrees(&self, expected: &Answer, got: &Answer) -> bool {
        let near = |expected: u64, got: u64| expected.abs_diff(got) <= self.tolerance_ns;
        let all_near = |expected: &[u64], got: &[u64]| {
            expected.len() == got.len() && expected.iter().zip(got).all(|(&expected, &got)| near(expected, got))
        };
        all_near(&expected.delays_ns, &got.delays_ns)
            && near(expected.delay_ns, got.delay_ns)
            && (expected.requeues, expected.in_backoff) == (got.requeues, got.in_backoff)
    }
}

fn limit(limiter: &mut Limiter, op: &str, input: Input, now: Instant) -> Result<Answer, String> {
    let key = input.key;
    let times = input.times.unwrap_or(1);
    let mut answer = Answer::default();
    match op {
        "when" => answer.delays_ns = (0..times).map(|_| whole_nanos(limiter.when(&key, now))).collect(),
        "when_many" => answer.delay_ns = (0..times).map(|_| whole_nanos(limiter.when(&key, now))).last().unwrap_or(0),
        "forget" => limiter.forget(&key),
        "num_requeues" => {}
        _ => return Err(format!("unknown operation {op:?} for a limiter")),
    }
    answer.requeues = limiter.num_requeues(&key);
    Ok(answer)
}

fn back_off(table: &mut BackoffTable<String>, op: &str, input: Input, now: Instant) -> Result<Answer, String> {
    let key = input.key;
    let age = Duration::from_nanos(input.event_ago_ns.unsigned_abs());
    let event = if input.event_ago_ns < 0 { now + age } else { now - age };
    let mut answer = Answer::default();
    match op {
        "next" => {
            table.next(&key, event, now);
            answer.delay_ns = whole_nanos(table.get(&key));
        }
        "get" => answer.delay_ns = whole_nanos(table.get(&key)),
        "in_backoff_since" => answer.in_backoff = table.is_in_back_off_since(&key, event, now),
        "in_backoff_since_update" => answer.in_backoff = table.is_in_back_off_since_update(&key, event),
        "reset" => table.reset(&key),
        "delete_entry" => table.delete_entry(&key),
        "gc" => table.gc(now),
        _ => return Err(format!("unknown operation {op:?} for a back-off")),
    }
    Ok(answer)
}
