//! Zipped: whole pods in a kilobyte each, which are decoded by who needs them.
//!
//! Keys, labels and owners are read as they are; an index by node peeks at one field; the worker decodes the one pod that
//! it looks at, and those that it looks at again come from a small cache of decoded ones.
//!
//! ```text
//! cargo run --release --example zipped
//! ```

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{IndexFunc, Indexers, Object};
use kubewire_informer::{Informer, InformerOptions, ResourceEventHandlerFuncs, wait_for_cache_sync};
use kubewire_listwatch::{HotCache, ItemError, ListWatch, Zipped};
use kubewire_workqueue::Queue;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// What the index reads of a pod.
#[derive(Deserialize)]
struct OnNode {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

fn node(pod: &Zipped<Pod>) -> Result<Option<String>, ItemError> {
    Ok(pod.peek::<OnNode>()?.spec.node_name)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server in this process, with realistic pods of 9 kB each.
    let server = ApiServer::builder().pods(1000).start().await?;

    // The representation is the type: nothing else here is about zipping.
    let pods = ListWatch::<Zipped<Pod>>::all(server.client());
    let indexers = Indexers::by_namespace().with("node", IndexFunc::try_many(node));
    let informer = Informer::with_options(pods, InformerOptions::new().indexers(indexers))?;
    let indexer = informer.indexer();
    let queue = Queue::new();
    let (added, updated, deleted) = (queue.clone(), queue.clone(), queue.clone());
    informer.add_handler(
        ResourceEventHandlerFuncs::<Zipped<Pod>>::new()
            .on_add(move |pod, _| added.add(pod.key()))
            .on_update(move |_, pod| updated.add(pod.key()))
            .on_delete(move |pod| deleted.add(pod.key())),
    )?;
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    wait_for_cache_sync(&stop, Duration::from_secs(30), [&informer]).await?;

    // The worker: a key, then the object, decoded.
    let hot = HotCache::<Zipped<Pod>>::new(100);
    for _ in 0..10 {
        // No other worker gets this key until the guard is dropped.
        let Some(key) = queue.get().await else { break };
        let Some(pod) = indexer.get_by_key(&*key) else { continue };
        let decoded = hot.decode(&pod)?;
        let phase = decoded.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("unknown");
        println!("{} is {phase}", *key);
    }

    let all = indexer.list().to_vec();
    // For the figure: the first list may be there before the dictionary is.
    let first = all[0].clone();
    tokio::task::spawn_blocking(move || first.settle()).await?;
    let bytes: usize = all.iter().map(Zipped::size).sum();
    println!("{} pods in {} bytes each, {:?}", all.len(), bytes / all.len(), hot.counts());
    let on_node = node(&all[0])?.unwrap_or_default();
    println!("on {on_node}: {}", indexer.index_keys("node", &on_node)?.len());
    anyhow::ensure!(all.iter().all(Zipped::is_zipped) && bytes < 1_300 * all.len(), "{bytes}");

    stop.cancel();
    running.join().await;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
