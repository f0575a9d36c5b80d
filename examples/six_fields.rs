//! Six fields: a cache of pods that keeps what the program reads, and nothing else.
//!
//! A `Pod` takes some 70 kB of memory, these six fields a quarter of one. The rest is skipped in the parser, one
//! pod at a time as its bytes arrive; so a first list takes little more memory than the cache it fills.
//!
//! ```text
//! cargo run --example six_fields
//! ```

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{IndexFunc, Indexers, Meta, Object, ObjectId};
use kubewire_informer::{Informer, InformerOptions, wait_for_cache_sync};
use kubewire_listwatch::ListWatch;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// What is read of a pod: namespace, name, uid and version (an [`ObjectId`]), its node and its phase.
#[derive(Debug, Deserialize, Meta)]
#[kubewire(resource = Pod)] // what to list
struct PodBrief {
    metadata: ObjectId,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Box<str>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server in this process, with realistic pods of 9 kB each.
    let server = ApiServer::builder().pods(1000).start().await?;

    let by_node = Indexers::none().with("node", IndexFunc::one(|pod: &Arc<PodBrief>| &pod.spec.node_name));
    let pods = ListWatch::<Arc<PodBrief>>::all(server.client());
    let informer = Informer::with_options(pods, InformerOptions::new().indexers(by_node))?;
    let indexer = informer.indexer();
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    wait_for_cache_sync(&stop, Duration::from_secs(10), [&informer]).await?;

    let nodes = indexer.list_index_func_values("node");
    println!("{} pods on {} nodes", indexer.len(), nodes.len());
    println!("on {}: {}", nodes[0], indexer.index_keys("node", &nodes[0])?.len());
    anyhow::ensure!(indexer.len() == 1000);

    // A change comes through as with any other representation.
    let pod = indexer.by_index("node", &nodes[0])?.remove(0);
    let (namespace, name) = (pod.id().namespace, pod.id().name);
    let changed = server.modify("pods", namespace, name, |pod| pod["status"]["phase"] = "Failed".into())?;
    informer.wait_for_version(changed["metadata"]["resourceVersion"].as_str().unwrap_or_default()).await?;
    if let Some(now) = indexer.get_by_key(&pod.key()) {
        println!("{} was {} and is {}", now.key(), pod.status.phase, now.status.phase);
        anyhow::ensure!(&*now.status.phase == "Failed");
    }

    stop.cancel();
    running.join().await;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
