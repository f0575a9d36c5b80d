//! Our crates on the work of the peers' programs in `benches/peers`: the same cases by the same names, the same flags,
//! the same lines of JSON, on the same pods.
//!
//! ```text
//! cargo run --release -p kubewire-benches -- queue-cycle -n 500000 -repeat 3
//! cargo run --release -p kubewire-benches -- list-decode -h
//! cargo run --release -p kubewire-benches -- quick     # every case that needs no API server, small: are the counts right?
//! ```
//!
//! Beside the peers' members a line has `allocs_per_op`, `alloc_bytes_per_op` and `live_bytes_per_op` (what is
//! allocated and not freed by the end), counted in one more run, which is not timed. A wrong count ends the program
//! with a non-zero status. `benches/README.md` tells of the method.
#![deny(unsafe_code)]

mod body;
mod counter;
mod counting;
mod e2e;
mod fanout;
mod fifo;
mod flags;
mod keys;
mod limiter;
mod line;
mod line_plot;
mod list_decode;
mod machine;
mod memory;
mod order;
mod plot;
mod process;
mod prometheus;
mod queue_cycle;
mod queue_delayed;
mod queue_ratelimited;
mod quick;
mod report;
mod representation;
mod results;
mod rows;
mod runtime;
mod sample;
mod scaling;
mod server;
mod store;
mod store_readers;
mod sync;

use anyhow::Context;

use crate::flags::{Defaults, Flags};
use crate::line::Line;

/// Counts what is allocated, where it is switched on.
#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// One sub-command.
struct Command {
    name: &'static str,
    help: &'static str,
    flags: Defaults,
    run: fn(&Flags) -> anyhow::Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "gen",
        help: "write a PodList as a server would answer it",
        flags: &[("n", "10000"), ("o", "pods.json")],
        run: generate,
    },
    Command {
        name: "queue-cycle",
        help: "add, get, done on the queue",
        flags: queue_cycle::FLAGS,
        run: queue_cycle::plain,
    },
    Command {
        name: "queue-cycle-metrics",
        help: "the same with metrics",
        flags: queue_cycle::FLAGS,
        run: queue_cycle::metrics,
    },
    Command {
        name: "queue-delayed",
        help: "add_after: firing over one second, and cost while many wait",
        flags: queue_delayed::FLAGS,
        run: queue_delayed::run,
    },
    Command {
        name: "queue-ratelimited",
        help: "add_rate_limited, num_requeues, forget; the limiters alone",
        flags: queue_ratelimited::FLAGS,
        run: queue_ratelimited::run,
    },
    Command {
        name: "priority-queue",
        help: "add, get, done by priority",
        flags: queue_cycle::PRIORITY_FLAGS,
        run: order::run,
    },
    Command {
        name: "store",
        help: "Indexer and Store: add, update, delete, get, index, list",
        flags: store::FLAGS,
        run: store::run,
    },
    Command {
        name: "fifo",
        help: "DeltaFifo, by its deliveries: push and pop deltas",
        flags: fifo::FLAGS,
        run: fifo::run,
    },
    Command {
        name: "informer-fanout",
        help: "informer on an in-memory list and watch, to many handlers",
        flags: fanout::FLAGS,
        run: fanout::run,
    },
    Command {
        name: "list-decode",
        help: "decode a PodList body, in each representation",
        flags: list_decode::FLAGS,
        run: list_decode::run,
    },
    Command {
        name: "memory",
        help: "live heap of an informer's cache, in one representation (-as)",
        flags: memory::FLAGS,
        run: memory::run,
    },
    Command {
        name: "sync",
        help: "informer over all pods of an API server, until it is synced",
        flags: sync::FLAGS,
        run: sync::run,
    },
    Command {
        name: "e2e",
        help: "from an update at an API server to a worker's processing of its key",
        flags: e2e::FLAGS,
        run: e2e::run,
    },
    Command {
        name: "quick",
        help: "every case that needs no API server, small: are the counts right?",
        flags: &[],
        run: quick::run,
    },
    Command {
        name: "machine",
        help: "what this machine is; fails where it is busy",
        flags: machine::FLAGS,
        run: machine::run,
    },
    Command {
        name: "report",
        help: "from the lines of many runs: medians, ratios, plots",
        flags: report::FLAGS,
        run: report::run,
    },
    Command {
        name: "scaling",
        help: "from lines of several sizes: what one operation costs as the number of keys or objects grows",
        flags: scaling::FLAGS,
        run: scaling::run,
    },
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("usage: compare COMMAND [flags]   (compare COMMAND -h lists its flags)");
        COMMANDS.iter().for_each(|command| eprintln!("  {:20} {}", command.name, command.help));
        std::process::exit(2);
    };
    let flags = Flags::parse(command.flags, arguments).with_context(|| format!("compare {name}"))?;
    (command.run)(&flags).with_context(|| format!("compare {name}"))
}

fn generate(flags: &Flags) -> anyhow::Result<()> {
    let (count, file) = (flags.get::<usize>("n")?, flags.text("o"));
    anyhow::ensure!(!file.ends_with(".pb"), "protobuf is written by the peers: peers gen -n {count} -o {file}");
    let mut out = std::io::BufWriter::new(std::fs::File::create(file).with_context(|| file.to_owned())?);
    kubewire_benches::pods::write_list(count, &mut out)?;
    let bytes = out.into_inner()?.metadata()?.len();
    Line::new("gen").with("n", count).with("bytes", bytes).with("bytes_per_pod", bytes / count.max(1) as u64).print();
    Ok(())
}
