//! What an informer's cache takes.

use std::path::Path;
use std::time::Instant;

use kubewire_indexer::Indexers;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions};
use tokio_util::sync::CancellationToken;

use crate::body::{Source, client};
use crate::counting::{self, Counts};
use crate::flags::{Defaults, Flags};
use crate::line::{Line, rounded};
use crate::process::{heap_bytes, reset_peak, settle, status};
use crate::representation::{PodForm, Speaks, Wire, chosen, list_watch};
use crate::runtime::runtime;
use crate::sample::{expect, fail};

pub(crate) const FLAGS: Defaults = &[("n", "10000"), ("f", ""), ("as", "typed"), ("transform", "false")];

/// Fills a cache from a body in a file, with or without `managedFields`, and prints what it takes.
pub(crate) type Case = fn(name: &str, file: &Path, transform: bool);

/// One form a process, for figures of a whole process.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let transform = flags.get("transform")?;
    let made = std::env::temp_dir().join(format!("compare-{}-pods.json", std::process::id()));
    let file = match flags.text("f") {
        "" => {
            let mut out = std::io::BufWriter::new(std::fs::File::create(&made)?);
            kubewire_benches::pods::write_list(flags.get("n")?, &mut out)?;
            made.as_path()
        }
        file => Path::new(file),
    };
    for representation in chosen(flags, Wire::of_file(flags.text("f")))? {
        (representation.memory)(representation.name, file, transform);
    }
    if file == made {
        std::fs::remove_file(made)?;
    }
    Ok(())
}

pub(crate) fn case<O: PodForm, C: Speaks<O>>(name: &str, file: &Path, transform: bool) {
    counting::count(true);
    let (heap, counts, resident) = (heap_bytes(), Counts::now(), reset_peak());
    let start = Instant::now();
    let (informer, running) = runtime().block_on(async {
        let pods = list_watch::<O, C>(client(Source::File(file.to_owned()), C::WIRE), transform);
        let options = InformerOptions::new().indexers(Indexers::by_namespace());
        let options = options.reflector(ReflectorOptions::new().watch_list(false));
        let informer = Informer::with_options(pods, options).expect("there is one index");
        let running = informer.start(CancellationToken::new());
        if let Err(error) = informer.synced().await {
            fail(error);
        }
        (informer, running)
    });
    let wall = start.elapsed().as_secs_f64();
    informer.indexer().list().first().inspect(|pod| pod.settle());
    let peak = status("VmHWM");
    let n = informer.indexer().len() as i64;
    let counts = Counts::now() - counts;
    counting::count(false);
    let heap = heap_bytes() - heap;
    let steady = settle();
    Line::new("memory")
        .with("representation", name)
        .with("protobuf", C::WIRE == Wire::Protobuf)
        .with("transform", transform)
        .with("n", n)
        .with("seconds", rounded(wall))
        .with("heap_bytes_per_item", heap / n)
        .with("live_bytes_per_item", counts.live / n)
        .with("allocs_per_item", rounded(counts.allocations as f64 / n as f64))
        .with("alloc_bytes_per_item", counts.bytes as i64 / n)
        .with("rss_bytes_per_item", (steady - resident) / n)
        .with("steady_rss_bytes", steady)
        .with("peak_rss_bytes", peak)
        .with("peak_extra_bytes", peak - resident)
        .print();
    expect("cached", informer.indexer().len() as i64, n); // it is alive until here
    running.stop();
    runtime().block_on(running.join());
}
