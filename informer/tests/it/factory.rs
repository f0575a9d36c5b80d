//! The factory: one informer for each type and scope.

use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{Id, IndexFunc, Indexers, LabelSelector, Meta, Object};
use kubewire_informer::{FactoryOptions, InformerOptions, NamespacedInformers, SharedInformerFactory};
use kubewire_listwatch::{
    ErrorClass, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream,
};
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Form, PodRef, Source, edited, key, options, settle};

struct Node;

impl Meta for Node {
    fn id(&self) -> Id<'_> {
        Id::new("", "n1").uid("u1").resource_version("1")
    }
}

/// A server with one node.
struct Nodes;

impl ListerWatcher for Nodes {
    type Object = Arc<Node>;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Node>>) -> Result<ListMeta, RequestError> {
        each(Ok(Arc::new(Node)));
        Ok(ListMeta::new("1"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Node>>, RequestError> {
        Ok(Box::pin(futures::stream::pending()))
    }

    fn resource(&self) -> String {
        "nodes".to_owned()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_lister_of_one_namespace_has_the_index_that_it_needs() {
    let source = Source::new();
    source.put("ns/a", "1");
    source.put("other/b", "1");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let pods = factory.informer(|_| source);
    let lister = pods.lister();
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();

    let everything = LabelSelector::everything();
    assert_eq!(lister.list(&everything).len(), 2);
    assert_eq!(lister.namespace("ns").list(&everything).len(), 1);
    assert_eq!(pods.indexer().index_keys("namespace", "ns").unwrap(), [key("ns/a")]);
    let missing = lister.namespace("ns").require("b").unwrap_err();
    assert_eq!((missing.resource.as_str(), missing.key), (pods.resource(), key("ns/b")));
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn each_type_and_scope_has_one_informer_that_is_started_once() {
    let (source, other) = (Source::new(), Source::new());
    source.put("ns/a", "1");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let pods = factory.informer(|_| source.clone());
    let same = factory.informer(|_| other.clone());
    let log = Recorder::new();
    same.add_handler(log.clone()).unwrap();
    let nodes = factory.informer(|_| Nodes);
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    settle().await;
    assert_eq!(source.requests(), (1, 1));
    assert_eq!(pods.indexer().len() + nodes.indexer().len(), 2);
    assert_eq!(log.take(), ["+ns/a@1!"]);

    let late = factory.informer_in("ns", |namespace| {
        assert_eq!(namespace, "ns");
        other.clone()
    });
    settle().await;
    assert_eq!(other.requests(), (0, 0), "what is made after a start needs another one");
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    let synced: Vec<_> = factory.synced().into_iter().collect();
    assert_eq!(synced, [("nodes".to_owned(), true), ("pods".to_owned(), true), ("pods in ns".to_owned(), true)]);

    factory.shut_down().await;
    assert!(pods.is_stopped() && nodes.is_stopped() && late.is_stopped());
    factory.informer_named("app=web", || other.clone());
    factory.start(&stop);
    settle().await;
    assert_eq!(other.requests(), (1, 1), "nothing starts after the shut-down");
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn two_resources_of_one_type_have_an_informer_each() {
    struct Named(&'static str, Source);
    impl ListerWatcher for Named {
        type Object = <Source as ListerWatcher>::Object;
        async fn list(
            &self,
            options: &ListOptions,
            each: ItemSink<'_, Self::Object>,
        ) -> Result<ListMeta, RequestError> {
            self.1.list(options, each).await
        }
        async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<Self::Object>, RequestError> {
            self.1.watch(options).await
        }
        fn resource(&self) -> String {
            self.0.to_owned()
        }
    }
    let (mills, looms) = (Source::new(), Source::new());
    mills.put("ns/a", "1");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let mills = factory.informer(|_| Named("example.com/v1 mills", mills.clone()));
    let looms = factory.informer(|_| Named("example.com/v1 looms", looms.clone()));
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    assert_eq!((mills.indexer().len(), looms.indexer().len()), (1, 0));
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn settings_of_one_type_are_for_its_informers_alone() {
    let source = Source::new();
    source.put("ns/a", "1");
    let options = FactoryOptions::new()
        .namespace("ns")
        .resync_period(MINUTE)
        .resync_period_of::<PodRef>(Duration::from_secs(1))
        .transform(|pod: PodRef| Ok::<_, std::convert::Infallible>(edited(&pod, |pod| pod.note = "made".to_owned())));
    let factory = SharedInformerFactory::new(options);
    let pods = factory.informer(|namespace| {
        assert_eq!(namespace, "ns");
        source.clone()
    });
    let nodes = factory.informer(|_| Nodes);
    let log = Recorder::new();
    let hears_of_pods = pods.add_handler(log.clone()).unwrap();
    let hears_of_nodes = nodes.subscribe().unwrap();
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    settle().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(hears_of_pods.status().told, 11);
    assert_eq!(hears_of_nodes.registration().backlog(), 1);
    assert_eq!(pods.indexer().list().to_vec()[0].read().note, "made");
    stop.cancel();
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_names_what_fails() {
    let source = Source::new();
    source.fail_always(ErrorClass::NotFound, "no such resource");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    factory.informer(|_| source.clone());
    factory.informer(|_| Nodes);
    let stop = CancellationToken::new();
    factory.start(&stop);
    let error = factory.wait_for_cache_sync(&stop, Duration::from_millis(1)).await.unwrap_err();
    assert!(error.to_string().contains("pods: cannot list: not_found: no such resource (1 try)"), "{error}");
    factory.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_are_read_as_one_store() {
    let sources = [("red", Source::new()), ("blue", Source::new())];
    sources[0].1.put("red/a", "x");
    sources[1].1.put("blue/b", "x");
    let source = |namespace: &str| sources.iter().find(|(name, _)| *name == namespace).unwrap().1.clone();
    let informers = NamespacedInformers::new(["red", "blue", "red"], source, |_| options()).unwrap();
    assert_eq!(informers.informers().count(), 2);
    let log = Recorder::new();
    let registrations = informers.add_handlers(|_| log.clone()).unwrap();
    let stop = CancellationToken::new();
    let running = informers.start(&stop);
    informers.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    for registration in &registrations {
        registration.synced().await.unwrap();
    }
    assert!(informers.has_synced());
    assert_eq!(log.take_sorted(), ["+blue/b@1!", "+red/a@1!"]);
    assert_eq!(informers.list().len(), 2);
    assert_eq!(informers.by_index("note", "x").unwrap().len(), 2);
    assert!(informers.by_index("none", "x").is_err());
    assert_eq!(informers.get_by_key(&key("blue/b")).unwrap().id().name, "b");
    assert!(informers.get_by_key(&key("green/b")).is_none() && informers.informer("green").is_none());
    stop.cancel();
    for informer in running {
        informer.join().await;
    }
    assert_eq!(informers.informer("red").unwrap().resource(), "pods in red");
}

#[test]
fn where_one_of_several_namespaces_has_stopped_no_handler_is_left_behind() {
    let informers = NamespacedInformers::new(["red", "blue"], |_| Source::new(), |_| options()).unwrap();
    informers.informer("blue").unwrap().stop();
    assert!(informers.add_handlers(|_| Recorder::new()).is_err());
    assert!(informers.informer("red").unwrap().status().handlers.is_empty(), "nobody could ever remove it");
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_options_of_its_own_is_found_again_and_once_removed_made_anew() {
    let source = Source::new();
    source.put("ns/a", "1");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let by_name = || InformerOptions::new().indexers(Indexers::none().with("name", IndexFunc::name()));
    let pods = factory.informer_with("web", || source.clone(), by_name()).unwrap();
    let again = factory.informer_with("web", || source.clone(), by_name()).unwrap();
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    assert_eq!(again.indexer().by_index("name", "a").unwrap().len(), 1, "they are one");

    let other = factory.informer_with("db", || source.clone(), by_name()).unwrap();
    assert!(factory.holds(&pods) && factory.holds(&other));
    assert!(factory.remove(&pods));
    assert!(!factory.holds(&pods) && factory.holds(&other));
    assert_eq!(factory.remove_all(&[pods.clone(), other]), 1, "the first is gone already");
    assert!(!factory.remove(&pods), "it is gone");
    settle().await;
    assert!(pods.is_stopped());
    source.put("ns/b", "2");
    let anew = factory.informer_with("web", || source.clone(), by_name()).unwrap();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    assert_eq!((anew.indexer().len(), pods.indexer().len()), (2, 1));
    factory.shut_down().await;
    assert!(anew.is_stopped());

    let twice = Indexers::none().with("x", IndexFunc::name()).with("x", IndexFunc::name());
    assert!(factory.informer_with("x", || source.clone(), InformerOptions::new().indexers(twice)).is_err());
}
