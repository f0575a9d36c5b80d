//! Zipped objects the whole way of an informer, against the embedded server: lists and streaming lists, relists, handlers,
//! listers, an index function that peeks, tombstones, the factory; and objects that are decoded once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Deleted, IndexFunc, Indexers, Object, ObjectKey};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{
    FactoryOptions, Informer, InformerOptions, Notification, ResourceEventHandler, ResourceEventHandlerFuncs,
    SharedInformerFactory,
};
use kubewire_listwatch::{Encoded, HotCache, ListWatch, Zipped};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// More than a dictionary is learned from.
const PODS: usize = 700;

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnNode {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

/// The value of an index, whatever the bytes are kept as.
fn node<O: Encoded>(pod: &O) -> [String; 1] {
    [pod.peek::<OnNode>().unwrap_or_default().spec.node_name]
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Notification<Zipped<Pod>>>>>);

impl ResourceEventHandler<Zipped<Pod>> for Recorder {
    fn on_add(&mut self, object: Zipped<Pod>, is_in_initial_list: bool) {
        self.0.lock().push(Notification::Added { object, is_in_initial_list });
    }

    fn on_update(&mut self, old: Zipped<Pod>, new: Zipped<Pod>) {
        self.0.lock().push(Notification::Updated { old, new });
    }

    fn on_delete(&mut self, deleted: Deleted<Zipped<Pod>>) {
        self.0.lock().push(Notification::Deleted(deleted));
    }
}

impl Recorder {
    fn take(&self) -> Vec<Notification<Zipped<Pod>>> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn pods(server: &ApiServer) -> ListWatch<Zipped<Pod>> {
    ListWatch::all(Client::new(server.service(), "default"))
}

fn options(streaming: bool) -> InformerOptions<Zipped<Pod>> {
    InformerOptions::new()
        .indexers(Indexers::by_namespace().with("node", IndexFunc::many(node::<Zipped<Pod>>)))
        .reflector(ReflectorOptions::new().watch_list(streaming))
}

/// What the server has, as a cache of its objects should have it.
fn assert_same(server: &ApiServer, informer: &Informer<Zipped<Pod>>) {
    let cached: BTreeMap<_, _> = informer.indexer().list().into_iter().map(|pod| (pod.key(), pod)).collect();
    let served = server.list("pods");
    assert_eq!(cached.len(), served.len());
    for mut object in served {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let key = ObjectKey::new(&text(&metadata["namespace"]), &text(&metadata["name"]));
        let pod = &cached[&key];
        assert_eq!(pod.id().resource_version, text(&metadata["resourceVersion"]));
        let mut zipped: Value = pod.peek().unwrap();
        for object in [&mut object, &mut zipped] {
            // Items of a list do not say what they are, managedFields are cut.
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
            object.as_object_mut().unwrap().retain(|name, _| !["kind", "apiVersion"].contains(&name.as_str()));
        }
        assert_eq!(zipped, object);
    }
}

/// Lets everything happen that is under way.
async fn quiet() {
    // Time goes on when nothing else is left to do.
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn zipped_objects_are_cached_indexed_handed_on_and_buried_as_any_other() {
    for streaming in [false, true] {
        let server = ApiServer::builder().pods(PODS).start().await.unwrap();
        let informer = Informer::with_options(pods(&server), options(streaming)).unwrap();
        let recorder = Recorder::default();
        informer.add_handler(recorder.clone()).unwrap();
        let running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        quiet().await;
        let indexer = informer.indexer();
        let first = indexer.list().to_vec();
        first[0].settle();
        assert!(first.iter().all(Zipped::is_zipped), "streaming: {streaming}");
        assert_same(&server, &informer);
        let told = recorder.take();
        assert_eq!(told.len(), PODS);
        assert!(told.iter().all(|told| matches!(told, Notification::Added { is_in_initial_list: true, .. })));
        drop(told);

        // An index by what is not noted, a lister, a label.
        let on_node = indexer.index_keys("node", &node(&first[0])[0]).unwrap();
        assert!(on_node.contains(&first[0].key()) && on_node.len() > 1);
        let in_namespace = indexer.by_index("namespace", first[0].id().namespace).unwrap();
        assert!(
            in_namespace.iter().all(|pod| pod.id().namespace == first[0].id().namespace && pod.label("app").is_some())
        );

        // A change is zipped as it comes.
        let key = first[0].key();
        let (namespace, name) = (first[0].id().namespace, first[0].id().name);
        server.modify("pods", namespace, name, |pod| pod["spec"]["nodeName"] = "elsewhere".into()).unwrap();
        quiet().await;
        let Some(Notification::Updated { old, new }) = recorder.take().pop() else { panic!("an update") };
        assert!(old.is_zipped() && new.is_zipped());
        assert_eq!((node(&old), node(&new)), (node(&first[0]), ["elsewhere".to_owned()]));
        assert_eq!(indexer.index_keys("node", "elsewhere").unwrap(), std::slice::from_ref(&key));

        // A deletion that is seen, and one that a later list shows.
        server.delete("pods", namespace, name).unwrap();
        finish_deletion(&server, namespace, name);
        quiet().await;
        let told = recorder.take();
        let Some(Notification::Deleted(Deleted::Known(last))) = told.last() else { panic!("a deletion: {told:?}") };
        assert_eq!(last.decode().unwrap().spec.unwrap().node_name.as_deref(), Some("elsewhere"));
        let before: BTreeMap<_, _> = indexer.list().into_iter().map(|pod| (pod.key(), pod)).collect();
        let gone = before.values().next().unwrap();
        relist(&server, &informer, || finish_deletion(&server, gone.id().namespace, gone.id().name)).await;
        let told = recorder.take();
        let tombstones: Vec<_> = told
            .iter()
            .filter_map(|told| match told {
                Notification::Deleted(Deleted::FinalStateUnknown { key, last }) => Some((key, last.as_ref().unwrap())),
                _ => None,
            })
            .collect();
        let [(key, last)] = tombstones[..] else { panic!("one tombstone: {told:?}") };
        assert_eq!((&**key, last.decode().unwrap()), (&gone.key(), gone.decode().unwrap()));

        // What has not changed was neither read nor zipped again.
        let after = indexer.list().to_vec();
        assert_eq!(after.len(), PODS - 2);
        for pod in &after {
            assert!(std::ptr::eq(pod.id().name, before[&pod.key()].id().name), "another handle of {}", pod.key());
        }
        assert_same(&server, &informer);
        running.stop();
        running.join().await;
    }
}

/// Deletes a pod at once: one on a node would stay for its grace period.
fn finish_deletion(server: &ApiServer, namespace: &str, name: &str) {
    if server.get("pods", namespace, name).is_some() {
        server.modify("pods", namespace, name, |pod| pod["spec"]["nodeName"] = Value::Null).unwrap();
        let _ = server.delete("pods", namespace, name);
    }
}

/// Makes the informer list again, after changes that it sees by that list alone.
async fn relist(server: &ApiServer, informer: &Informer<Zipped<Pod>>, change: impl FnOnce()) {
    server.close_watches();
    change();
    server.skip_resource_versions(10);
    // A version of its own, that the list is at.
    server.create("configmaps", json!({"metadata": {"name": "c", "namespace": "default"}})).unwrap();
    server.compact();
    let version = server.resource_version().to_string();
    quiet().await;
    quiet().await;
    assert_eq!(informer.last_sync_resource_version(), version, "it has listed");
}

#[tokio::test(start_paused = true)]
async fn the_factory_shares_an_informer_of_zipped_objects_and_a_resync_tells_of_them() {
    let server = ApiServer::builder().pods(PODS).start().await.unwrap();
    let factory = SharedInformerFactory::new(FactoryOptions::new().resync_period(Duration::from_secs(300)));
    let list = |namespace: &str| pods(&server).in_namespace(namespace);
    let informer = factory.informer(list);
    let same = factory.informer(list);
    let resynced = Arc::new(Mutex::new(BTreeMap::<ObjectKey, usize>::new()));
    let counted = Arc::clone(&resynced);
    same.add_handler(ResourceEventHandlerFuncs::<Zipped<Pod>>::new().on_update(move |old, new| {
        assert_eq!(old.id(), new.id());
        *counted.lock().entry(new.key()).or_default() += 1;
    }))
    .unwrap();
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, Duration::from_secs(60)).await.unwrap();
    let pod = informer.indexer().list().to_vec().remove(0);
    pod.settle();
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(resynced.lock().len(), PODS);
    assert!(same.indexer().list().iter().all(Zipped::is_zipped), "one cache, zipped");

    // Decoded once for all who ask for the same state.
    let hot = HotCache::new(10);
    let first = hot.decode(&pod).unwrap();
    let cached = same.indexer().get_by_key(&pod.key()).unwrap();
    assert!(Arc::ptr_eq(&first, &hot.decode(&cached).unwrap()));
    assert_eq!(first.metadata.name.as_deref(), Some(pod.id().name));
    factory.shut_down().await;
    drop((factory, informer, same, cached));
    // The last one has all that it takes to be read.
    assert_eq!(pod.decode().unwrap(), *first);
}
