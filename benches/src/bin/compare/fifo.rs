//! The delta FIFO.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{Deleted, Indexer, ObjectKey};
use kubewire_informer::{Delivery, Delta, DeltaFifo, DeltaFifoOptions};

use crate::flags::{Defaults, Flags};
use crate::keys::{light_pod, node};
use crate::line::rounded;
use crate::process::heap_bytes;
use crate::runtime::runtime;
use crate::sample::{Sample, bench, expect, measure};

pub(crate) const FLAGS: Defaults = &[("n", "300000"), ("repeat", "1")];

type PodRef = Arc<Pod>;
type Fifo = DeltaFifo<PodRef>;

/// The peers' names: client-go's `RealFIFO` is the delivery in order. In batches as an informer takes them.
const KINDS: [(&str, Delivery, usize); 4] = [
    ("delta-fifo", Delivery::PerKey, 1),
    ("delta-fifo-batch", Delivery::PerKey, BATCH),
    ("real-fifo", Delivery::InOrder, 1),
    ("real-fifo-batch", Delivery::InOrder, BATCH),
];
const BATCH: usize = 256;

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (n, repeat) = (flags.get::<usize>("n")?, flags.get("repeat")?);
    let pods: Vec<_> = (0..(n / 3).max(1)).map(|i| light_pod(i, 1000 + i, node(i))).collect();
    let ops = 3 * pods.len();
    for (name, delivery, batch) in KINDS {
        bench(&format!("fifo/{name}/push-all-pop-all"), ops, repeat, || push_then_pop(&pods, delivery, batch));
        bench(&format!("fifo/{name}/producer-and-consumer-with-store"), ops, repeat, || {
            let known = Indexer::new();
            let fifo = make(delivery, Some(&known));
            let producer = fifo.clone();
            measure(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| push(&producer, &pods));
                    pop(&fifo, &pods, batch, Some(&known));
                });
            })
        });
    }
    Ok(())
}

fn make(delivery: Delivery, known: Option<&Indexer<PodRef>>) -> Fifo {
    let known_objects = known.map(|known| Arc::new(known.clone()) as _);
    DeltaFifo::new(DeltaFifoOptions { delivery, known_objects, ..DeltaFifoOptions::default() })
}

fn push_then_pop(pods: &[PodRef], delivery: Delivery, batch: usize) -> Sample {
    let before = heap_bytes();
    let fifo = make(delivery, None);
    push(&fifo, pods);
    let heap = heap_bytes() - before;
    let fifo = make(delivery, None);
    let mut pushing = Duration::ZERO;
    let sample = measure(|| {
        let start = Instant::now();
        push(&fifo, pods);
        pushing = start.elapsed();
        pop(&fifo, pods, batch, None);
    });
    let n = 3 * pods.len();
    let each = |time: Duration| rounded(time.as_nanos() as f64 / n as f64);
    let popping = sample.wall.saturating_sub(pushing);
    sample
        .with("push_ns_per_op", each(pushing))
        .with("pop_ns_per_op", each(popping))
        .with("heap_bytes_per_item", heap / n as i64)
}

/// An addition, an update and a deletion of each.
fn push(fifo: &Fifo, pods: &[PodRef]) {
    let taken = "each pod has a name";
    pods.iter().for_each(|pod| fifo.add(Arc::clone(pod)).expect(taken));
    pods.iter().for_each(|pod| fifo.update(Arc::clone(pod)).expect(taken));
    pods.iter().for_each(|pod| fifo.delete(Deleted::Known(Arc::clone(pod))).expect(taken));
}

/// Takes all deltas and counts them by kind; with a known store it applies them to it, as an informer does.
fn pop(fifo: &Fifo, pods: &[PodRef], batch: usize, known: Option<&Indexer<PodRef>>) {
    let counts = runtime().block_on(async {
        let mut counts = [0; 3];
        while counts.iter().sum::<usize>() < 3 * pods.len() {
            let Ok(mut popped) = fifo.pop_batch(batch).await else { break };
            for entry in popped.take_entries() {
                let key = entry.key().expect("each is of one pod").clone();
                for delta in entry {
                    match &delta {
                        Delta::Added(_) => counts[0] += 1,
                        Delta::Updated(_) => counts[1] += 1,
                        Delta::Deleted(_) => counts[2] += 1,
                        _ => {}
                    }
                    apply(&key, delta, known);
                }
            }
        }
        counts
    });
    expect("added, updated and deleted", counts, [pods.len(); 3]);
    if let Some(known) = known {
        expect("left", known.len(), 0);
    }
}

fn apply(key: &ObjectKey, delta: Delta<PodRef>, known: Option<&Indexer<PodRef>>) {
    match (known, delta) {
        (Some(known), Delta::Deleted(_)) => drop(known.delete_by_key(key)),
        (Some(known), Delta::Added(item) | Delta::Updated(item)) => {
            drop(known.put(key.clone(), item.into_object()));
        }
        _ => {}
    }
}
