//! From the cache or from the server.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_core::metadata::PartialObjectMeta;
use kubewire_apiserver::{ApiServer, Matching, Verb};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{CacheOptions, Cluster, TypeOptions};

type Config = Arc<ConfigMap>;

async fn server() -> ApiServer {
    let server = ApiServer::start().await;
    for name in ["a", "b"] {
        server.create("configmaps", json!({"metadata": {"namespace": "default", "name": name}})).unwrap();
    }
    server
}

fn asked(server: &ApiServer, verb: Verb) -> usize {
    server.requests().iter().filter(|request| request.verb == Some(verb)).count()
}

#[tokio::test(start_paused = true)]
async fn a_live_reader_asks_the_server_in_any_representation() {
    let server = ApiServer::builder().pods(1).start().await.unwrap();
    server
        .create("configmaps", json!({"metadata": {"namespace": "default", "name": "a", "labels": {"x": "1"}}}))
        .unwrap();
    let live = Cluster::new("c", server.client()).live_reader();
    assert!(live.get::<Config>("default", "a").await.unwrap().is_some());
    assert!(live.get::<Config>("default", "nope").await.unwrap().is_none());
    let brief = live.get::<Arc<PartialObjectMeta<ConfigMap>>>("default", "a").await.unwrap().unwrap();
    assert_eq!(brief.metadata.name.as_deref(), Some("a"));
    let selected = ListQuery::all().labels("x=1".parse().unwrap());
    assert_eq!(live.list::<Config>(&selected).await.unwrap().len(), 1);
    let nodes = live.list::<Arc<Node>>(&ListQuery::all().limit(1)).await.unwrap();
    let name = nodes[0].metadata.name.clone().unwrap();
    assert!(live.get::<Arc<Node>>("default", &name).await.unwrap().is_some());
    assert_eq!(asked(&server, Verb::Watch), 0);
    let error = live.list::<Config>(&ListQuery::all().by_index("x", "y")).await.unwrap_err();
    assert!(matches!(error, ReadError::IndexOfServer { .. }), "{error}");
    server.forbid(Matching::any().resource("configmaps"));
    let error = live.get::<Config>("default", "a").await.unwrap_err();
    assert!(matches!(error, ReadError::Server(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cached_reader_reads_what_is_watched_and_refuses_the_rest() {
    let server = server().await;
    let cluster = Cluster::new("c", server.client());
    cluster.cache().watch::<Config>().unwrap();
    let reader = cluster.reader();
    let error = reader.get::<Config>("default", "a").await.unwrap_err();
    assert!(matches!(error, ReadError::NotStarted { .. }), "{error}");
    cluster.cache().start(&CancellationToken::new());
    assert!(reader.get::<Config>("default", "a").await.unwrap().is_some(), "it waits for the first list");
    assert_eq!(reader.list::<Config>(&ListQuery::all()).await.unwrap().len(), 2);
    let error = reader.get::<Arc<Node>>("", "n1").await.unwrap_err();
    assert!(matches!(error, ReadError::NotWatched { .. }), "{error}");
    assert_eq!(asked(&server, Verb::Get), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_cache_that_cannot_sync_waits_as_long_as_its_caller() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let cluster = Cluster::new("c", server.client());
    cluster.cache().watch::<Config>().unwrap();
    cluster.cache().start(&CancellationToken::new());
    let reader = cluster.reader();
    let read = tokio::time::timeout(Duration::from_secs(5), reader.get::<Config>("default", "a"));
    assert!(read.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn by_choice_a_read_watches_the_type_and_however_many_read_it_is_listed_once() {
    let server = server().await;
    let options = CacheOptions::new().unwatched(Unwatched::Watch);
    let cluster = Cluster::with_cache("c", server.client(), options);
    cluster.cache().start(&CancellationToken::new());
    let reader = cluster.reader();
    let reads = join_all((0..100).map(|_| reader.get::<Config>("default", "a"))).await;
    assert!(reads.into_iter().all(|read| read.unwrap().is_some()));
    assert_eq!(asked(&server, Verb::List) + asked(&server, Verb::Watch), 1, "one streaming list");
}

#[tokio::test(start_paused = true)]
async fn by_choice_unwatched_types_or_one_type_are_read_from_the_server() {
    let server = server().await;
    let options = CacheOptions::new().unwatched(Unwatched::Live).of(TypeOptions::<Config>::new().live());
    let cluster = Cluster::with_cache("c", server.client(), options);
    cluster.cache().watch::<Config>().unwrap();
    cluster.cache().start(&CancellationToken::new());
    let reader = cluster.reader();
    assert!(reader.get::<Config>("default", "a").await.unwrap().is_some());
    assert!(reader.get::<Arc<Node>>("", "nope").await.unwrap().is_none());
    assert_eq!(asked(&server, Verb::Get), 2);
}
