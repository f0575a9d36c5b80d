//! The objects of a cluster that are kept here.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use kube_core::{ApiResource, ClusterResourceScope, Resource};
use kubewire_indexer::{NAMESPACE_INDEX, Object};
use kubewire_informer::{CacheSyncError, FactoryOptions, InformerOptions, InformerStatus, SharedInformerFactory};
use kubewire_listwatch::{Codec, Decode, Json, ListWatch, Represented};
use kubewire_ratelimit::{Random, with_jitter};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::cache_options::{CacheOptions, TypeOptions, Unwatched};
use super::cached::{AnyCached, Cached, ReadError, failing};
use super::rest_mapper::Mapping;
use super::scopes::{Scope, scopes};

/// Keeps objects of a cluster in memory: one informer for each type that somebody [watches](Self::watch), and namespace that
/// was named. Cloning gives another handle to the same cache.
///
/// It is built on a [`SharedInformerFactory`]: what it adds is options by type and namespace, reads that say why they cannot
/// be answered, and that no type is watched by accident.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::{Cache, CacheOptions, ListQuery};
/// use kubewire_indexer::IndexFunc;
/// use tokio_util::sync::CancellationToken;
///
/// let server = ApiServer::builder().pods(3).start().await?;
/// let cache = Cache::new(server.client(), CacheOptions::new());
/// let pods = cache.watch::<Arc<Pod>>()?;
/// pods.add_index("node", IndexFunc::maybe(|pod: &Arc<Pod>| pod.spec.as_ref()?.node_name.as_deref()))?;
///
/// let stop = CancellationToken::new();
/// cache.start(&stop);
/// cache.wait_for_sync(&stop, Duration::from_secs(60)).await?;
/// let all = pods.list(&ListQuery::all())?;
/// let node = all[0].spec.as_ref().unwrap().node_name.clone().unwrap();
/// assert!(!pods.list(&ListQuery::all().by_index("node", node))?.is_empty());
///
/// let error = cache.cached::<Arc<ConfigMap>>().unwrap_err();
/// assert!(error.to_string().starts_with("configmaps are not watched"));
/// cache.shut_down().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    options: CacheOptions,
    factory: SharedInformerFactory,
    /// Nothing is called under its lock.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watched: BTreeMap<Place, Arc<dyn AnyCached>>,
    life: Life,
}

#[derive(Default)]
enum Life {
    #[default]
    New,
    Running(CancellationToken),
    Stopped,
}

/// What a watched type is found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Group, version and kind: two dynamic ones have one Rust type.
    resource: (String, String, String),
    objects: TypeId,
}

impl Place {
    fn of<O: Object>(resource: &ApiResource) -> Self {
        let resource = (resource.group.clone(), resource.version.clone(), resource.kind.clone());
        Self { resource, objects: TypeId::of::<O>() }
    }
}

/// Why a type cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The options name namespaces for a type of cluster scope.
    #[error("{resource} are of cluster scope, but the options of the cache name namespaces for them")]
    ClusterScope {
        /// The resource.
        resource: String,
    },
    /// The options name an index twice.
    #[error("the options of the cache name the index {index:?} of {resource} twice")]
    IndexTwice {
        /// The resource.
        resource: String,
        /// Its name.
        index: String,
    },
    /// The cache has stopped.
    #[error("the cache has stopped; make a new one")]
    Stopped,
}

impl Cache {
    /// A cache that keeps nothing yet.
    pub fn new(client: Client, options: CacheOptions) -> Self {
        let factory = SharedInformerFactory::new(FactoryOptions::new());
        Self { shared: Arc::new(Shared { client, options, factory, state: Mutex::default() }) }
    }

    /// Watches the objects of a type, in JSON; gives the same where it is watched already. Where the cache runs, it is listed
    /// from now on.
    ///
    /// # Errors
    /// The options do not fit the type, or the cache has stopped.
    pub fn watch<O>(&self) -> Result<Cached<O>, WatchError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        self.watch_from(ListWatch::<O>::all(self.shared.client.clone()), is_namespaced::<O::Resource>())
    }

    /// [`watch`](Self::watch) of a resource that is known at run time only, as a [`RestMapper`](crate::RestMapper) finds it,
    /// in a representation of any resource: `Arc<DynamicObject>`, `Packed<DynamicObject>`.
    ///
    /// # Errors
    /// As of [`watch`](Self::watch).
    pub fn watch_dynamic<O>(&self, mapping: &Mapping) -> Result<Cached<O>, WatchError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = ApiResource>,
    {
        let list_watch = ListWatch::<O>::dynamic(self.shared.client.clone(), &mapping.resource);
        self.watch_from(list_watch, mapping.is_namespaced)
    }

    /// [`watch`](Self::watch) of what this lists: in another codec, with other limits. Namespaces and selectors come from the
    /// options, in addition to its own.
    ///
    /// # Errors
    /// As of [`watch`](Self::watch).
    pub fn watch_from<O, C>(&self, list_watch: ListWatch<O, C>, is_namespaced: bool) -> Result<Cached<O>, WatchError>
    where
        O: Object,
        C: Codec<O>,
    {
        let shared = &*self.shared;
        let resource = list_watch.api_resource().clone();
        let place = Place::of::<O>(&resource);
        if let Some(watched) = self.find::<O>(&place)?.filter(|watched| !self.is_unwatched(watched)) {
            return Ok(watched);
        }
        // Once more for each time that another has unwatched it meanwhile.
        loop {
            let made = self.make(&list_watch, &resource, is_namespaced)?;
            if !made.is_over(&shared.factory) {
                return self.insert(place, made);
            }
        }
    }

    /// With informers of the factory, which gives out those that it has.
    fn make<O: Object, C: Codec<O>>(
        &self,
        list_watch: &ListWatch<O, C>,
        resource: &ApiResource,
        is_namespaced: bool,
    ) -> Result<Cached<O>, WatchError> {
        let shared = &*self.shared;
        let options = shared.options.of_type::<O>();
        let scopes = scopes(is_namespaced, &shared.options.settings, &options.settings)
            .map_err(|_| WatchError::ClusterScope { resource: resource.plural.clone() })?;
        let mut informers = Vec::new();
        for scope in scopes {
            let lister = scoped(list_watch.clone(), &scope);
            let made =
                shared.factory.informer_with(&scope.namespace, || lister, self.informer_options(&options, &scope));
            let informer = made.map_err(|conflict| WatchError::IndexTwice {
                resource: resource.plural.clone(),
                index: conflict.name.to_string(),
            })?;
            informers.push((scope.namespace, informer));
        }
        Ok(Cached::new(resource.clone(), is_namespaced, informers))
    }

    /// What is watched of this type.
    ///
    /// # Errors
    /// Nobody watches it.
    pub fn cached<O>(&self) -> Result<Cached<O>, ReadError>
    where
        O: Represented,
        O::Resource: Resource<DynamicType = ()>,
    {
        self.cached_dynamic(&ApiResource::erase::<O::Resource>(&()))
    }

    /// What is watched of a resource that is known at run time only.
    ///
    /// # Errors
    /// Nobody watches it, in this representation.
    pub fn cached_dynamic<O: Object>(&self, resource: &ApiResource) -> Result<Cached<O>, ReadError> {
        let found = self.find(&Place::of::<O>(resource))?;
        found.ok_or_else(|| ReadError::NotWatched { resource: resource.plural.clone() })
    }

    /// Watches a type no longer: its handlers hear no more, its memory is given back when the last [`Cached`] goes. Who
    /// watches it again begins anew. False where nobody watched it.
    pub fn unwatch<O: Object>(&self, watched: &Cached<O>) -> bool {
        // Its informers first: who asks meanwhile sees that it is over, and begins anew.
        watched.remove_from(&self.shared.factory);
        let place = Place::of::<O>(watched.resource());
        let removed = {
            let mut state = self.shared.state.lock();
            // Whoever holds a handle of a watch that is over must not end the one that came after it.
            let is_it = state.watched.get(&place).and_then(downcast::<O>).is_some_and(|it| it.is_same(watched));
            is_it.then(|| state.watched.remove(&place)).flatten()
        };
        removed.is_some()
    }

    fn find<O: Object>(&self, place: &Place) -> Result<Option<Cached<O>>, WatchError> {
        let state = self.shared.state.lock();
        if matches!(state.life, Life::Stopped) && !state.watched.contains_key(place) {
            return Err(WatchError::Stopped);
        }
        Ok(state.watched.get(place).and_then(downcast).cloned())
    }

    /// Whether this is just being unwatched, while the cache goes on.
    fn is_unwatched<O: Object>(&self, watched: &Cached<O>) -> bool {
        let goes_on = match &self.shared.state.lock().life {
            Life::New => true,
            Life::Running(stop) => !stop.is_cancelled(),
            Life::Stopped => false,
        };
        goes_on && watched.is_over(&self.shared.factory)
    }

    fn insert<O: Object>(&self, place: Place, made: Cached<O>) -> Result<Cached<O>, WatchError> {
        let (watched, stop, other, former) = {
            let mut state = self.shared.state.lock();
            let stop = match &state.life {
                Life::New => None,
                Life::Running(stop) => Some(stop.clone()),
                Life::Stopped => return Err(WatchError::Stopped),
            };
            let other = state.watched.keys().any(|other| other.resource == place.resource && *other != place);
            // Where somebody else was quicker, the factory has given both the same informers.
            let watched = state
                .watched
                .get(&place)
                .and_then(downcast::<O>)
                .filter(|watched| !watched.is_over(&self.shared.factory))
                .cloned();
            let former = match &watched {
                Some(_) => None,
                None => state.watched.insert(place, Arc::new(made.clone())),
            };
            (watched, stop, other, former)
        };
        drop(former);
        if other {
            tracing::warn!(
                resource = made.resource().plural,
                "watched in two representations: each has its own watch and its own memory; one may do for both"
            );
        }
        if let Some(stop) = stop {
            self.shared.factory.start(&stop);
        }
        Ok(watched.unwrap_or(made))
    }

    fn informer_options<O: Object>(&self, of_type: &TypeOptions<O>, scope: &Scope) -> InformerOptions<O> {
        let options = &self.shared.options;
        let mut indexers = of_type.indexers.clone();
        if !indexers.names().any(|name| name == NAMESPACE_INDEX) {
            indexers = indexers.with(NAMESPACE_INDEX, kubewire_indexer::IndexFunc::namespace());
        }
        let mut made = InformerOptions::new().indexers(indexers).reflector(options.reflector.clone());
        if !scope.resync_period.is_zero() {
            made = made.resync_period(spread(scope.resync_period, Random::new().fraction()));
        }
        if let Some(transform) = of_type.transform.clone() {
            made = made.transform(move |object| transform(object));
        }
        if let (Some(name), Some(metrics)) = (&options.name, &options.metrics) {
            made = made.informer_name(name.clone()).metrics(Arc::clone(metrics));
        }
        made
    }

    /// Begins to list and watch, until `stop` is cancelled or it is [shut down](Self::shut_down). Types that are watched later
    /// begin at once. A second start does nothing.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&self, stop: &CancellationToken) {
        {
            let mut state = self.shared.state.lock();
            if !matches!(state.life, Life::New) {
                return;
            }
            state.life = Life::Running(stop.clone());
        }
        self.shared.factory.start(stop);
    }

    /// Stops for ever, and waits until all tasks have ended. What is kept can still be read. Cancel-safe.
    pub async fn shut_down(&self) {
        self.shared.state.lock().life = Life::Stopped;
        self.shared.factory.shut_down().await;
    }

    /// Waits until the first list of all that is watched is there.
    ///
    /// # Errors
    /// It took too long, was stopped, or will never be; says what is missing, and why.
    pub async fn wait_for_sync(&self, stop: &CancellationToken, timeout: Duration) -> Result<(), CacheSyncError> {
        self.shared.factory.wait_for_cache_sync(stop, timeout).await
    }

    /// How each informer is doing.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.all().iter().flat_map(|watched| watched.statuses()).collect()
    }

    /// A check for readiness: whether all first lists are there.
    ///
    /// # Errors
    /// Names what is not, with what keeps it.
    pub fn check_synced(&self) -> Result<(), Unhealthy> {
        let unsynced = self.all().into_iter().flat_map(|watched| watched.unsynced());
        Unhealthy::unless_empty(unsynced.map(|(name, hindrance)| format!("{name}: {hindrance}")).collect())
    }

    /// A check for readiness or liveness: whether all watches are alive. One is not when it has stopped, or when it fails, and
    /// the server was not heard of for longer than `tolerance`.
    ///
    /// # Errors
    /// Names those that are not, and how they fail.
    pub fn check_watches(&self, tolerance: Duration) -> Result<(), Unhealthy> {
        Unhealthy::unless_empty(self.status().iter().filter_map(|status| failing(status, tolerance)).collect())
    }

    fn all(&self) -> Vec<Arc<dyn AnyCached>> {
        self.shared.state.lock().watched.values().cloned().collect()
    }

    pub(super) fn is_started(&self) -> bool {
        !matches!(self.shared.state.lock().life, Life::New)
    }

    pub(super) fn sync_timeout(&self) -> Duration {
        self.shared.options.sync_timeout
    }

    pub(super) fn unwatched(&self) -> Unwatched {
        self.shared.options.unwatched
    }

    pub(super) fn is_live<O: Object>(&self) -> bool {
        self.shared.options.of_type::<O>().live
    }
}

/// What is not well with a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", troubles.join("; "))]
#[non_exhaustive]
pub struct Unhealthy {
    /// One for each informer that is not well.
    pub troubles: Vec<String>,
}

impl Unhealthy {
    fn unless_empty(troubles: Vec<String>) -> Result<(), Self> {
        if troubles.is_empty() { Ok(()) } else { Err(Self { troubles }) }
    }
}

fn downcast<O: Object>(watched: &Arc<dyn AnyCached>) -> Option<&Cached<O>> {
    watched.as_any().downcast_ref()
}

/// Whether objects of this resource live in namespaces.
pub(super) fn is_namespaced<K: Resource<Scope: 'static>>() -> bool {
    TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
}

fn scoped<O, C>(list_watch: ListWatch<O, C>, scope: &Scope) -> ListWatch<O, C> {
    let mut scoped = list_watch;
    if !scope.listed_in.is_empty() {
        scoped = scoped.in_namespace(&scope.listed_in);
    }
    scoped = scoped.label_selector(&scope.labels);
    for fields in &scope.fields {
        scoped = scoped.field_selector(fields);
    }
    if scope.drop_managed_fields { scoped.drop_managed_fields() } else { scoped }
}

/// From nine tenths of a period up to eleven, so that not all informers resync at once; `random` is in 0..1.
fn spread(period: Duration, random: f64) -> Duration {
    with_jitter(period.mul_f64(0.9), 2.0 / 9.0, random)
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched: Vec<_> = self.status().into_iter().map(|status| status.resource).collect();
        f.debug_struct("Cache").field("watched", &watched).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
