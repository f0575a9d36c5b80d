//! The indexer and the store beneath it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{IndexFunc, Indexer, Indexers, NAMESPACE_INDEX, Object, ObjectKey, Store};

use crate::flags::{Defaults, Flags};
use crate::keys::{light_pod, namespace, node};
use crate::process::heap_bytes;
use crate::sample::{bench, expect, measure};
use crate::store_readers;

pub(crate) const FLAGS: Defaults =
    &[("n", "0"), ("sizes", "10000,100000"), ("repeat", "1"), ("workers", "1,2,8,64"), ("dur", "1000")];

const NODE_INDEX: &str = "node";

pub(crate) type PodRef = Arc<Pod>;

fn indexers() -> Indexers<PodRef> {
    let by_node = IndexFunc::maybe(|pod: &PodRef| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()));
    Indexers::by_namespace().with(NODE_INDEX, by_node)
}

/// What the indexer and the store have in common: the former makes the key of an object itself.
trait PodStore {
    const NAME: &str;
    fn empty() -> Self;
    fn put(&self, key: &ObjectKey, pod: PodRef);
    fn remove(&self, key: &ObjectKey, pod: &PodRef);
    fn has(&self, key: &ObjectKey) -> bool;
    fn count_by(&self, index: &str, value: &str) -> usize;
    fn count_listed(&self) -> usize;
}

impl PodStore for Indexer<PodRef> {
    const NAME: &str = "indexer";

    fn empty() -> Self {
        Self::with_indexers(indexers()).expect("the names differ")
    }

    fn put(&self, _: &ObjectKey, pod: PodRef) {
        drop(self.add(pod).expect("each pod has a name"));
    }

    fn remove(&self, _: &ObjectKey, pod: &PodRef) {
        drop(self.delete(pod).expect("each pod has a name"));
    }

    fn has(&self, key: &ObjectKey) -> bool {
        self.get_by_key(key).is_some()
    }

    fn count_by(&self, index: &str, value: &str) -> usize {
        self.by_index(index, value).expect("there is such an index").len()
    }

    fn count_listed(&self) -> usize {
        self.list().iter().count()
    }
}

impl PodStore for Store<ObjectKey, PodRef> {
    const NAME: &str = "thread-safe-store";

    fn empty() -> Self {
        Self::with_indexers(indexers()).expect("the names differ")
    }

    fn put(&self, key: &ObjectKey, pod: PodRef) {
        drop(self.add(key.clone(), pod));
    }

    fn remove(&self, key: &ObjectKey, _: &PodRef) {
        drop(self.delete(key));
    }

    fn has(&self, key: &ObjectKey) -> bool {
        self.get(key).is_some()
    }

    fn count_by(&self, index: &str, value: &str) -> usize {
        self.by_index(index, value).expect("there is such an index").len()
    }

    fn count_listed(&self) -> usize {
        self.list().iter().count()
    }
}

/// Pods with names, nodes and nothing else. The new version of a pod is another object, as it is when it comes off
/// the wire.
pub(crate) struct Pods {
    pub(crate) keys: Vec<ObjectKey>,
    pub(crate) first: Vec<PodRef>,
    pub(crate) same: Vec<PodRef>,
    /// On another node.
    pub(crate) moved: Vec<PodRef>,
}

impl Pods {
    fn new(n: usize) -> Self {
        let all = |node: fn(usize) -> String| (0..n).map(|i| light_pod(i, 1000 + i, node(i))).collect::<Vec<_>>();
        let first = all(node);
        let keys = first.iter().map(Object::key).collect();
        Self { keys, first, same: all(node), moved: all(|i| format!("node-{:03}", (i * 37 + 1) % 100)) }
    }
}

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (n, repeat) = (flags.get::<usize>("n")?, flags.get("repeat")?);
    let sizes = if n > 0 { vec![n] } else { flags.list("sizes")? };
    for n in sizes {
        let pods = Pods::new(n);
        alone::<Indexer<PodRef>>(&pods, repeat);
        alone::<Store<ObjectKey, PodRef>>(&pods, repeat);
        let millis = flags.get("dur")?;
        for workers in flags.list("workers")? {
            store_readers::run(&pods, &full(&pods), workers, millis);
        }
    }
    Ok(())
}

fn full<S: PodStore>(pods: &Pods) -> S {
    let store = S::empty();
    pods.keys.iter().zip(&pods.first).for_each(|(key, pod)| store.put(key, Arc::clone(pod)));
    store
}

/// One operation after the other.
fn alone<S: PodStore>(pods: &Pods, repeat: usize) {
    let Pods { keys, first, same, moved } = pods;
    let n = keys.len();
    let (namespaces, nodes) = (n.div_ceil(100), n.min(100));
    let name = |case: &str| format!("store/{}/{n}/{case}", S::NAME);
    let each = |case: &str, ops: usize, operation: &dyn Fn(&S, usize)| {
        bench(&name(case), ops, repeat, || {
            let store = full::<S>(pods);
            measure(|| (0..ops).for_each(|i| operation(&store, i)))
        });
    };
    bench(&name("add"), n, repeat, || {
        let before = heap_bytes();
        let store = S::empty();
        let sample = measure(|| keys.iter().zip(first).for_each(|(key, pod)| store.put(key, Arc::clone(pod))));
        let heap = heap_bytes() - before; // without the pods; with the keys that it made
        expect("stored", store.count_listed(), n);
        sample.with("heap_bytes_per_item", heap / n as i64)
    });
    each("update-same-index", n, &|store, i| store.put(&keys[i], Arc::clone(&same[i])));
    each("update-index-change", n, &|store, i| store.put(&keys[i], Arc::clone(&moved[i])));
    each("get", n, &|store, i| expect("found", store.has(&keys[i * 7919 % n]), true));
    let names: Vec<_> = (0..namespaces).map(|i| namespace(i * 100)).collect();
    each("by-namespace-of-100", namespaces.max(1000), &|store, i| {
        let i = i % namespaces;
        expect("in namespace", store.count_by(NAMESPACE_INDEX, &names[i]), (n - i * 100).min(100));
    });
    each(&format!("by-node-of-{}", n / nodes), 300, &|store, i| {
        expect("on node", store.count_by(NODE_INDEX, &node(i % nodes)), (n - i % nodes).div_ceil(100));
    });
    each("list", 20, &|store, _| expect("listed", store.count_listed(), n));
    bench(&name("delete"), n, repeat, || {
        let store = full::<S>(pods);
        let sample = measure(|| keys.iter().zip(first).for_each(|(key, pod)| store.remove(key, pod)));
        expect("left", store.count_listed(), 0);
        sample
    });
}
