//! Readers beside a writer, none of them paced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use kubewire_indexer::{Indexer, NAMESPACE_INDEX};

use crate::line::{Line, rounded};
use crate::sample::expect;
use crate::store::{PodRef, Pods};

/// How a reader reads the pod of this number.
type Read = fn(&Indexer<PodRef>, &Pods, usize);

/// The cases with so many readers, each as long as this. A reader is a thread: it never waits.
pub(crate) fn run(pods: &Pods, indexer: &Indexer<PodRef>, readers: usize, millis: u64) {
    let get: Read = |indexer, pods, i| expect("found", indexer.get_by_key(&pods.keys[i]).is_some(), true);
    let by_namespace: Read = |indexer, pods, i| {
        let found = indexer.by_index(NAMESPACE_INDEX, pods.keys[i].namespace());
        expect("found", found.is_ok_and(|pods| !pods.is_empty()), true);
    };
    for (name, read) in [("get", get), ("by-namespace", by_namespace)] {
        let n = pods.keys.len();
        let (reads, writes, took) = readers_and_writer(pods, indexer, readers, Duration::from_millis(millis), read);
        Line::new(format!("store/indexer/{n}/{name}-{readers}-readers-1-writer"))
            .with("n", n)
            .with("workers", readers)
            .with("ns_per_op", rounded(took * 1e9 / reads))
            .with("reads_per_s", rounded(reads / took))
            .with("writes_per_s", rounded(writes / took))
            .print();
    }
}

/// How often was read, and written, in how many seconds.
fn readers_and_writer(
    pods: &Pods,
    indexer: &Indexer<PodRef>,
    readers: usize,
    time: Duration,
    read: Read,
) -> (f64, f64, f64) {
    let (n, stop, start) = (pods.keys.len(), AtomicBool::new(false), Instant::now());
    let (reads, writes) = thread::scope(|scope| {
        let stop = &stop;
        let readers: Vec<_> = (0..readers)
            .map(|reader| {
                scope.spawn(move || {
                    let (mut count, mut i) = (0_u64, reader * 104_729 % n);
                    while !stop.load(Relaxed) {
                        read(indexer, pods, i);
                        i = (i + 7919) % n;
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let writer = scope.spawn(move || {
            let mut count = 0;
            while !stop.load(Relaxed) {
                let versions = if count / n % 2 == 0 { &pods.moved } else { &pods.same };
                drop(indexer.update(Arc::clone(&versions[count % n])));
                count += 1;
            }
            count
        });
        thread::sleep(time);
        stop.store(true, Relaxed);
        let reads: u64 = readers.into_iter().map(|reader| reader.join().expect("it does not panic")).sum();
        (reads, writer.join().expect("it does not panic"))
    });
    (reads as f64, writes as f64, start.elapsed().as_secs_f64())
}
