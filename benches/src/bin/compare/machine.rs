//! The machine that figures come from.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::flags::{Defaults, Flags};

pub(crate) const FLAGS: Defaults = &[("max-load", "0.5"), ("force", "false"), ("rounds", "0")];

/// Prints what the machine is, and fails where it is busy: then no time means anything.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let load = load()?;
    let machine = json!({
        "impl": "machine",
        "cpu": cpu(),
        "processors": std::thread::available_parallelism()?.get(),
        "memory_bytes": field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10,
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "rustc": output("rustc", "--version"),
        "day": output("date", "-uI"),
        "commit": output_of("git", &["rev-parse", "--short", "HEAD"]),
        "load_before": load,
        "rounds": flags.get::<u64>("rounds")?,
    });
    println!("{machine}");
    let busy = load > flags.get("max-load")?;
    if busy {
        eprintln!(
            "compare: the machine is busy: load {load}. The counts are right all the same, the times mean little."
        );
    }
    anyhow::ensure!(!busy || flags.get("force")?, "wait for a quiet machine, or say -force");
    Ok(())
}

/// Of the last minute.
fn load() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn cpu() -> String {
    field("/proc/cpuinfo", "model name")
}

/// The value of the first line `name: value`.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':').map(|(_, value)| value.trim()));
    value.unwrap_or_default().to_owned()
}

fn output(program: &str, argument: &str) -> Value {
    output_of(program, &[argument])
}

fn output_of(program: &str, arguments: &[&str]) -> Value {
    let output = Command::new(program).args(arguments).output();
    output.map_or(Value::Null, |output| String::from_utf8_lossy(&output.stdout).trim().into())
}
