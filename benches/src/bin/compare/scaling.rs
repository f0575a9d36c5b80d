//! How the cost of one operation grows with the number of keys or objects.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::flags::{Defaults, Flags};
use crate::line_plot::{Curve, LinePlot};
use crate::results::Results;

pub(crate) const FLAGS: Defaults = &[("f", "lines.jsonl"), ("o", "results")];

const OURS: &str = "kubewire";
const PEER: &str = "client-go";
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// One work, whose case may have the size in its name.
struct Work {
    name: &'static str,
    case: &'static str,
    /// The operation goes over all objects: the cost is given for each of them.
    whole: bool,
}

const fn work(name: &'static str, case: &'static str) -> Work {
    Work { name, case, whole: false }
}

const WORKS: &[Work] = &[
    work("queue: n keys added, then each taken and done", "queue-cycle/fill-drain"),
    work("queue by priority: the same", "priority-queue/fill-drain"),
    work("add_after beside n that wait", "queue-delayed/add-after-new-while-n-wait"),
    work("add_after, sooner, of a key that waits", "queue-delayed/add-after-sooner-of-waiting"),
    work("add_rate_limited of n keys", "queue-ratelimited/default/add-rate-limited"),
    work("indexer of n: add", "store/indexer/{n}/add"),
    work("indexer of n: update", "store/indexer/{n}/update-same-index"),
    work("indexer of n: get", "store/indexer/{n}/get"),
    work("indexer of n: by namespace, 100 results", "store/indexer/{n}/by-namespace-of-100"),
    work("indexer of n: delete", "store/indexer/{n}/delete"),
    Work { name: "indexer of n: list, an object", case: "store/indexer/{n}/list", whole: true },
    work("delta FIFO: n deltas pushed, then popped", "fifo/delta-fifo/push-all-pop-all"),
    work("in order, in batches", "fifo/real-fifo-batch/push-all-pop-all"),
    work("n events through an informer to 1 handler", "informer-fanout/events-to-1-handlers"),
];

/// The medians at each size.
struct Scales(BTreeMap<u64, Results>);

impl Scales {
    /// Reads lines of results. A line with `"impl":"scale"` says for which size the next ones are; the first tells of the
    /// machine.
    fn read(lines: &str) -> anyhow::Result<(Value, Self)> {
        let mut machine = Value::Null;
        let mut parts: BTreeMap<u64, String> = BTreeMap::new();
        let mut size = 0;
        for line in lines.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| format!("no result: {line}"))?;
            match value["impl"].as_str() {
                Some("machine") => machine = value,
                Some("scale") => size = value["n"].as_u64().with_context(|| format!("no size: {line}"))?,
                _ => writeln!(parts.entry(size).or_default(), "{line}").context("a string takes everything")?,
            }
        }
        let scales = parts.into_iter().map(|(size, lines)| Ok((size, Results::read(&lines)?)));
        Ok((machine, Self(scales.collect::<anyhow::Result<_>>()?)))
    }

    /// Nanoseconds of one operation.
    fn cost(&self, program: &str, work: &Work, size: u64) -> Option<f64> {
        let case = work.case.replace("{n}", &size.to_string());
        let nanos = self.0.get(&size)?.figure(program, &case, "ns_per_op")?;
        Some(if work.whole { nanos / size as f64 } else { nanos })
    }
}

/// Writes `scaling.json`, `scaling.md` and `scaling.svg` into a folder.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let lines = fs::read_to_string(flags.text("f")).with_context(|| flags.text("f").to_owned())?;
    let (machine, scales) = Scales::read(&lines)?;
    let folder = Path::new(flags.text("o"));
    fs::create_dir_all(folder)?;
    let table = table(&machine, &scales);
    print!("{table}");
    fs::write(folder.join("scaling.md"), table)?;
    let cases: BTreeMap<_, _> = scales.0.iter().map(|(size, results)| (size.to_string(), results.to_json())).collect();
    fs::write(
        folder.join("scaling.json"),
        format!("{:#}\n", serde_json::json!({ "machine": machine, "sizes": cases })),
    )?;
    fs::write(folder.join("scaling.svg"), plot(&scales).to_svg())?;
    Ok(())
}

fn table(machine: &Value, scales: &Scales) -> String {
    let of = |name: &str| machine[name].as_str().unwrap_or("?").to_owned();
    let mut text = format!(
        "{}, commit {}: {}, Linux {}, {}.\n\nNanoseconds of one operation.\n\n| work | | 1k | 10k | 100k | 1M | 1M / 10k |\n|---|---|--:|--:|--:|--:|--:|\n",
        of("day"),
        of("commit"),
        of("cpu"),
        of("kernel"),
        of("rustc")
    );
    for work in WORKS {
        for program in [OURS, PEER] {
            let costs = SIZES.map(|size| scales.cost(program, work, size));
            if costs.iter().all(Option::is_none) {
                continue;
            }
            let shown = |cost: &Option<f64>| cost.map_or("-".to_owned(), |cost| format!("{cost:.0}"));
            let growth = costs[3].zip(costs[1]).map_or("-".to_owned(), |(most, some)| format!("{:.2}", most / some));
            let work = if program == OURS { work.name } else { "" };
            let [a, b, c, d] = costs.each_ref().map(shown);
            text += &format!("| {work} | {program} | {a} | {b} | {c} | {d} | {growth} |\n");
        }
    }
    text
}

/// Each work's cost as a part of its cost at 10,000.
fn plot(scales: &Scales) -> LinePlot {
    let curve = |work: &Work| {
        let at_10k = scales.cost(OURS, work, 10_000)?;
        let costs = SIZES.iter().filter_map(|&size| Some((size as f64, scales.cost(OURS, work, size)? / at_10k)));
        Some(Curve { label: work.name.to_owned(), points: costs.collect() })
    };
    LinePlot {
        title: "Cost of one operation as the number of keys or objects grows (at 10,000: 1)",
        limit: 2.0,
        curves: WORKS.iter().filter_map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_told_apart_by_the_size_that_stands_before_them() {
        let mut lines = r#"{"impl":"machine","cpu":"some"}"#.to_owned();
        for (size, nanos) in [(10_000, 10.0), (1_000_000, 15.0)] {
            let whole = nanos * size as f64;
            lines += &format!(
                "\n{{\"impl\":\"scale\",\"n\":{size}}}\n{{\"impl\":\"kubewire\",\"case\":\"queue-cycle/fill-drain\",\"n\":{size},\"ns_per_op\":{nanos}}}\n{{\"impl\":\"kubewire\",\"case\":\"store/indexer/{size}/list\",\"n\":20,\"ns_per_op\":{whole}}}"
            );
        }
        let (machine, scales) = Scales::read(&lines).unwrap();
        let table = table(&machine, &scales);
        assert!(
            table.contains("| queue: n keys added, then each taken and done | kubewire | - | 10 | - | 15 | 1.50 |")
        );
        assert!(table.contains("| indexer of n: list, an object | kubewire | - | 10 | - | 15 | 1.50 |"), "{table}");
        assert_eq!(plot(&scales).curves.len(), 2);
        assert!(Scales::read("nonsense").is_err());
    }
}
