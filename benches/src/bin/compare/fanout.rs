//! An informer on an in-memory list and watch, to many handlers.

use std::sync::Arc;

use futures::channel::mpsc::{Receiver, channel};
use futures::{SinkExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kubewire_informer::{Delivery, Informer, InformerOptions};
use kubewire_listwatch::{
    ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use crate::counter::Counter;
use crate::flags::{Defaults, Flags};
use crate::keys::{light_pod, node};
use crate::line::rounded;
use crate::runtime::runtime;
use crate::sample::{Sample, bench, expect, measure};

pub(crate) const FLAGS: Defaults = &[
    ("n", "99000"),
    ("keys", "10000"),
    ("repeat", "1"),
    ("handlers", "1,10,100"),
    ("modify", "false"),
    ("delivery", "per-key"),
];

/// How many events wait for the watch, as in the peers' channels.
const CHANNEL_LEN: usize = 100;

type Event = WatchEvent<Arc<Pod>>;

/// What is sent, and what must come of it.
struct Plan {
    keys: usize,
    events: Vec<Event>,
    /// Additions, updates and deletions.
    wanted: [usize; 3],
    delivery: Delivery,
}

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (n, keys, repeat) = (flags.get::<usize>("n")?, flags.get("keys")?, flags.get("repeat")?);
    let modify = flags.get("modify")?;
    let delivery = match flags.text("delivery") {
        "per-key" => Delivery::PerKey,
        "in-order" => Delivery::InOrder,
        other => anyhow::bail!("-delivery {other}: want per-key or in-order"),
    };
    let plan = Plan::new(n - n % 3, keys, modify, delivery);
    let kind = if modify { "modifications" } else { "events" };
    for handlers in flags.list("handlers")? {
        let mut synced = Vec::new();
        bench(&format!("informer-fanout/{kind}-to-{handlers}-handlers"), plan.events.len(), repeat, || {
            let (sync, events) = plan.run(handlers);
            synced.push(sync);
            events.with("delivery", flags.text("delivery"))
        });
        let mut synced = synced.into_iter();
        bench(&format!("informer-fanout/sync-with-{handlers}-handlers"), keys, repeat, || {
            synced.next().expect("each run has synced once")
        });
    }
    Ok(())
}

impl Plan {
    /// By turns one pod is modified, the oldest deleted and a new one added; or modifications only.
    fn new(n: usize, keys: usize, modify: bool, delivery: Delivery) -> Self {
        let pod = |i: usize, event: usize| light_pod(i, 10_000_000 + event, node(i));
        let event = |event: usize| match (modify, event / 3, event % 3) {
            (true, ..) => WatchEvent::Modified(pod(event % keys, event)),
            (false, i, 0) => WatchEvent::Modified(pod(i + keys / 2, event)),
            (false, i, 1) => WatchEvent::Deleted(pod(i, event)),
            (false, i, _) => WatchEvent::Added(pod(i + keys, event)),
        };
        let wanted = if modify { [keys, n, 0] } else { [keys + n / 3, n / 3, n / 3] };
        Self { keys, events: (0..n).map(event).collect(), wanted, delivery }
    }

    /// The sync, and then the events, from the first sent until all handlers have had the last.
    fn run(&self, handlers: usize) -> (Sample, Sample) {
        let (mut feed, events) = channel(CHANNEL_LEN);
        let list = (0..self.keys).map(|i| light_pod(i, 1000 + i, node(i))).collect();
        let source = Source { list, events: Mutex::new(Some(events)) };
        let options = InformerOptions::new().delivery(self.delivery);
        let informer = Informer::with_options(source, options).expect("there is no index");
        let (done, mut all_done) = unbounded_channel();
        let registrations: Vec<_> = (0..handlers)
            .map(|_| informer.add_handler(Counter::new(self.events.len(), done.clone())).expect("it has not stopped"))
            .collect();
        let mut running = None;
        let sync = measure(|| {
            runtime().block_on(async {
                running = Some(informer.start(CancellationToken::new()));
                for registration in &registrations {
                    registration.synced().await.expect("it has not stopped");
                }
            });
        });
        let all = self.events.clone();
        let mut counts = Vec::new();
        let events = measure(|| {
            let feeder = runtime().spawn(async move {
                for event in all {
                    feed.send(event).await.expect("the watch is open");
                }
                feed
            });
            runtime().block_on(async {
                while counts.len() < handlers {
                    counts.extend(all_done.recv().await);
                }
                drop(feeder.await.expect("it does not panic"));
            });
        });
        counts.iter().for_each(|&counts| expect("additions, updates and deletions", counts, self.wanted));
        expect("cached", informer.indexer().len(), self.keys);
        if let Some(running) = running {
            running.stop();
            runtime().block_on(running.join());
        }
        let deliveries = (self.events.len() * handlers) as f64 / events.wall.as_secs_f64();
        let events = events.with("keys", self.keys).with("handlers", handlers);
        (sync, events.with("deliveries_per_s", rounded(deliveries)))
    }
}

/// Lists once, and then watches what is sent.
struct Source {
    list: Vec<Arc<Pod>>,
    events: Mutex<Option<Receiver<Event>>>,
}

impl ListerWatcher for Source {
    type Object = Arc<Pod>;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
        self.list.iter().for_each(|pod| each(Ok(Arc::clone(pod))));
        Ok(ListMeta::new("1"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
        let events = self.events.lock().take();
        Ok(match events {
            Some(events) => events.map(Ok).boxed(),
            None => stream::pending().boxed(),
        })
    }
}
