//! What a cache keeps, in general and by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{IndexFunc, Indexers, Object};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{InformerName, MetricsProvider};

use super::scopes::{ByNamespace, ScopeOptions, Settings};
use crate::BoxError;

/// What a [`Cache`](crate::Cache) keeps: of all types, and of single ones.
///
/// How an object is kept is its Rust type: `Arc<Pod>`, a struct of a few fields, `Packed<Pod>`. So there is no setting for it,
/// and what is kept is what is read.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{Pod, Secret};
/// use kubewire_controller::{CacheOptions, ScopeOptions, TypeOptions};
///
/// let options = CacheOptions::new()
///     .namespace("default", ScopeOptions::new())
///     .namespace("kube-system", ScopeOptions::new().labels("app=dns".parse()?))
///     .scope(ScopeOptions::new().drop_managed_fields(true))
///     // Of pods, those of all namespaces that are on one node:
///     .of(TypeOptions::<Arc<Pod>>::new()
///         .all_namespaces()
///         .scope(ScopeOptions::new().fields("spec.nodeName=n1".parse()?)))
///     // Of secrets, no values:
///     .of(TypeOptions::<Arc<Secret>>::new().transform(|mut secret: Arc<Secret>| {
///         Arc::make_mut(&mut secret).data = None;
///         Ok::<_, std::convert::Infallible>(secret)
///     }));
/// # let _ = options;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "options do nothing before they are given to a cluster"]
pub struct CacheOptions {
    pub(super) settings: Settings,
    /// Each a `TypeOptions` of its type.
    types: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    pub(super) unwatched: Unwatched,
    pub(super) sync_timeout: Duration,
    pub(super) name: Option<InformerName>,
    pub(super) metrics: Option<Arc<dyn MetricsProvider>>,
    pub(super) reflector: ReflectorOptions,
}

/// What becomes of a read of a type that nobody watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwatched {
    /// It is an error: no watch of a whole cluster by accident.
    #[default]
    Error,
    /// The server is asked.
    Live,
    /// From now on it is watched, as in controller-runtime.
    Watch,
}

/// As the controllers' time-out for their caches.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

impl CacheOptions {
    /// All objects of all namespaces; types that are not watched cannot be read; two minutes to be synced.
    pub fn new() -> Self {
        Self {
            settings: Settings::default(),
            types: HashMap::new(),
            unwatched: Unwatched::default(),
            sync_timeout: SYNC_TIMEOUT,
            name: None,
            metrics: None,
            reflector: ReflectorOptions::new(),
        }
    }

    /// Only objects of this namespace and of those that are named by other calls. The empty name is for all namespaces that
    /// are not named. Types of cluster scope are kept whatever is named.
    pub fn namespace(mut self, namespace: impl Into<String>, options: ScopeOptions) -> Self {
        self.settings.namespaces.get_or_insert_default().insert(namespace.into(), options);
        self
    }

    /// [`namespace`](Self::namespace), for several without options of their own.
    pub fn namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        namespaces.into_iter().fold(self, |options, namespace| options.namespace(namespace, ScopeOptions::new()))
    }

    /// For types and namespaces that say nothing else.
    pub fn scope(mut self, options: ScopeOptions) -> Self {
        self.settings.scope = options;
        self
    }

    /// For one type.
    pub fn of<O: Object>(mut self, options: TypeOptions<O>) -> Self {
        self.types.insert(TypeId::of::<O>(), Box::new(options));
        self
    }

    /// What becomes of a read of a type that nobody watches. Default: it is an error.
    pub fn unwatched(self, unwatched: Unwatched) -> Self {
        Self { unwatched, ..self }
    }

    /// How long the start waits for the first lists before it fails and says why. Default: two minutes.
    pub fn sync_timeout(self, timeout: Duration) -> Self {
        Self { sync_timeout: timeout, ..self }
    }

    /// Gives the informers of this cache metrics, under this name.
    pub fn metrics(self, name: InformerName, provider: Arc<dyn MetricsProvider>) -> Self {
        Self { name: Some(name), metrics: Some(provider), ..self }
    }

    /// How all informers of this cache list and watch: streaming lists, pages, pauses after failures. A resync period of theirs
    /// does not count, [that of the scope](ScopeOptions::resync_period) does. Default: as client-go.
    pub fn reflector(self, reflector: ReflectorOptions) -> Self {
        Self { reflector, ..self }
    }

    pub(super) fn of_type<O: Object>(&self) -> TypeOptions<O> {
        let options = self.types.get(&TypeId::of::<O>()).and_then(|options| options.downcast_ref::<TypeOptions<O>>());
        options.cloned().unwrap_or_default()
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheOptions")
            .field("settings", &self.settings)
            .field("types", &self.types.len())
            .field("unwatched", &self.unwatched)
            .field("sync_timeout", &self.sync_timeout)
            .finish_non_exhaustive()
    }
}

pub(super) type TransformOf<O> = Arc<dyn Fn(O) -> Result<O, BoxError> + Send + Sync>;

/// What a cache keeps of one type. What is unset is taken from the [`CacheOptions`].
#[must_use = "options do nothing before they are given to a cache"]
pub struct TypeOptions<O> {
    pub(super) settings: Settings,
    pub(super) transform: Option<TransformOf<O>>,
    pub(super) indexers: Indexers<O>,
    pub(super) live: bool,
}

impl<O: Object> TypeOptions<O> {
    /// Everything unset.
    pub fn new() -> Self {
        Self { settings: Settings::default(), transform: None, indexers: Indexers::none(), live: false }
    }

    /// Only objects of this namespace, see [`CacheOptions::namespace`]; the namespaces of this type stand in place of the
    /// default ones.
    pub fn namespace(mut self, namespace: impl Into<String>, options: ScopeOptions) -> Self {
        self.settings.namespaces.get_or_insert_default().insert(namespace.into(), options);
        self
    }

    /// Objects of all namespaces, whatever the default is.
    pub fn all_namespaces(mut self) -> Self {
        self.settings.namespaces = Some(ByNamespace::new());
        self
    }

    /// For the namespaces that say nothing else.
    pub fn scope(mut self, options: ScopeOptions) -> Self {
        self.settings.scope = options;
        self
    }

    /// Changes each object before it is kept, see [`kubewire_informer::InformerOptions::transform`].
    pub fn transform<E: Into<BoxError>>(
        mut self,
        transform: impl Fn(O) -> Result<O, E> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(Into::into)));
        self
    }

    /// With this index from the start. More can be added at any time.
    pub fn index(mut self, name: impl Into<Arc<str>>, function: IndexFunc<O>) -> Self {
        self.indexers = self.indexers.with(name, function);
        self
    }

    /// A [`Reader`](crate::Reader) asks the server for objects of this type, watched or not.
    pub fn live(self) -> Self {
        Self { live: true, ..self }
    }
}

impl<O: Object> Default for TypeOptions<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Clone for TypeOptions<O> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            transform: self.transform.clone(),
            indexers: self.indexers.clone(),
            live: self.live,
        }
    }
}

impl<O> fmt::Debug for TypeOptions<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeOptions")
            .field("settings", &self.settings)
            .field("transform", &self.transform.is_some())
            .field("indexers", &self.indexers)
            .field("live", &self.live)
            .finish()
    }
}
