//! kube's own `Api` and `watcher`, in process and over the port.

use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube_client::{Client, Config};
use kube_runtime::watcher;
use kubewire_apiserver::ApiServer;
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).unwrap()
}

async fn with_port() -> (ApiServer, Client) {
    let server = ApiServer::builder().port(0).start().await.unwrap();
    let mut config = Config::new(server.url().unwrap().parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    (server, client)
}

async fn writes_and_reads(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let created = maps.create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
    let error = maps.create(&PostParams::default(), &config_map("one")).await.unwrap_err();
    assert!(matches!(error, kube_client::Error::Api(status) if status.is_already_exists()));

    let mut changed = created.clone();
    changed.data.as_mut().unwrap().insert("b".to_owned(), "2".to_owned());
    let changed = maps.replace("one", &PostParams::default(), &changed).await.unwrap();
    let error = maps.replace("one", &PostParams::default(), &created).await.unwrap_err();
    assert!(matches!(error, kube_client::Error::Api(status) if status.is_conflict()));
    let patch = Patch::Merge(json!({"data": {"a": null, "c": "3"}}));
    let patched = maps.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(
        patched.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("b".into(), "2".into()), ("c".into(), "3".into())]
    );
    assert_eq!(patched.metadata.uid, changed.metadata.uid);
    assert_ne!(patched.metadata.resource_version, changed.metadata.resource_version);

    for name in ["two", "three"] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    let names = |list: &[ConfigMap]| list.iter().map(|map| map.metadata.name.clone().unwrap()).collect::<Vec<_>>();
    assert_eq!(names(&page.items), ["one", "three"]);
    assert_eq!(page.metadata.remaining_item_count, Some(1));
    let rest = ListParams::default().limit(2).continue_token(&page.metadata.continue_.unwrap());
    assert_eq!(names(&maps.list(&rest).await.unwrap().items), ["two"]);

    let watch = maps.watch(&WatchParams::default().timeout(1), &page.metadata.resource_version.unwrap()).await.unwrap();
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("four")).await.unwrap();
    let events: Vec<WatchEvent<ConfigMap>> = watch.try_collect().await.unwrap();
    assert!(
        matches!(&events[0], WatchEvent::Deleted(map) if map.metadata.name.as_deref() == Some("one")),
        "{events:?}"
    );
    assert!(matches!(&events[1], WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("four")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn kube_writes_reads_and_watches_in_process() {
    let server = ApiServer::start().await;
    writes_and_reads(Client::new(server.service(), "default")).await;
}

#[tokio::test]
async fn kube_writes_reads_and_watches_over_the_port() {
    let (_server, client) = with_port().await;
    writes_and_reads(client).await;
}

async fn watcher_sees_all(server: &ApiServer, client: Client, config: watcher::Config) {
    let pod = |name: &str| json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": []}});
    server.create("pods", pod("a")).unwrap();
    let stream = watcher(Api::<Pod>::all(client), config);
    let mut stream = std::pin::pin!(stream);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last: &String| last != "deleted b") {
        let event = tokio::time::timeout(Duration::from_secs(20), stream.try_next()).await.expect("an event in time");
        match event.unwrap().unwrap() {
            watcher::Event::Init => seen.push("init".to_owned()),
            watcher::Event::InitApply(pod) => seen.push(format!("initial {}", pod.metadata.name.unwrap())),
            watcher::Event::InitDone => {
                seen.push("done".to_owned());
                server.create("pods", pod("b")).unwrap();
                server.delete("pods", "default", "b").unwrap();
            }
            watcher::Event::Apply(pod) => seen.push(format!("applied {}", pod.metadata.name.unwrap())),
            watcher::Event::Delete(pod) => seen.push(format!("deleted {}", pod.metadata.name.unwrap())),
        }
    }
    assert_eq!(seen, ["init", "initial a", "done", "applied b", "deleted b"]);
}

#[tokio::test]
async fn kube_watcher_sees_all_changes_in_process_and_over_the_port_by_list_and_by_streaming_list() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = ApiServer::start().await;
        watcher_sees_all(&server, Client::new(server.service(), "default"), config.clone()).await;
        let (server, client) = with_port().await;
        watcher_sees_all(&server, client, config).await;
    }
}
