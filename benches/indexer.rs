//! The indexer with 10,000 and with 100,000 objects in namespaces of 100, indexed by namespace.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kubewire_indexer::{Id, Indexer, Indexers, LabelSelector, Lister, Meta, NAMESPACE_INDEX, ObjectId, ObjectKey};

/// A small object: what it costs to hold is not measured here.
struct Thing {
    id: ObjectId,
    tier: &'static str,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        self.id.id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        (name == "tier").then_some(self.tier)
    }

    fn key(&self) -> ObjectKey {
        self.id.key()
    }
}

const SIZES: [usize; 2] = [10_000, 100_000];
const NAMESPACE_LEN: usize = 100;

fn thing(n: usize, version: usize) -> Arc<Thing> {
    let (namespace, name) = (namespace(n), format!("thing-{n:06}-7d9c8b6f5-x2x4z"));
    let version = version.to_string();
    let id = Id::new(&namespace, &name).uid("3f1e6c1a-1c0d-4a5e-9e57-2a8b1d3c4e5f").resource_version(&version);
    Arc::new(Thing { id: ObjectId::new(id), tier: if n.is_multiple_of(100) { "web" } else { "db" } })
}

fn namespace(n: usize) -> String {
    format!("namespace-{}", n / NAMESPACE_LEN)
}

fn things(len: usize, version: usize) -> Vec<Arc<Thing>> {
    (0..len).map(|n| thing(n, version)).collect()
}

fn empty() -> Indexer<Arc<Thing>> {
    Indexer::with_indexers(Indexers::by_namespace()).expect("one index cannot conflict")
}

fn filled(things: &[Arc<Thing>]) -> Indexer<Arc<Thing>> {
    let indexer = empty();
    indexer.replace(things.iter().cloned(), "1").expect("every thing has a name");
    indexer
}

/// Numbers below `len` that follow each other as if at random, each once a round.
fn scattered(len: usize) -> impl Iterator<Item = usize> {
    (0..).map(move |n: usize| n.wrapping_mul(7_919) % len)
}

fn writes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("indexer");
    for len in SIZES {
        let (first, second) = (things(len, 1), things(len, 2));
        group.throughput(Throughput::Elements(len as u64));
        group.sample_size(20);
        group.bench_function(BenchmarkId::new("add to empty", len), |bencher| {
            let add = |indexer: &mut Indexer<_>| first.iter().for_each(|thing| drop(indexer.add(thing.clone())));
            bencher.iter_batched_ref(empty, add, BatchSize::PerIteration);
        });
        let indexer = filled(&first);
        group.bench_function(BenchmarkId::new("replace", len), |bencher| {
            bencher.iter(|| indexer.replace(second.iter().cloned(), "2"));
        });
        group.throughput(Throughput::Elements(1));
        group.sample_size(100);
        let mut numbers = scattered(len);
        group.bench_function(BenchmarkId::new("update", len), |bencher| {
            bencher.iter(|| indexer.update(first[numbers.next().unwrap_or_default()].clone()));
        });
        group.bench_function(BenchmarkId::new("delete and add", len), |bencher| {
            bencher.iter(|| {
                let thing = &first[numbers.next().unwrap_or_default()];
                drop(indexer.delete(thing));
                indexer.add(thing.clone())
            });
        });
    }
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("indexer");
    for len in SIZES {
        let things = things(len, 1);
        let indexer = filled(&things);
        let keys: Vec<ObjectKey> = things.iter().map(|thing| Meta::key(&**thing)).collect();
        let namespaces: Vec<String> = (0..len / NAMESPACE_LEN).map(|n| namespace(n * NAMESPACE_LEN)).collect();
        let mut numbers = scattered(len);
        group.bench_function(BenchmarkId::new("get", len), |bencher| {
            bencher.iter(|| indexer.get_by_key(&keys[numbers.next().unwrap_or_default()]));
        });
        group.bench_function(BenchmarkId::new("get by pair", len), |bencher| {
            bencher.iter(|| {
                let key = &keys[numbers.next().unwrap_or_default()];
                indexer.get_by_key(&(key.namespace(), key.name()))
            });
        });
        group.bench_function(BenchmarkId::new("by namespace, 100 results", len), |bencher| {
            bencher.iter(|| {
                let namespace = &namespaces[numbers.next().unwrap_or_default() % namespaces.len()];
                indexer.by_index(NAMESPACE_INDEX, namespace)
            });
        });
        group.bench_function(BenchmarkId::new("list", len), |bencher| bencher.iter(|| indexer.list()));
        let lister = Lister::new(indexer.clone(), "things");
        let selector: LabelSelector = "tier=web".parse().expect("a right selector");
        group.bench_function(BenchmarkId::new("list 1 % by label", len), |bencher| {
            bencher.iter(|| lister.list(&selector));
        });
        beside_a_writer(&indexer, &things, || {
            group.bench_function(BenchmarkId::new("get beside a writer", len), |bencher| {
                bencher.iter(|| indexer.get_by_key(&keys[numbers.next().unwrap_or_default()]));
            });
        });
        beside_lists(&indexer, || {
            group.bench_function(BenchmarkId::new("get beside lists", len), |bencher| {
                bencher.iter(|| indexer.get_by_key(&keys[numbers.next().unwrap_or_default()]));
            });
        });
    }
    group.finish();
}

/// Runs it while another thread updates one object after the other.
fn beside_a_writer(indexer: &Indexer<Arc<Thing>>, things: &[Arc<Thing>], run: impl FnOnce()) {
    beside(|n| drop(indexer.update(things[n % things.len()].clone())), run);
}

/// Runs it while another thread lists without a pause.
fn beside_lists(indexer: &Indexer<Arc<Thing>>, run: impl FnOnce()) {
    beside(|_| drop(black_box(indexer.list())), run);
}

fn beside(other: impl Fn(usize) + Sync, run: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| (0..).take_while(|_| !done.load(Ordering::Relaxed)).for_each(&other));
        run();
        done.store(true, Ordering::Relaxed);
    });
}

criterion_group!(benches, writes, reads);
criterion_main!(benches);
