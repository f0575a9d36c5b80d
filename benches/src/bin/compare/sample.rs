//! One measured run, and the run of many that is printed.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::counting::{self, Counts};
use crate::line::{Line, Members, rounded};
use crate::process::cpu_seconds;

pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// User and system seconds.
    pub(crate) cpu: f64,
    counts: Counts,
    extra: Members,
}

impl Sample {
    #[must_use = "it gives the changed sample back"]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.extra.push((name, value.into()));
        self
    }

    #[must_use = "it gives the changed sample back"]
    pub(crate) fn with_all(mut self, members: Members) -> Self {
        self.extra.extend(members);
        self
    }
}

/// Times the work.
pub(crate) fn measure(work: impl FnOnce()) -> Sample {
    let (counts, cpu, start) = (Counts::now(), cpu_seconds(), Instant::now());
    work();
    let wall = start.elapsed();
    Sample { wall, cpu: cpu_seconds() - cpu, counts: Counts::now() - counts, extra: Vec::new() }
}

/// Runs it so many times and prints the run with the median time, taken to hold `ops` operations; then once more, to
/// count allocations.
pub(crate) fn bench(case: &str, ops: usize, repeat: usize, mut run: impl FnMut() -> Sample) {
    let mut runs: Vec<_> = (0..repeat.max(1)).map(|_| run()).collect();
    counting::count(true);
    let counts = run().counts;
    counting::count(false);
    runs.sort_by_key(|run| run.wall);
    let [min, max] = [runs[0].wall, runs[runs.len() - 1].wall];
    let median = runs.swap_remove((runs.len() - 1) / 2);
    let each = |total: f64| rounded(total / ops as f64);
    let nanos = |wall: Duration| each(wall.as_nanos() as f64);
    let mut line = Line::new(case)
        .with("n", ops)
        .with("ns_per_op", nanos(median.wall))
        .with("ops_per_s", rounded(ops as f64 / median.wall.as_secs_f64()))
        .with("cpu_ns_per_op", each(median.cpu * 1e9));
    if repeat > 1 {
        line = line.with("ns_per_op_min", nanos(min)).with("ns_per_op_max", nanos(max));
    }
    line.with("allocs_per_op", each(counts.allocations as f64))
        .with("alloc_bytes_per_op", each(counts.bytes as f64))
        .with("live_bytes_per_op", each(counts.live as f64))
        .with_all(median.extra)
        .print();
}

/// Ends the program when a count is wrong: a benchmark that has lost an event must not report a time.
pub(crate) fn expect<T: PartialEq + Debug>(what: &str, found: T, wanted: T) {
    if found != wanted {
        fail(format_args!("{what}: got {found:?}, want {wanted:?}"));
    }
}

/// Ends the program.
pub(crate) fn fail(why: impl std::fmt::Display) -> ! {
    eprintln!("compare: {why}");
    std::process::exit(1)
}
