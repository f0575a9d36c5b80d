//! The way of a watch's event to the handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{StreamExt, stream};
use kubewire_informer::{Delivery, Informer, InformerOptions, ResourceEventHandlerFuncs};
use kubewire_listwatch::{
    ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::counting::Span;
use crate::thing::{Thing, thing, things};

const COUNT: usize = 2000;

type Event = WatchEvent<Arc<Thing>>;

/// Lists once, and then watches what is sent.
struct Source(Mutex<Option<UnboundedReceiver<Event>>>);

impl ListerWatcher for Source {
    type Object = Arc<Thing>;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Thing>>) -> Result<ListMeta, RequestError> {
        things(100, 1).into_iter().for_each(|thing| each(Ok(thing)));
        Ok(ListMeta::new("1"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Thing>>, RequestError> {
        let events = self.0.lock().take();
        Ok(events.map_or_else(|| stream::pending().boxed(), |events| events.map(Ok).boxed()))
    }
}

/// Lets everything else go on until there is nothing more to do.
async fn settle(told: &AtomicUsize, wanted: usize) {
    while told.load(Relaxed) < wanted {
        tokio::task::yield_now().await;
    }
}

async fn send(sender: &UnboundedSender<Event>, events: Vec<Event>, one_by_one: impl AsyncFn(usize)) {
    for (number, event) in events.into_iter().enumerate() {
        sender.unbounded_send(event).unwrap();
        one_by_one(number + 1).await;
    }
}

/// What is told comes in a vector. The allocations for one event, with that of the channel it is sent by, without those of its object. Everything runs
/// on this thread.
fn of_an_event(delivery: Delivery, handlers: usize, together: bool) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (sender, receiver) = unbounded();
    let source = Source(Mutex::new(Some(receiver)));
    let informer = Informer::with_options(source, InformerOptions::new().delivery(delivery)).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let registrations: Vec<_> = (0..handlers)
        .map(|_| {
            let told = Arc::clone(&told);
            let count = move |_, _| _ = told.fetch_add(1, Relaxed);
            informer.add_handler(ResourceEventHandlerFuncs::new().on_update(count)).unwrap()
        })
        .collect();
    let events = |round: usize| -> Vec<Event> {
        (0..COUNT).map(|n| WatchEvent::Modified(thing(n % 100, 10 + round * COUNT + n))).collect()
    };
    runtime.block_on(async {
        let running = informer.start(CancellationToken::new());
        for registration in &registrations {
            registration.synced().await.unwrap();
        }
        let mut count = 0;
        // The second round counts: then everything has its size.
        for round in 0..2 {
            let (events, before) = (events(round), round * COUNT);
            let span = Span::begin();
            send(&sender, events, async |sent| {
                if !together || sent == COUNT {
                    settle(&told, (before + sent) * handlers).await;
                }
            })
            .await;
            count = span.end();
        }
        running.stop();
        running.join().await;
        count as f64 / COUNT as f64
    })
}

#[test]
fn an_event_alone_costs_two_allocations() {
    for delivery in [Delivery::PerKey, Delivery::InOrder] {
        let alone = of_an_event(delivery, 1, false);
        println!("{delivery:?}: {alone} for an event that comes alone");
        assert!(alone <= 2.1, "{delivery:?}: {alone}");
    }
}

/// Where deltas merge, 20 wait for each key here; those are written one by one.
#[test]
fn events_that_come_together_cost_less() {
    for delivery in [Delivery::PerKey, Delivery::InOrder] {
        let together = of_an_event(delivery, 1, true);
        println!("{delivery:?}: {together} for one of many");
        assert!(together <= 2.5, "{delivery:?}: {together}");
    }
}

#[test]
fn a_second_handler_costs_one_allocation_for_what_they_share_and_a_further_one_none() {
    let [one, two, ten] = [1, 2, 10].map(|handlers| of_an_event(Delivery::PerKey, handlers, false));
    assert!(two - one <= 1.1 && ten - two <= 0.1, "{one} with one handler, {two} with two, {ten} with ten");
}
