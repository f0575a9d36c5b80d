//! Informers of several types and namespaces, each made once: client-go's `SharedInformerFactory`.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hashbrown::HashMap;
use kubewire_indexer::{IndexConflict, Indexer, Indexers, Object};
use kubewire_listwatch::{BoxError, ListerWatcher};
use kubewire_ratelimit::Clock;
use tokio_util::sync::CancellationToken;

use crate::metrics::MetricsProvider;
use crate::reflector::ReflectorOptions;
use crate::sync::{Handle, Mutex};
use crate::{
    CacheSync, CacheSyncError, Delivery, Informer, InformerName, InformerOptions, RunningInformer, Transform,
    TransformError, wait_for_cache_sync,
};

/// Gives out one informer for each type, resource and scope, so that all parts of a program share its cache and its
/// watch, and starts, awaits and stops them together. Cloning gives another handle to the same factory.
///
/// What to list comes from the caller, as a function from a namespace to a lister-watcher: this is where label
/// selectors and the like belong. Where there is such an informer already, the lister-watcher that it makes is asked
/// for its [resource](ListerWatcher::resource), and dropped.
///
/// Its informers have the index by namespace, as client-go's have, so that their
/// [listers](crate::Informer::lister) need not look at every object for one namespace.
///
/// An informer is found by its Rust type, its resource and its scope. Selectors are not looked at:
/// [`informer_named`](Self::informer_named) takes a scope that names them.
///
/// ```
/// # use std::sync::Arc;
/// # use kubewire_indexer::{Id, Meta};
/// # use kubewire_listwatch::{ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream};
/// # struct Pod;
/// # impl Meta for Pod { fn id(&self) -> Id<'_> { Id::new("default", "web") } }
/// # struct Quiet;
/// # impl ListerWatcher for Quiet {
/// #     type Object = Arc<Pod>;
/// #     async fn list(&self, _: &ListOptions, _: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
/// #         Ok(ListMeta::new("1"))
/// #     }
/// #     async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
/// #         Ok(Box::pin(futures::stream::pending()))
/// #     }
/// # }
/// # fn list_pods(_namespace: &str) -> Quiet { Quiet }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use kubewire_informer::{FactoryOptions, SharedInformerFactory};
/// use tokio_util::sync::CancellationToken;
///
/// let factory = SharedInformerFactory::new(FactoryOptions::new().namespace("default"));
/// // With a real server: |ns| ListWatch::<Arc<Pod>>::all(client.clone()).in_namespace(ns)
/// let pods = factory.informer(list_pods);
/// let store = pods.indexer();
///
/// let stop = CancellationToken::new();
/// factory.start(&stop);
/// factory.wait_for_cache_sync(&stop, Duration::from_secs(60)).await?;
/// assert!(store.is_empty());
/// factory.shut_down().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    options: FactoryOptions,
    /// Guards the table. Nothing is called under its lock.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: HashMap<Place, Member>,
    shut_down: bool,
}

impl State {
    fn place_of<O: Object>(&self, informer: &Informer<O>) -> Option<Place> {
        let is_it = |member: &Member| {
            member.informer.as_any().downcast_ref::<Informer<O>>().is_some_and(|member| member.is_same(informer))
        };
        self.members.iter().find(|(_, member)| is_it(member)).map(|(place, _)| place.clone())
    }
}

/// What an informer is found by: the type of its objects, what it lists, and where.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    objects: TypeId,
    /// Two dynamic resources have one type: this tells them apart.
    resource: String,
    scope: String,
}

struct Member {
    informer: Arc<dyn AnyInformer>,
    started: bool,
    /// Set once the start is over. It goes with its member.
    running: Option<RunningInformer>,
}

/// An informer of any type.
trait AnyInformer: CacheSync {
    fn as_any(&self) -> &dyn Any;
    fn start(&self, stop: CancellationToken) -> RunningInformer;
    fn stop(&self);
    fn ended(&self) -> BoxFuture<'_, ()>;
}

impl<O: Object> AnyInformer for Informer<O> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn start(&self, stop: CancellationToken) -> RunningInformer {
        self.start(stop)
    }

    fn stop(&self) {
        self.stop();
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.ended().boxed()
    }
}

/// The settings of a [`SharedInformerFactory`] for all its informers, and for those of single types.
#[must_use = "options do nothing before they are given to a factory"]
#[derive(Default)]
pub struct FactoryOptions {
    namespace: String,
    resync_period: Duration,
    resync_periods: HashMap<TypeId, Duration>,
    /// Each a `Transform` of its type.
    transforms: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    delivery: Delivery,
    reflector: ReflectorOptions,
    name: Option<InformerName>,
    metrics: Option<Arc<dyn MetricsProvider>>,
    clock: Clock,
}

impl FactoryOptions {
    /// All namespaces, no resync, the default delivery.
    pub fn new() -> Self {
        Self::default()
    }

    /// The namespace that informers are made for where none is named; empty for all.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// See [`InformerOptions::resync_period`].
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// Another resync period for the informers of one type.
    pub fn resync_period_of<O: Object>(mut self, period: Duration) -> Self {
        self.resync_periods.insert(TypeId::of::<O>(), period);
        self
    }

    /// The transform of one type, see [`InformerOptions::transform`].
    pub fn transform<O: Object, E: Into<BoxError>>(
        mut self,
        transform: impl Fn(O) -> Result<O, E> + Send + Sync + 'static,
    ) -> Self {
        let transform: Transform<O> = Arc::new(move |object| transform(object).map_err(TransformError::new));
        self.transforms.insert(TypeId::of::<O>(), Box::new(transform));
        self
    }

    /// See [`InformerOptions::delivery`].
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// See [`InformerOptions::reflector`].
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// See [`InformerOptions::informer_name`]. Of several informers of one resource, in different scopes, the first that
    /// is started has the metrics.
    pub fn informer_name(mut self, name: InformerName) -> Self {
        self.name = Some(name);
        self
    }

    /// See [`InformerOptions::clock`].
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// See [`InformerOptions::metrics`].
    pub fn metrics(mut self, provider: Arc<dyn MetricsProvider>) -> Self {
        self.metrics = Some(provider);
        self
    }

    fn informer_options<O: Object>(&self) -> InformerOptions<O> {
        let kind = TypeId::of::<O>();
        let mut options = InformerOptions::new()
            .resync_period(*self.resync_periods.get(&kind).unwrap_or(&self.resync_period))
            .delivery(self.delivery)
            .reflector(self.reflector.clone())
            .clock(self.clock.clone());
        (options.name, options.metrics) = (self.name.clone(), self.metrics.clone());
        options.transform = self.transforms.get(&kind).and_then(|any| any.downcast_ref::<Transform<O>>()).cloned();
        options
    }
}

impl fmt::Debug for FactoryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryOptions")
            .field("namespace", &self.namespace)
            .field("resync_period", &self.resync_period)
            .field("delivery", &self.delivery)
            .finish_non_exhaustive()
    }
}

impl SharedInformerFactory {
    /// A factory that has made nothing yet.
    pub fn new(options: FactoryOptions) -> Self {
        Self { inner: Arc::new(Inner { options, state: Mutex::default() }) }
    }

    /// The informer of a type in the factory's namespace; made by the first who asks. One that is made after
    /// [`start`](Self::start) needs another start.
    pub fn informer<L: ListerWatcher>(&self, lister_watcher: impl FnOnce(&str) -> L) -> Informer<L::Object> {
        let namespace = self.inner.options.namespace.clone();
        self.informer_in(&namespace, lister_watcher)
    }

    /// The informer of a type in this namespace (empty for all).
    pub fn informer_in<L: ListerWatcher>(
        &self,
        namespace: &str,
        lister_watcher: impl FnOnce(&str) -> L,
    ) -> Informer<L::Object> {
        self.informer_named(namespace, || lister_watcher(namespace))
    }

    /// The informer of a type with a scope of any other kind: the caller names the scope, say by its selector.
    pub fn informer_named<L: ListerWatcher>(
        &self,
        scope: &str,
        lister_watcher: impl FnOnce() -> L,
    ) -> Informer<L::Object> {
        self.find_or_make(scope, lister_watcher(), || {
            self.inner.options.informer_options().indexers(Indexers::by_namespace())
        })
    }

    /// As [`informer_named`](Self::informer_named), with options of its own in place of the factory's; those count where it is
    /// made, by the first who asks. The index by namespace is for the caller to add.
    ///
    /// # Errors
    /// Names an index that was given twice.
    pub fn informer_with<L: ListerWatcher>(
        &self,
        scope: &str,
        lister_watcher: impl FnOnce() -> L,
        options: InformerOptions<L::Object>,
    ) -> Result<Informer<L::Object>, IndexConflict> {
        Indexer::with_indexers(options.indexers.clone())?;
        Ok(self.find_or_make(scope, lister_watcher(), || options))
    }

    fn find_or_make<L: ListerWatcher>(
        &self,
        scope: &str,
        lister_watcher: L,
        options: impl FnOnce() -> InformerOptions<L::Object>,
    ) -> Informer<L::Object> {
        let resource = lister_watcher.resource();
        let place = Place { objects: TypeId::of::<L::Object>(), resource, scope: scope.to_owned() };
        if let Some(informer) = self.find(&place) {
            return informer;
        }
        let mut options = options();
        let indexers = std::mem::take(&mut options.indexers);
        let indexer = Indexer::with_indexers(indexers).expect("no index twice: one, or those that were checked");
        if !scope.is_empty() && options.description.is_none() {
            options = options.description(format!("{} in {scope}", place.resource));
        }
        let made = Informer::with_indexer(lister_watcher, indexer, options);
        let mut state = self.inner.state.lock();
        match state.members.get(&place).and_then(|member| member.informer.as_any().downcast_ref()).cloned() {
            // Somebody else was quicker.
            Some(informer) => {
                drop(state);
                informer
            }
            None => {
                state.members.insert(place, Member { informer: Arc::new(made.clone()), started: false, running: None });
                made
            }
        }
    }

    /// Stops an informer of this factory and forgets it: its handlers hear no more, its store stays as it is for who holds
    /// it, and who asks again gets a new one, which wants a [`start`](Self::start). False where it is not one of this factory.
    pub fn remove<O: Object>(&self, informer: &Informer<O>) -> bool {
        self.remove_all(std::slice::from_ref(informer)) == 1
    }

    /// [`remove`](Self::remove) of several at once: nobody who asks meanwhile is given some of them, and new ones in place of
    /// the others. How many there were.
    pub fn remove_all<O: Object>(&self, informers: &[Informer<O>]) -> usize {
        let removed: Vec<Member> = {
            let mut state = self.inner.state.lock();
            let remove = |informer| state.place_of(informer).and_then(|place| state.members.remove(&place));
            informers.iter().filter_map(remove).collect()
        };
        removed.iter().for_each(|member| member.informer.stop());
        removed.len()
    }

    /// Whether it is one of this factory, and was not removed. Cost: a look at every informer of the factory.
    pub fn holds<O: Object>(&self, informer: &Informer<O>) -> bool {
        self.inner.state.lock().place_of(informer).is_some()
    }

    fn find<O: Object>(&self, place: &Place) -> Option<Informer<O>> {
        self.inner.state.lock().members.get(place)?.informer.as_any().downcast_ref().cloned()
    }

    /// Starts all informers that have not been started. After [`shut_down`](Self::shut_down) it does nothing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(&self, stop: &CancellationToken) {
        // It panics here, where nothing has begun.
        let _ = Handle::current();
        let new: Vec<_> = {
            let mut state = self.inner.state.lock();
            if state.shut_down {
                return;
            }
            let new = state.members.iter_mut().filter(|(_, member)| !member.started);
            new.map(|(place, member)| {
                member.started = true;
                (place.clone(), Arc::clone(&member.informer))
            })
            .collect()
        };
        let mut running: Vec<_> =
            new.into_iter().map(|(place, informer)| (place, Some(informer.start(stop.clone())), informer)).collect();
        {
            let mut state = self.inner.state.lock();
            let shut_down = state.shut_down;
            for (place, running, informer) in &mut running {
                if !shut_down
                    && let Some(member) = state.members.get_mut(place)
                    && Arc::ptr_eq(&member.informer, informer)
                    && member.running.is_none()
                {
                    member.running = running.take();
                }
            }
        }
        // What a shut-down or a removal has overtaken stops by being dropped.
        drop(running);
    }

    /// Waits until all started informers are synced, see [`wait_for_cache_sync`]. Cancel-safe.
    pub async fn wait_for_cache_sync(&self, stop: &CancellationToken, timeout: Duration) -> Result<(), CacheSyncError> {
        let started = self.started();
        let caches = started.iter().map(|informer| {
            let cache: &dyn CacheSync = &**informer;
            cache
        });
        wait_for_cache_sync(stop, timeout, caches).await
    }

    /// Which of the started informers are synced, by their names.
    pub fn synced(&self) -> BTreeMap<String, bool> {
        self.started().iter().map(|informer| (informer.name(), informer.has_synced())).collect()
    }

    /// Stops all informers for ever, and waits until all their tasks have ended. Nothing is started afterwards.
    ///
    /// Cancel-safe: they are stopped at the first poll.
    pub async fn shut_down(&self) {
        let (members, running) = {
            let mut state = self.inner.state.lock();
            state.shut_down = true;
            let members: Vec<_> = state.members.values().map(|member| Arc::clone(&member.informer)).collect();
            (members, state.members.values_mut().filter_map(|member| member.running.take()).collect::<Vec<_>>())
        };
        members.iter().for_each(|informer| informer.stop());
        // Also those that a start has just begun and not put down yet.
        for informer in &members {
            informer.ended().await;
        }
        for informer in running {
            informer.join().await;
        }
    }

    fn started(&self) -> Vec<Arc<dyn AnyInformer>> {
        let state = self.inner.state.lock();
        let started = state.members.values().filter(|member| member.started);
        started.map(|member| Arc::clone(&member.informer)).collect()
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("options", &self.inner.options)
            .field("synced", &self.synced())
            .finish_non_exhaustive()
    }
}
