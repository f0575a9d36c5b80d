//! Metadata only: which pods belong to which owner, without ever fetching a pod's spec or status.
//!
//! `PartialObjectMeta<Pod>` makes the lister-watcher ask the server for the metadata alone; nothing else changes.
//!
//! ```text
//! cargo run --example metadata_only
//! ```

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::core::PartialObjectMeta;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{IndexFunc, Indexers, LabelSelector, Lister, Object};
use kubewire_informer::{Informer, InformerOptions, wait_for_cache_sync};
use kubewire_listwatch::ListWatch;
use tokio_util::sync::CancellationToken;

type PodMeta = Arc<PartialObjectMeta<Pod>>;

/// The names of a pod's owners.
fn owners(pod: &PodMeta) -> Vec<String> {
    let references = pod.metadata.owner_references.iter().flatten();
    references.map(|owner| format!("{}/{}", owner.kind, owner.name)).collect()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server in this process, with realistic pods of 9 kB each.
    let server = ApiServer::builder().pods(300).start().await?;

    // Who changed which field when is metadata too, and more than half of it: it is skipped in the parser.
    let pods = ListWatch::<PodMeta>::all(server.client()).drop_managed_fields();
    let by_owner = Indexers::none().with("owner", IndexFunc::many(owners));
    let informer = Informer::with_options(pods, InformerOptions::new().indexers(by_owner))?;

    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    wait_for_cache_sync(&stop, Duration::from_secs(10), [&informer]).await?;

    let indexer = informer.indexer();
    println!("{} pods of {} owners", indexer.len(), indexer.list_index_func_values("owner").len());
    for owner in indexer.list_index_func_values("owner").iter().take(3) {
        println!("{owner}: {} pods", indexer.index_keys("owner", owner)?.len());
    }

    // Selectors work on labels, which are metadata.
    let frontends: LabelSelector = "component in (web,api)".parse()?;
    let pods = Lister::new(indexer.clone(), "pods").namespace("namespace-1").list(&frontends);
    println!("{} pods in namespace-1 are web or api, such as {}", pods.len(), pods[0].key());

    anyhow::ensure!(indexer.len() == 300);
    anyhow::ensure!(indexer.list().iter().all(|pod| pod.metadata.managed_fields.is_none()));

    stop.cancel();
    running.join().await;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
