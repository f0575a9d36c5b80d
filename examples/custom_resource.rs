//! A custom resource: a struct of one's own, cached and watched.
//!
//! The struct names the fields that the program reads; what to list is told by an `ApiResource`. (Types made by
//! kube's `#[derive(CustomResource)]` work as `Arc<Pod>` does, with `ListWatch::<Arc<Mill>>::all(client)`.)
//!
//! ```text
//! cargo run --example custom_resource
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube_client::core::{ApiResource, GroupVersionKind};
use kubewire_apiserver::{ApiServer, Resource};
use kubewire_indexer::{Meta, Object, ObjectId};
use kubewire_informer::{Informer, Notification, wait_for_cache_sync};
use kubewire_listwatch::ListWatch;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Deserialize, Meta)]
struct Mill {
    metadata: ObjectId,
    spec: MillSpec,
}

#[derive(Debug, Deserialize)]
struct MillSpec {
    sails: u8,
}

fn mill(name: &str, sails: u8) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Mill",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"sails": sails, "colour": "what nobody here reads"},
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server in this process; a real cluster has a CustomResourceDefinition instead.
    let definition = Resource::custom("example.com", "v1", "Mill", "mills");
    let mills = definition.name();
    let server = ApiServer::builder().custom_resource(definition).start().await?;
    server.create(&mills, mill("north", 4))?;

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Mill"));
    let list_watch = ListWatch::<Arc<Mill>>::for_resource(server.client(), &resource).in_namespace("default");
    let informer = Informer::new(list_watch);

    // A handler as a stream: the store goes on whether anybody looks or not.
    let mut changes = informer.subscribe()?;
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    wait_for_cache_sync(&stop, Duration::from_secs(10), [&informer]).await?;

    server.create(&mills, mill("south", 6))?;
    server.modify(&mills, "default", "north", |mill| mill["spec"]["sails"] = json!(3))?;
    server.delete(&mills, "default", "south")?;

    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(match changes.next().await {
            Some(Notification::Added { object, .. }) => format!("{} has {} sails", object.key(), object.spec.sails),
            Some(Notification::Updated { old, new }) => {
                format!("{} had {} sails and has {}", new.key(), old.spec.sails, new.spec.sails)
            }
            Some(Notification::Deleted(deleted)) => format!("{} is gone", deleted.key()),
            Some(_) => continue,
            None => break,
        });
        println!("{}", told[told.len() - 1]);
    }
    anyhow::ensure!(told[0] == "default/north has 4 sails" && told.len() == 4);
    anyhow::ensure!(informer.indexer().list_keys().iter().map(ToString::to_string).eq(["default/north"]));

    stop.cancel();
    running.join().await;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
