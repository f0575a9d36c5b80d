//! One informer of a run with all that hangs on it: handlers, a queue, workers.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Indexers, NAMESPACE_INDEX, Object, ObjectKey};
use kubewire_informer::{Informer, InformerOptions, Registration, RunningInformer};
use kubewire_listwatch::ListerWatcher;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::crowd::Crowd;
use crate::dice::Dice;
use crate::digest::Digest;
use crate::scope::{Contents, Scope, differences, stored};
use crate::workers::Workers;

/// An informer of whatever objects.
pub(crate) trait Act: Send {
    /// A handler comes, or leaves.
    fn stir(&mut self) -> BoxFuture<'_, ()>;
    /// The store is what the server has, and nothing waits anywhere.
    fn is_right(&self, server: &ApiServer) -> bool;
    fn explain(&self, server: &ApiServer) -> String;
    /// Panics where anything is not as if nothing had gone wrong.
    fn check(&self, server: &ApiServer, restores: usize);
    /// Deletions that were told as guesses.
    fn tombstones(&self) -> u64;
    /// How many handlers have come and gone.
    fn gone(&self) -> usize;
    /// Stops everything.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Deeds>;
}

/// What was done in all.
pub(crate) struct Deeds {
    pub(crate) told: u64,
    pub(crate) processed: u64,
    pub(crate) traces: Traces,
}

/// Looks after objects without keeping them.
#[derive(Clone, Default)]
pub(crate) struct Traces(Arc<Mutex<Vec<IsAlive>>>);

/// Whether an object is still there.
type IsAlive = Box<dyn Fn() -> bool + Send>;

impl Traces {
    /// Follows this object.
    pub(crate) fn follow<K: Send + Sync + 'static>(&self, object: &Arc<K>) {
        let trace: Weak<K> = Arc::downgrade(object);
        self.0.lock().push(Box::new(move || trace.strong_count() > 0));
    }

    /// How many objects were followed, and how many of them are still there.
    pub(crate) fn count(&self) -> (usize, usize) {
        let traces = self.0.lock();
        (traces.len(), traces.iter().filter(|is_alive| is_alive()).count())
    }
}

pub(crate) struct Scene<O: Object> {
    scope: Scope,
    informer: Informer<O>,
    running: RunningInformer,
    stop: CancellationToken,
    workers: Workers,
    crowd: Crowd<O>,
    traces: Traces,
}

impl<O: Object> Scene<O> {
    /// Starts it all. `traces` are those of the objects, if they are followed.
    pub(crate) fn start<L: ListerWatcher<Object = O>>(
        scope: Scope,
        list_watch: L,
        options: InformerOptions<O>,
        in_order: bool,
        traces: Traces,
        dice: &mut Dice,
        digest: &Digest,
    ) -> Self {
        let options = options.indexers(Indexers::by_namespace()).error_handler(|_| {});
        let informer = Informer::with_options(list_watch, options).expect("the indices have names of their own");
        let workers = Workers::start(scope.resource, &informer, dice, digest);
        let mut crowd = Crowd::new(scope.resource, &informer, in_order, dice.fork(), digest);
        crowd.come();
        let stop = CancellationToken::new();
        let running = informer.start(stop.clone());
        Self { scope, informer, running, stop, workers, crowd, traces }
    }

    pub(crate) fn informer(&self) -> &Informer<O> {
        &self.informer
    }

    /// The index is what an index over this must be.
    fn check_index(&self, contents: &Contents) {
        let indexer = self.informer.indexer();
        indexer.store().validate().expect("the store's invariants");
        let mut recomputed: std::collections::BTreeMap<String, Vec<ObjectKey>> = Default::default();
        for key in contents.keys() {
            recomputed.entry(key.namespace().to_owned()).or_default().push(key.clone());
        }
        let keys = |namespace: &str| {
            let mut keys = indexer.index_keys(NAMESPACE_INDEX, namespace).expect("there is this index");
            keys.sort();
            keys
        };
        let values = indexer.list_index_func_values(NAMESPACE_INDEX);
        let indexed = values.iter().map(|namespace| (namespace.to_string(), keys(namespace))).collect();
        assert_eq!(recomputed, indexed, "the index of {:?}", self.scope);
    }
}

impl<O: Object> Act for Scene<O> {
    fn stir(&mut self) -> BoxFuture<'_, ()> {
        self.crowd.stir().boxed()
    }

    fn is_right(&self, server: &ApiServer) -> bool {
        self.crowd.is_idle()
            && self.workers.is_idle()
            && self.informer.status().pending == 0
            && stored(&self.informer.indexer()) == self.scope.served(server)
    }

    fn explain(&self, server: &ApiServer) -> String {
        format!(
            "{:?}: handlers idle {}, workers {}, {:#?}\ndifferences of store and server: {:#?}",
            self.scope,
            self.crowd.is_idle(),
            self.workers.explain(),
            self.informer.status(),
            differences(&stored(&self.informer.indexer()), &self.scope.served(server)),
        )
    }

    fn check(&self, server: &ApiServer, restores: usize) {
        let contents = self.scope.served(server);
        assert_eq!(stored(&self.informer.indexer()), contents, "{:?}", self.scope);
        self.check_index(&contents);
        self.crowd.check(&contents, restores);
        self.workers.check(&contents);
    }

    fn tombstones(&self) -> u64 {
        self.crowd.tombstones()
    }

    fn gone(&self) -> usize {
        self.crowd.gone()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Deeds> {
        let Self { informer, running, stop, workers, crowd, traces, .. } = *self;
        async move {
            let told = crowd.told();
            let processed = workers.stop().await;
            let left = crowd.leave().await;
            stop.cancel();
            running.join().await;
            assert!(informer.is_stopped());
            assert!(left.iter().all(Registration::is_removed), "a handler does not know of the end");
            assert!(informer.status().handlers.is_empty(), "a handler is left");
            Deeds { told, processed, traces }
        }
        .boxed()
    }
}
