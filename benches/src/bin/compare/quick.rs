//! Every case that needs no API server, small: that the counts are right, whatever the times.

use anyhow::Context;

use crate::COMMANDS;
use crate::flags::Flags;

/// The flags that make each small. What does not stand here needs a server or a file.
const SMALL: &[(&str, &[&str])] = &[
    ("queue-cycle", &["-n=2000"]),
    ("queue-cycle-metrics", &["-n=2000"]),
    ("queue-delayed", &["-n=1000"]),
    ("queue-ratelimited", &["-n=500"]),
    ("priority-queue", &["-n=2000"]),
    ("store", &["-n=1000", "-dur=5"]),
    ("fifo", &["-n=3000"]),
    ("informer-fanout", &["-n=900", "-keys=100"]),
    ("informer-fanout", &["-n=900", "-keys=100", "-modify", "-delivery=in-order"]),
    ("informer-fanout", &["-n=900", "-keys=1", "-modify", "-handlers=1"]),
    ("list-decode", &["-n=50", "-repeat=1"]),
    ("list-decode", &["-n=50", "-repeat=1", "-transform"]),
    ("memory", &["-n=50", "-as=all"]),
];

pub(crate) fn run(_: &Flags) -> anyhow::Result<()> {
    for (name, arguments) in SMALL {
        let command = COMMANDS.iter().find(|command| command.name == *name).context("a command of that name")?;
        let flags = Flags::parse(command.flags, arguments.iter().map(|&argument| argument.to_owned()))?;
        (command.run)(&flags).with_context(|| format!("compare {name} {arguments:?}"))?;
    }
    Ok(())
}
