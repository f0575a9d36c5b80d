//! What a list costs somebody who holds nothing, and what it costs somebody who holds most of it: objects decoded, and
//! memory as the allocator counts it, of this whole process. Against the embedded server, by lists and by streaming lists.
//!
//! What is decoded is counted over every representation, memory over packed objects: what others hold beside their
//! bytes is their own.

#[macro_use]
#[path = "../common/forms.rs"]
#[expect(dead_code, reason = "objects come from a server here")]
mod forms;
#[path = "../../../../indexer/tests/it/record.rs"]
#[expect(dead_code, reason = "objects come from a server here")]
mod record;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_core::ApiResource;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Id, IndexFunc, Indexers, Object, ObjectKey};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions, RunningInformer};
use kubewire_listwatch::{Codec, Decode, DecodeOptions, ItemError, ListWatch};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use forms::{PackedJson, Served};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The tests of this binary go one by one: they measure the whole process.
static ALONE: Semaphore = Semaphore::const_new(1);

/// How many objects were decoded.
static DECODED: AtomicUsize = AtomicUsize::new(0);

const PODS: usize = 6_000;
const PAD: usize = 3_000;
/// What a list may hold for each object beside it: its key, and its place in the list, in the queue and in the next tables.
const PER_OBJECT: usize = 200;
/// What it may hold whatever its length: pieces of the body, batches, and those of the server within this process.
const FIXED: usize = 5 << 20;

/// A pod that counts how often one is decoded.
#[derive(Clone)]
struct Counted<O>(Arc<O>);

impl<O: Object> Object for Counted<O> {
    fn id(&self) -> Id<'_> {
        self.0.id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.0.label(name)
    }
}

impl<F, O: Decode<F>> Decode<F> for Counted<O> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        O::decode(item, options).map(|pod| Self(Arc::new(pod)))
    }
}

fn pod(name: &str, app: &str, pad: usize) -> Value {
    let metadata =
        json!({"name": name, "namespace": "default", "labels": {"app": app}, "annotations": {"pad": "p".repeat(pad)}});
    json!({"metadata": metadata, "spec": {"containers": []}})
}

struct Run<O: Object> {
    server: ApiServer,
    informer: Informer<Counted<O>>,
    _running: RunningInformer,
    /// What is in use once it has synced, and the peak on the way there, beyond what was in use before.
    store: usize,
    peak: usize,
}

impl<O: Served<Codec: Codec<Counted<O>> + Default>> Run<O> {
    async fn new(streaming: bool, pods: usize, pad: usize) -> Self {
        let server = ApiServer::start().await;
        for n in 0..pods {
            server.create("pods", pod(&format!("p{n}"), "old", pad)).unwrap();
        }
        let client = Client::new(server.service(), "default");
        let list_watch = ListWatch::<Counted<O>>::for_resource(client, &ApiResource::erase::<Pod>(&()));
        let list_watch = list_watch.codec(O::Codec::default());
        let app = IndexFunc::one(|pod: &Counted<O>| pod.label("app").unwrap_or_default());
        let options = InformerOptions::new()
            .indexers(Indexers::by_namespace().with("app", app))
            .reflector(ReflectorOptions::new().watch_list(streaming));
        let informer = Informer::with_options(list_watch, options).unwrap();
        DECODED.store(0, Ordering::Relaxed);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        let peak = MEMORY.peak_usage().saturating_sub(before);
        // What was used on the way is given back by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let store = MEMORY.current_usage().saturating_sub(before);
        Self { server, informer, _running: running, store, peak }
    }

    /// Makes the informer list again, after changes that it sees by that list alone. Gives the peak of memory beyond what
    /// was in use before.
    async fn relist(&self, change: impl FnOnce(&ApiServer)) -> usize {
        DECODED.store(0, Ordering::Relaxed);
        let before = MEMORY.current_usage();
        self.server.close_watches();
        change(&self.server);
        self.server.skip_resource_versions(10);
        // A version of its own, that the list is at.
        self.server.create("configmaps", json!({"metadata": {"name": "c", "namespace": "default"}})).unwrap();
        self.server.compact();
        MEMORY.reset_peak_usage();
        let version = self.server.resource_version().to_string();
        for _ in 0..600 {
            // Time goes on when nothing else is left to do.
            tokio::time::sleep(Duration::from_secs(1)).await;
            if self.informer.last_sync_resource_version() == version {
                break;
            }
        }
        assert_eq!(self.informer.last_sync_resource_version(), version, "it has listed");
        MEMORY.peak_usage().saturating_sub(before)
    }

    /// Gives back all that it holds.
    async fn end(self) {
        self.informer.stop();
        drop(self);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    fn handles(&self) -> Vec<Counted<O>> {
        let mut handles = self.informer.indexer().list().to_vec();
        handles.sort_by_key(Object::key);
        handles
    }
}

fn same<O>(a: &Counted<O>, b: &Counted<O>) -> bool {
    Arc::ptr_eq(&a.0, &b.0)
}

#[tokio::test(start_paused = true)]
async fn a_list_holds_its_result_and_little_more_and_a_relist_no_second_copy() {
    let _alone = ALONE.acquire().await;
    for streaming in [false, true] {
        let run = Run::<PackedJson>::new(streaming, PODS, PAD).await;
        assert_eq!(DECODED.load(Ordering::Relaxed), PODS);
        let (store, peak) = (run.store, run.peak);
        println!("streaming: {streaming}, store: {store}, peak of the first list: {peak}");
        assert!(store > PODS * PAD, "{store}");
        assert!(peak < store + PODS * PER_OBJECT + FIXED, "{peak} for {store}");

        let before = run.handles();
        let peak = run.relist(|_| {}).await;
        println!("streaming: {streaming}, peak of a relist beyond the store: {peak}");
        assert!(peak < PODS * PER_OBJECT + FIXED, "{peak}");
        assert_eq!(DECODED.load(Ordering::Relaxed), 0, "streaming: {streaming}");
        assert!(before.iter().zip(run.handles()).all(|(before, after)| same(before, &after)));
        drop(before);
        run.end().await;
    }
}

/// In each representation, one by one.
macro_rules! one_by_one {
    ([$check:ident] $($name:ident: $object:ty;)+) => {
        $($check::<$object>(stringify!($name)).await;)+
    };
}

#[tokio::test(start_paused = true)]
async fn of_a_relist_only_what_is_not_cached_is_decoded() {
    let _alone = ALONE.acquire().await;
    with_forms!(one_by_one decodes_what_is_not_cached);
}

async fn decodes_what_is_not_cached<O: Served<Codec: Codec<Counted<O>> + Default>>(form: &str) {
    for streaming in [false, true] {
        let run = Run::<O>::new(streaming, 600, 100).await;
        let before = run.handles();
        run.relist(|server| {
            for n in [1, 500, 599] {
                let change = |pod: &mut Value| pod["metadata"]["labels"]["app"] = "new".into();
                server.modify("pods", "default", &format!("p{n}"), change).unwrap();
            }
            for n in [2, 501] {
                server.delete("pods", "default", &format!("p{n}")).unwrap();
            }
            // The same name, another object.
            server.create("pods", pod("p501", "new", 10)).unwrap();
            server.create("pods", pod("q", "new", 10)).unwrap();
        })
        .await;
        assert_eq!(DECODED.load(Ordering::Relaxed), 5, "{form}, streaming: {streaming}");
        let state = |object: &Value| {
            let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
            (ObjectKey::new(&text("namespace"), &text("name")), text("uid"), text("resourceVersion"))
        };
        let mut served: Vec<_> = run.server.list("pods").iter().map(state).collect();
        served.sort();
        let after = run.handles();
        let cached = after.iter().map(|pod| (pod.key(), pod.id().uid.to_owned(), pod.id().resource_version.to_owned()));
        assert_eq!(cached.collect::<Vec<_>>(), served);
        let kept = after.iter().filter(|pod| before.iter().any(|before| same(before, pod))).count();
        assert_eq!(kept, 600 - 5, "{form}");
        let key = |name: &str| ObjectKey::new("default", name);
        let new = run.informer.indexer().index_keys("app", "new").unwrap();
        assert_eq!(new, ["p1", "p500", "p501", "p599", "q"].map(key));
        assert_eq!(run.informer.indexer().index_keys("app", "old").unwrap().len(), 595);
        run.end().await;
    }
}
