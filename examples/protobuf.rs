//! Protobuf: the same objects in half the bytes, for the built-in resources.
//!
//! ```text
//! cargo run --example protobuf                          # a server in this process
//! cargo run --example protobuf -- --kubeconfig FILE     # a real one
//! ```
//!
//! The codec is a type parameter of the list-watch: `ProtobufOrJson` takes what the server has, and a `Packed` object
//! is the same to indexer, handlers and listers, whatever its bytes are. Here pods, config maps, nodes and custom
//! resource definitions, and the objects of the first of these, are listed and watched in both codecs; that both show
//! the same is checked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use futures::TryStreamExt;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_client::{Api, Client};
use kubewire_apiserver::ApiServer;
use kubewire_indexer::Object;
use kubewire_listwatch::{
    Codec, ListWatch, ListerWatcher, Packed, ProtobufOrJson, WatchEvent, WatchOptions, client_from_config, list_all,
};

#[derive(Parser)]
struct Args {
    /// Use the cluster of this kubeconfig.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Fail unless the built-in resources come as protobuf.
    #[arg(long)]
    strict: bool,
}

type AnyObject = Packed<DynamicObject>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { kubeconfig, strict } = Args::parse();
    match kubeconfig {
        Some(file) => {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?;
            compare(client_from_config(config)?, strict).await
        }
        None => embedded(strict).await,
    }
}

/// Against a server in this process.
async fn embedded(strict: bool) -> anyhow::Result<()> {
    let server = ApiServer::builder().pods(20).start().await?;
    let map = serde_json::json!({"metadata": {"namespace": "default", "name": "a"}, "data": {"key": "value"}});
    server.create("configmaps", map)?;
    compare(server.client(), strict).await
}

async fn compare(client: Client, strict: bool) -> anyhow::Result<()> {
    println!("{:<40} {:>7} {:>10} {:>14} {:>9}", "resource", "objects", "JSON kB", "asked for both", "protobuf");
    let builtin = [("", "v1", "Pod"), ("", "v1", "ConfigMap"), ("", "v1", "Node")];
    for (group, version, kind) in builtin {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let protobuf = same_in_both(&client, &resource, false).await?;
        same_in_both(&client, &resource, true).await?;
        ensure!(protobuf || !strict, "{kind} came as JSON");
    }
    let definitions =
        ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    if let Ok(found) = Api::<DynamicObject>::all_with(client.clone(), &definitions).list(&Default::default()).await {
        same_in_both(&client, &definitions, false).await?;
        if let Some(custom) = found.items.first().and_then(custom_resource) {
            // Of its objects there is no protobuf; of their metadata there is.
            let protobuf = same_in_both(&client, &custom, false).await?;
            ensure!(!protobuf, "{} came as protobuf", custom.kind);
            same_in_both(&client, &custom, true).await?;
        }
    }
    println!("the same objects in both");
    Ok(())
}

/// The resource that a definition defines.
fn custom_resource(definition: &DynamicObject) -> Option<ApiResource> {
    let spec = &definition.data["spec"];
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let version = text(&spec["versions"][0]["name"])?;
    let kind = GroupVersionKind::gvk(&text(&spec["group"])?, &version, &text(&spec["names"]["kind"])?);
    Some(ApiResource::from_gvk_with_plural(&kind, &text(&spec["names"]["plural"])?))
}

/// Lists and watches in both codecs, checks that the objects are the same, and tells whether they came as protobuf.
async fn same_in_both(client: &Client, resource: &ApiResource, metadata: bool) -> anyhow::Result<bool> {
    let what = format!("{}{}", resource.plural, if metadata { " (metadata)" } else { "" });
    let objects = ListWatch::<AnyObject>::dynamic(client.clone(), resource);
    let json = if metadata { objects.metadata_only() } else { objects };
    let either = json.clone().codec(ProtobufOrJson);
    let (in_json, in_either) = (seen(&json).await?, seen(&either).await?);
    ensure!(facts(&in_json.listed) == facts(&in_either.listed), "the lists of {what} differ");
    ensure!(facts(&in_json.watched) == facts(&in_either.watched), "the watches of {what} differ");
    ensure!(facts(&in_json.watched) == facts(&in_json.listed), "the list and the watch of {what} differ");
    let protobuf = in_either.listed.iter().any(|object| object.protobuf().is_some());
    let mixed = in_either.watched.iter().any(|object| object.protobuf().is_some() != protobuf);
    ensure!(!mixed, "the list and the watch of {what} came in different formats");
    let kb = |objects: &[AnyObject]| objects.iter().map(Packed::size).sum::<usize>() as f64 / 1e3;
    println!(
        "{what:<40} {:>7} {:>10.1} {:>14.1} {protobuf:>9}",
        in_json.listed.len(),
        kb(&in_json.listed),
        kb(&in_either.listed)
    );
    Ok(protobuf)
}

struct Seen {
    listed: Vec<AnyObject>,
    watched: Vec<AnyObject>,
}

/// The objects of a list, and those of a watch that begins with all there is.
async fn seen<C: Codec<AnyObject>>(lister: &ListWatch<AnyObject, C>) -> anyhow::Result<Seen> {
    let (listed, _) = list_all(lister).await?;
    let mut watched = Vec::new();
    let mut events = lister.watch(&WatchOptions::streaming_list("", Duration::from_secs(30))).await?;
    while let Some(event) = events.try_next().await.context("the watch failed")? {
        match event {
            WatchEvent::Added(object) => watched.push(object),
            WatchEvent::Bookmark { initial_events_end: true, .. } => break,
            other => anyhow::bail!("unexpected: {other:?}"),
        }
    }
    Ok(Seen { listed, watched })
}

/// All that a packed object notes of itself, of all of them.
fn facts(objects: &[AnyObject]) -> BTreeSet<String> {
    let fact = |object: &AnyObject| {
        let labels: Vec<_> = object.labels().collect();
        let owners: Vec<_> = object.owner_references().collect();
        format!("{:?} {labels:?} {owners:?} {:?} {}", object.id(), object.generation(), object.is_being_deleted())
    };
    objects.iter().map(fact).collect()
}

#[test]
fn it_runs() {
    tokio::runtime::Runtime::new().unwrap().block_on(embedded(true)).unwrap();
}
