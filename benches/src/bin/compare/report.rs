//! The table, the plots and the results as a file, from the lines of many runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::flags::{Defaults, Flags};
use crate::plot::{Bar, Plot};
use crate::results::Results;
use crate::rows::{MEMORY, PEAKS, Row, TABLES, TIMES, Target};

pub(crate) const FLAGS: Defaults = &[("f", "lines.jsonl"), ("o", "results")];

const OURS: &str = "kubewire";

/// Writes `results.json`, `table.md` and the plots into a folder.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let lines = fs::read_to_string(flags.text("f")).with_context(|| flags.text("f").to_owned())?;
    let results = Results::read(&lines)?;
    let folder = Path::new(flags.text("o"));
    fs::create_dir_all(folder)?;
    let table = table(&results);
    print!("{table}");
    fs::write(folder.join("table.md"), table)?;
    fs::write(folder.join("results.json"), format!("{:#}\n", results.to_json()))?;
    let plots = [
        ("times.svg", "Time of one operation, as a part of the peer's", ratios(&results)),
        ("memory.svg", "Live heap of a cached pod of 9.4 kB", bars(&results, MEMORY)),
        ("peak.svg", "Peak memory while a list of pods is taken in", bars(&results, PEAKS)),
    ];
    for (file, title, bars) in plots {
        fs::write(folder.join(file), Plot { title, bars }.to_svg())?;
    }
    Ok(())
}

fn table(results: &Results) -> String {
    let mut text = String::new();
    let machine = |name: &str| match &results.machine.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "?".to_owned(),
    };
    let [cpu, processors, kernel, rustc, load] = ["cpu", "processors", "kernel", "rustc", "load_before"].map(machine);
    let [day, commit, rounds] = ["day", "commit", "rounds"].map(machine);
    let written = writeln!(
        text,
        "{day}, commit {commit}: {cpu}, {processors} processors, Linux {kernel}, {rustc}; load before {load}; medians of {rounds} rounds."
    );
    written.expect("a string takes everything");
    for (title, rows) in TABLES {
        let lines: Vec<_> = rows.iter().filter_map(|row| line(results, row)).collect();
        if !lines.is_empty() {
            text += &format!(
                "\n### {title}\n\n| work | kubewire | peers | ratio | target | allocations | by itself: `compare` |\n|---|--:|---|--:|--:|--:|---|\n"
            );
            lines.iter().for_each(|line| text.push_str(line));
        }
    }
    text
}

/// One line, where we have the figure.
fn line(results: &Results, row: &Row) -> Option<String> {
    let ours = results.figure(OURS, row.ours, row.member)?;
    let theirs = |(program, case): &(&str, &str)| {
        let figure = results.figure(program, case, row.member)?;
        let named_twice = row.peers.iter().filter(|(name, _)| name == program).count() > 1;
        let codec = if named_twice { codec(case) } else { "" };
        Some((format!("{program}{codec} {}", shown(figure, row.member)), ours / figure))
    };
    let peers: Vec<_> = row.peers.iter().filter_map(theirs).collect();
    let join = |texts: Vec<String>| texts.join(", ");
    let ratio = join(peers.iter().map(|(_, ratio)| format!("{ratio:.2}")).collect());
    let first = peers.first().map(|(_, ratio)| *ratio);
    let (most, reached) = match row.target {
        Target::Open => (String::new(), false),
        Target::Part(part) => (format!("{part:.2}"), first.is_some_and(|ratio| ratio <= part)),
        Target::AtMost(most) => (shown(most, row.member), ours <= most),
    };
    let target = if reached { most + " ✓" } else { most };
    let peers = join(peers.into_iter().map(|(text, _)| text).collect());
    let allocations = results.figure(OURS, row.ours, "allocs_per_op").map(|count| format!("{count:.2}"));
    Some(format!(
        "| {} | {} | {peers} | {ratio} | {target} | {} | `{}` |\n",
        row.work,
        shown(ours, row.member),
        allocations.unwrap_or_default(),
        row.command()
    ))
}

/// In what an object came, to be said of a case.
fn codec(case: &str) -> &'static str {
    if case.contains("/protobuf/") { ", protobuf" } else { ", JSON" }
}

/// A time or a size with a unit that suits it.
fn shown(figure: f64, member: &str) -> String {
    let (scale, units) = match member {
        _ if member.ends_with("_us") => return format!("{figure:.0} us"),
        "cpu_s" => return format!("{figure:.2} s"),
        _ if member.contains("bytes") => (1000.0, ["B", "kB", "MB", "GB"]),
        _ => (1000.0, ["ns", "us", "ms", "s"]),
    };
    let (mut figure, mut unit) = (figure, 0);
    while figure >= scale && unit + 1 < units.len() {
        figure /= scale;
        unit += 1;
    }
    let digits = if figure < 10.0 {
        2
    } else if figure < 100.0 {
        1
    } else {
        0
    };
    format!("{figure:.digits$} {}", units[unit])
}

/// Ours beside those of the first peer, which is 1.
fn ratios(results: &Results) -> Vec<Bar> {
    let bar = |row: &Row| {
        let ours = results.figure(OURS, row.ours, row.member)?;
        let (program, case) = row.peers.first()?;
        let theirs = results.figure(program, case, row.member)?;
        let text = format!("{} / {} {}", shown(ours, row.member), program, shown(theirs, row.member));
        Some(Bar { label: row.work.to_owned(), value: ours / theirs, text, ours: true })
    };
    TIMES.iter().filter_map(bar).collect()
}

/// Ours, and those of each peer once.
fn bars(results: &Results, rows: &[Row]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for row in rows {
        let own = [(OURS, row.ours)];
        for (program, case) in own.iter().chain(row.peers) {
            let form = case.rsplit('/').next().unwrap_or_default();
            let codec = if case.contains("/protobuf/") { codec(case) } else { "" };
            let label = format!("{program}, {form}{codec}");
            if let Some(value) = results.figure(program, case, row.member)
                && bars.iter().all(|bar| bar.label != label)
            {
                bars.push(Bar { label, value, text: shown(value, row.member), ours: *program == OURS });
            }
        }
    }
    bars.sort_by(|a, b| a.value.total_cmp(&b.value));
    bars
}
