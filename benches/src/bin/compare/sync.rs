//! An informer over all pods of an API server, until it is synced.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::flags::{Defaults, Flags};
use crate::line::{Line, rounded};
use crate::process::{cpu_seconds, heap_bytes, settle, status};
use crate::representation::{PodForm, Speaks, Wire, chosen};
use crate::runtime::runtime;
use crate::sample::expect;
use crate::server;

pub(crate) const FLAGS: Defaults = &[
    ("kubeconfig", ""),
    ("as", "typed"),
    ("watchlist", "true"),
    ("page", "0"),
    ("transform", "false"),
    ("protobuf", "false"),
];

/// Syncs once, and prints how that went.
pub(crate) type Case = fn(name: &str, flags: &Flags) -> anyhow::Result<()>;

/// One form a process: peak memory is the whole process's.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let wire = if flags.get("protobuf")? { Wire::Protobuf } else { Wire::Json };
    chosen(flags, wire)?.into_iter().try_for_each(|representation| (representation.sync)(representation.name, flags))
}

pub(crate) fn case<O: PodForm, C: Speaks<O>>(name: &str, flags: &Flags) -> anyhow::Result<()> {
    let informer = runtime().block_on(async { server::informer::<O, C>(server::connect(flags).await?, flags) })?;
    let (heap, base, cpu, start) = (heap_bytes(), status("VmRSS"), cpu_seconds(), Instant::now());
    let running = runtime().block_on(async {
        let running = informer.start(CancellationToken::new());
        informer.synced().await?;
        anyhow::Ok(running)
    })?;
    let wall = start.elapsed();
    informer.indexer().list().first().inspect(|pod| pod.settle());
    let cpu = cpu_seconds() - cpu;
    let (synced, peak) = (status("VmRSS"), status("VmHWM"));
    let n = informer.indexer().len();
    let (heap, steady) = (heap_bytes() - heap, settle());
    Line::new("sync")
        .with("representation", name)
        .with_all(server::wire(flags, C::WIRE)?)
        .with("n", n)
        .with("seconds", rounded(wall.as_secs_f64()))
        .with("ns_per_op", rounded(wall.as_nanos() as f64 / n.max(1) as f64))
        .with("cpu_s", rounded(cpu))
        .with("base_rss_bytes", base)
        .with("peak_rss_bytes", peak)
        .with("synced_rss_bytes", synced)
        .with("steady_rss_bytes", steady)
        .with("heap_bytes_per_item", heap / n.max(1) as i64)
        .print();
    expect("cached", informer.indexer().len(), n); // it is alive until here
    running.stop();
    runtime().block_on(running.join());
    Ok(())
}
