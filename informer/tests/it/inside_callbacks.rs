//! No lock is held while user code runs: a callback may do anything with its informer.

use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{IndexFunc, Indexers, Object};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{FilteringResourceEventHandler, Informer, Registration, ResourceEventHandlerFuncs};
use kubewire_listwatch::ErrorClass;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{PodRef, Source, key, options, settle};

/// What a callback does with its informer.
type Action = fn(&Inside);

struct Inside {
    informer: Informer<PodRef>,
    own: Arc<Mutex<Option<Registration>>>,
    other: Registration,
    stop: CancellationToken,
}

const ACTIONS: [(&str, Action); 12] = [
    ("get", |inside| drop(inside.informer.indexer().get_by_key(&key("ns/a")))),
    ("list", |inside| drop(inside.informer.indexer().list())),
    ("by_index", |inside| drop(inside.informer.indexer().by_index("namespace", "ns").unwrap())),
    ("add_indexers", |inside| {
        let _ = inside.informer.add_indexers(Indexers::none().with("name", IndexFunc::name()));
    }),
    ("add a handler", |inside| drop(inside.informer.add_handler(Recorder::new()))),
    ("subscribe", |inside| drop(inside.informer.subscribe())),
    ("remove itself", |inside| inside.own.lock().as_ref().unwrap().remove()),
    ("remove another", |inside| inside.other.remove()),
    ("has_synced", |inside| {
        inside.informer.has_synced();
        inside.other.has_synced();
        inside.own.lock().as_ref().unwrap().has_synced();
    }),
    ("status", |inside| drop((inside.informer.status(), inside.other.status()))),
    ("stop", |inside| inside.informer.stop()),
    ("the signal", |inside| inside.stop.cancel()),
];

async fn each_action_in(callback: &str) {
    for (name, action) in ACTIONS {
        let source = Source::new();
        source.put("ns/a", "1");
        let stop = CancellationToken::new();
        let informer = source.informer();
        let other = informer.add_handler(Recorder::new()).unwrap();
        let own = Arc::new(Mutex::new(None));
        let done = CancellationToken::new();
        let inside = Arc::new(Inside { informer: informer.clone(), own: Arc::clone(&own), other, stop: stop.clone() });
        let act = {
            let (inside, done) = (Arc::clone(&inside), done.clone());
            move || {
                action(&inside);
                done.cancel();
            }
        };
        let funcs = ResourceEventHandlerFuncs::new();
        let registration = match callback {
            "add" => informer.add_handler(funcs.on_add(move |_, _| act())),
            "update" => informer.add_handler(funcs.on_update(move |_, _| act())),
            "delete" => informer.add_handler(funcs.on_delete(move |_| act())),
            "filter" => informer.add_handler(FilteringResourceEventHandler {
                filter: move |_: &PodRef| {
                    act();
                    true
                },
                handler: Recorder::new(),
            }),
            other => panic!("{other}"),
        };
        *own.lock() = Some(registration.unwrap());
        let running = informer.start(stop);
        informer.synced().await.unwrap();
        drop(informer);
        source.put("ns/a", "2");
        settle().await;
        source.delete("ns/a");
        let limit = Duration::from_secs(2);
        tokio::time::timeout(limit, done.cancelled()).await.unwrap_or_else(|_| panic!("{name} in {callback}"));
        running.stop();
        tokio::time::timeout(limit, running.join()).await.unwrap_or_else(|_| panic!("end after {name} in {callback}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_do_anything_with_its_informer() {
    for callback in ["add", "update", "delete", "filter"] {
        each_action_in(callback).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_do_anything_with_its_informer_on_many_threads() {
    for callback in ["add", "update", "delete", "filter"] {
        each_action_in(callback).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_handler_an_index_function_and_a_transform_may_use_the_informer() {
    let source = Source::new();
    source.put("ns/a", "1");
    source.fail_list(ErrorClass::Unavailable);
    let slot: Arc<Mutex<Option<Informer<PodRef>>>> = Arc::default();
    let uses = Arc::new(Mutex::new(Vec::new()));
    let using = |who: &'static str| {
        let (slot, uses) = (Arc::clone(&slot), Arc::clone(&uses));
        move || {
            // The lock is let go before the informer is used.
            let informer = slot.lock().clone();
            if let Some(informer) = informer {
                informer.indexer().list();
                informer.status();
                informer.add_handler(Recorder::new()).unwrap().remove();
                uses.lock().push(who);
            }
        }
    };
    let (in_error, in_index, in_transform) = (using("error handler"), using("index"), using("transform"));
    let index = IndexFunc::one(move |pod: &PodRef| {
        in_index();
        pod.label("note").unwrap_or_default()
    });
    let options = options()
        .reflector(ReflectorOptions::new())
        .error_handler(move |_| in_error())
        .indexers(Indexers::by_namespace().with("used", index))
        .transform(move |pod: PodRef| -> Result<_, std::convert::Infallible> {
            in_transform();
            Ok(pod)
        });
    let informer = source.informer_with(options);
    *slot.lock() = Some(informer.clone());
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    running.stop();
    running.join().await;
    slot.lock().take();
    let mut uses = uses.lock().clone();
    uses.dedup();
    assert_eq!(uses, ["error handler", "transform", "index"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_holds_the_last_handle_of_its_informer_may_drop_it() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let mut last = Some(informer.clone());
    let registration =
        informer.add_handler(ResourceEventHandlerFuncs::new().on_add(move |_, _| drop(last.take()))).unwrap();
    let running = informer.start(CancellationToken::new());
    drop(informer);
    registration.synced().await.unwrap();
    running.stop();
    running.join().await;
}
