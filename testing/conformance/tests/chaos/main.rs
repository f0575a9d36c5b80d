//! The whole path under trouble: writers against the embedded API server, faults in its answers, handlers that
//! come and go, workers that fail. In the end everything must be as if nothing had happened.
//!
//! All of it follows from one seed and runs in virtual time on one thread, so a failure comes again:
//! `KUBEWIRE_SEED=7 cargo test -p kubewire-conformance --test chaos`.

mod crowd;
mod dice;
mod trouble;
mod witness;
mod workers;
mod writers;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Indexer, Indexers, NAMESPACE_INDEX, Object, ObjectKey};
use kubewire_informer::{Delivery, Informer, InformerOptions};
use kubewire_listwatch::{ListWatch, ListerWatcher, Packed};
use tokio_util::sync::CancellationToken;

use crowd::Crowd;
use dice::Dice;
use workers::Workers;

/// For how long there is trouble.
const TROUBLE: Duration = Duration::from_secs(60 * 60);

/// How long everything may take to be right again: a watch over a connection that has died silently ends by its
/// own time limit, at most 10 minutes, and then there may be back-off.
const RECOVERY: Duration = Duration::from_secs(60 * 60);

/// The resource that everything is about.
const RESOURCE: &str = "configmaps";

#[test]
fn per_key_delivery_ends_right_whatever_happens() {
    for seed in seeds(1..=2) {
        play(seed, Delivery::PerKey);
    }
}

#[test]
fn in_order_delivery_ends_right_whatever_happens() {
    for seed in seeds(101..=102) {
        play(seed, Delivery::InOrder);
    }
}

#[test]
fn coalescing_delivery_ends_right_whatever_happens() {
    for seed in seeds(201..=202) {
        play(seed, Delivery::Coalescing);
    }
}

/// Those that the environment names (`7`, or `1-200`), else these.
fn seeds(usual: RangeInclusive<u64>) -> RangeInclusive<u64> {
    let Ok(named) = std::env::var("KUBEWIRE_SEED") else { return usual };
    let number = |text: &str| text.parse().expect("KUBEWIRE_SEED is to be a whole number, or two with a dash between");
    let (first, last) = named.split_once('-').unwrap_or((&named, &named));
    number(first)..=number(last)
}

fn play(seed: u64, delivery: Delivery) {
    // Shown only if the test fails.
    println!("KUBEWIRE_SEED={seed} ({delivery:?})");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let server = ApiServer::builder().seed(seed).namespaces_on_demand().start().await.unwrap();
        let client = kube_client::Client::new(server.service(), "default");
        match seed % 2 {
            0 => run(seed, delivery, &server, ListWatch::<Arc<ConfigMap>>::all(client)).await,
            _ => run(seed, delivery, &server, ListWatch::<Packed<ConfigMap>>::all(client)).await,
        }
        server.shut_down();
        drop(server);
        // Whoever has not been told of the end, or waits for something that will never come, is still there.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "tasks are left behind");
    });
}

async fn run<L: ListerWatcher>(seed: u64, delivery: Delivery, server: &ApiServer, list_watch: L) {
    let mut dice = Dice::new(seed);
    let resync = if dice.chance(0.5) { Duration::from_secs(30) } else { Duration::ZERO };
    let options = InformerOptions::new().delivery(delivery).indexers(Indexers::by_namespace()).resync_period(resync);
    let informer = Informer::with_options(list_watch, options).unwrap();
    let workers = Workers::start(&informer, dice.fork());
    let mut crowd = Crowd::new(&informer, delivery == Delivery::InOrder, dice.fork());
    crowd.come();
    for _ in 0..50 {
        writers::write(server, &mut dice);
    }

    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    let writing = writers::start(server, &informer, &stop, &mut dice);
    let trouble = tokio::spawn(trouble::make(server.clone(), dice.fork(), stop.child_token()));
    let end = tokio::time::Instant::now() + TROUBLE;
    while tokio::time::Instant::now() < end {
        tokio::time::sleep(dice.up_to(Duration::from_secs(20))).await;
        crowd.stir().await;
    }

    trouble.abort();
    server.clear_faults();
    server.allow_all();
    let written = writing.stop().await;
    assert!(written > 200, "only {written} changes: this proves nothing");
    let requests = server.requests().len();
    assert!(requests > 40, "only {requests} requests: there was no trouble");
    recover(server, &informer, &workers, &crowd).await;

    check_store(server, &informer.indexer());
    crowd.check(&contents(&informer.indexer()));
    workers.check(&contents(&informer.indexer()));

    workers.stop().await;
    crowd.leave().await;
    stop.cancel();
    running.join().await;
    assert!(informer.is_stopped());
}

/// Waits until the store is what the server has and nothing waits anywhere.
async fn recover<O: Object>(server: &ApiServer, informer: &Informer<O>, workers: &Workers, crowd: &Crowd<O>) {
    let end = tokio::time::Instant::now() + RECOVERY;
    loop {
        let is_right = contents(&informer.indexer()) == served(server);
        if is_right && crowd.is_idle() && workers.is_idle() && informer.status().pending == 0 {
            return;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "not right after {RECOVERY:?}: store right {is_right}, handlers idle {}, workers idle {}, {:#?}\n\
             differences: {:#?}",
            crowd.is_idle(),
            workers.is_idle(),
            informer.status(),
            differences(&contents(&informer.indexer()), &served(server)),
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What there is: the version of each key.
type Contents = BTreeMap<ObjectKey, String>;

fn contents<O: Object>(indexer: &Indexer<O>) -> Contents {
    indexer.list().iter().map(|object| (object.key(), object.id().resource_version.to_owned())).collect()
}

fn served(server: &ApiServer) -> Contents {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |object: serde_json::Value| {
        let meta = &object["metadata"];
        (ObjectKey::new(&text(&meta["namespace"]), &text(&meta["name"])), text(&meta["resourceVersion"]))
    };
    server.list(RESOURCE).into_iter().map(entry).collect()
}

fn differences(one: &Contents, other: &Contents) -> Vec<String> {
    let keys = one.keys().chain(other.keys()).collect::<std::collections::BTreeSet<_>>();
    let differing = keys.into_iter().filter(|key| one.get(key) != other.get(key));
    differing.map(|key| format!("{key}: {:?} and {:?}", one.get(key), other.get(key))).collect()
}

/// The store is what the server has, and its index what an index over it must be.
fn check_store<O: Object>(server: &ApiServer, indexer: &Indexer<O>) {
    let (stored, served) = (contents(indexer), served(server));
    assert_eq!(stored, served);
    indexer.store().validate().expect("the store's invariants");
    let mut namespaces: BTreeMap<&str, Vec<ObjectKey>> = BTreeMap::new();
    for key in served.keys() {
        namespaces.entry(key.namespace()).or_default().push(key.clone());
    }
    let indexed: BTreeMap<String, Vec<ObjectKey>> = indexer
        .list_index_func_values(NAMESPACE_INDEX)
        .iter()
        .map(|namespace| (namespace.to_string(), indexer.index_keys(NAMESPACE_INDEX, namespace).unwrap()))
        .collect();
    let recomputed: BTreeMap<String, Vec<ObjectKey>> =
        namespaces.into_iter().map(|(namespace, keys)| (namespace.to_owned(), keys)).collect();
    assert_eq!(indexed, recomputed);
}
