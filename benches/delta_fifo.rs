//! The delta FIFO by itself and with a store, and the way of an event through an informer to many handlers.
//!
//! As in the peers' programs each object goes through as an addition, an update and a deletion; the informer holds
//! 10,000 objects, of which by turns one is changed, one deleted and one added.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use kubewire_indexer::{Deleted, Id, Indexer, Meta, Object, ObjectId, ObjectKey};
use kubewire_informer::{
    Delivery, Delta, DeltaFifo, DeltaFifoOptions, Informer, InformerOptions, ResourceEventHandlerFuncs, RunningInformer,
};
use kubewire_listwatch::{
    ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A small object: what it costs to hold is not measured here.
struct Thing {
    id: ObjectId,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        self.id.id()
    }

    fn key(&self) -> ObjectKey {
        self.id.key()
    }
}

type ThingRef = Arc<Thing>;

const OBJECTS: usize = 10_000;
const EVENTS: usize = 9_000;
const DELIVERIES: [(&str, Delivery); 3] =
    [("per-key", Delivery::PerKey), ("coalescing", Delivery::Coalescing), ("in-order", Delivery::InOrder)];

fn thing(n: usize, version: usize) -> ThingRef {
    let (namespace, name) = (format!("namespace-{}", n / 100), format!("thing-{n:06}-7d9c8b6f5-x2x4z"));
    let version = version.to_string();
    let id = Id::new(&namespace, &name).uid("3f1e6c1a-1c0d-4a5e-9e57-2a8b1d3c4e5f").resource_version(&version);
    Arc::new(Thing { id: ObjectId::new(id) })
}

fn push_all(fifo: &DeltaFifo<ThingRef>, things: &[ThingRef]) {
    for thing in things {
        fifo.add(Arc::clone(thing)).expect("it has a name");
    }
    for thing in things {
        fifo.update(Arc::clone(thing)).expect("it has a name");
    }
    for thing in things {
        fifo.delete(Deleted::Known(Arc::clone(thing))).expect("it has a name");
    }
}

fn pop_all(fifo: &DeltaFifo<ThingRef>, batch: usize, store: Option<&Indexer<ThingRef>>) -> usize {
    let mut count = 0;
    while let Ok(Some(mut popped)) = fifo.try_pop(batch) {
        for delta in popped.take_entries().flatten() {
            count += 1;
            match (store, delta) {
                (Some(store), Delta::Deleted(deleted)) => drop(store.delete_by_key(&deleted.key())),
                (Some(store), delta) => {
                    if let Some(object) = delta.object() {
                        store.put(object.key(), object.clone());
                    }
                }
                (None, delta) => drop(black_box(delta)),
            }
        }
    }
    count
}

fn fifo(c: &mut Criterion) {
    let things: Vec<_> = (0..OBJECTS).map(|n| thing(n, n)).collect();
    let mut group = c.benchmark_group("delta_fifo");
    group.throughput(Throughput::Elements(3 * OBJECTS as u64));
    group.sample_size(20);
    for (name, delivery) in DELIVERIES {
        for (how, batch) in [("", 1), ("-in-batches", 1000)] {
            let empty = |known: Option<&Indexer<ThingRef>>| {
                DeltaFifo::new(DeltaFifoOptions {
                    delivery,
                    known_objects: known.map(|store| Arc::new(store.clone()) as _),
                    ..DeltaFifoOptions::default()
                })
            };
            group.bench_function(format!("push-all-pop-all{how}/{name}"), |b| {
                b.iter_batched(
                    || empty(None),
                    |fifo| {
                        push_all(&fifo, &things);
                        pop_all(&fifo, batch, None)
                    },
                    BatchSize::PerIteration,
                );
            });
            group.bench_function(format!("push-all-pop-all-with-store{how}/{name}"), |b| {
                b.iter_batched(
                    || {
                        let store = Indexer::new();
                        (empty(Some(&store)), store)
                    },
                    |(fifo, store)| {
                        push_all(&fifo, &things);
                        pop_all(&fifo, batch, Some(&store))
                    },
                    BatchSize::PerIteration,
                );
            });
            group.bench_function(format!("push-pop{how}/{name}"), |b| {
                let fifo = empty(None);
                b.iter(|| {
                    for chunk in things.chunks(batch) {
                        for _ in 0..3 {
                            for thing in chunk {
                                fifo.update(Arc::clone(thing)).expect("it has a name");
                            }
                            pop_all(&fifo, batch, None);
                        }
                    }
                });
            });
        }
    }
    group.finish();
}

/// Lists what it has, and then watches whatever is sent.
struct Source {
    objects: Vec<ThingRef>,
    events: parking_lot::Mutex<Option<UnboundedReceiver<WatchEvent<ThingRef>>>>,
}

impl ListerWatcher for Source {
    type Object = ThingRef;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, ThingRef>) -> Result<ListMeta, RequestError> {
        self.objects.iter().for_each(|thing| each(Ok(Arc::clone(thing))));
        Ok(ListMeta::new("1"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<ThingRef>, RequestError> {
        let events = self.events.lock().take();
        Ok(match events {
            Some(events) => events.map(Ok).boxed(),
            None => futures::stream::pending().boxed(),
        })
    }
}

struct Rig {
    sender: UnboundedSender<WatchEvent<ThingRef>>,
    events: Vec<WatchEvent<ThingRef>>,
    told: Arc<AtomicUsize>,
    all_told: Arc<Notify>,
    expected: usize,
    _running: RunningInformer,
}

impl Rig {
    /// A synced informer with its handlers, and the events that it will be sent.
    async fn new(delivery: Delivery, handlers: usize) -> Self {
        let (sender, receiver) = unbounded();
        let source = Source {
            objects: (0..OBJECTS).map(|n| thing(n, 0)).collect(),
            events: parking_lot::Mutex::new(Some(receiver)),
        };
        let informer = Informer::with_options(source, InformerOptions::new().delivery(delivery)).expect("no index");
        let (told, all_told) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let expected = (OBJECTS + EVENTS) * handlers;
        let count = || {
            let (told, all_told) = (Arc::clone(&told), Arc::clone(&all_told));
            move || {
                if told.fetch_add(1, Ordering::Relaxed) + 1 == expected {
                    all_told.notify_one();
                }
            }
        };
        let mut registrations = Vec::new();
        for _ in 0..handlers {
            let (add, update, delete) = (count(), count(), count());
            let handler = ResourceEventHandlerFuncs::new()
                .on_add(move |_, _| add())
                .on_update(move |_, _| update())
                .on_delete(move |_| delete());
            registrations.push(informer.add_handler(handler).expect("it has not stopped"));
        }
        let running = informer.start(CancellationToken::new());
        for registration in registrations {
            registration.synced().await.expect("it has not stopped");
        }
        let events = (0..EVENTS)
            .map(|n| match (n % 3, n / 3, 10_000_000 + n) {
                (0, n, version) => WatchEvent::Modified(thing(n + OBJECTS / 2, version)),
                (1, n, version) => WatchEvent::Deleted(thing(n, version)),
                (_, n, version) => WatchEvent::Added(thing(n + OBJECTS, version)),
            })
            .collect();
        Self { sender, events, told, all_told, expected, _running: running }
    }

    /// From the first event sent to the last call of a handler.
    async fn send_all(&mut self) -> Duration {
        let start = Instant::now();
        for event in self.events.drain(..) {
            self.sender.unbounded_send(event).expect("the watch is open");
        }
        self.all_told.notified().await;
        assert_eq!(self.told.load(Ordering::Relaxed), self.expected);
        start.elapsed()
    }
}

fn fan_out(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("informer_fan_out");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.sample_size(10);
    for (name, delivery) in DELIVERIES {
        // Coalescing tells fewer of them.
        if delivery == Delivery::Coalescing {
            continue;
        }
        for handlers in [1, 10, 100] {
            group.bench_function(BenchmarkId::new(name, handlers), |b| {
                b.iter_custom(|rounds| {
                    let mut total = Duration::ZERO;
                    for _ in 0..rounds {
                        total += runtime.block_on(async { Rig::new(delivery, handlers).await.send_all().await });
                    }
                    total
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, fifo, fan_out);
criterion_main!(benches);
