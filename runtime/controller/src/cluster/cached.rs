//! One type that a cache watches.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_core::ApiResource;
use kubewire_indexer::{IndexConflict, IndexFunc, Indexers, Lister, Object, ObjectKey};
use kubewire_informer::{
    AddIndexersError, CacheSync, Hindrance, Informer, InformerPhase, InformerStatus, SharedInformerFactory, Stopped,
    WaitForVersionError,
};
use parking_lot::Mutex;

use super::list_query::ListQuery;
use super::owner_index::{OWNER_INDEX, controlling_owner};

/// The objects of one type that a [`Cache`](crate::Cache) keeps: to be read, to be given handlers, to be indexed. Cloning
/// gives another handle.
///
/// It is one informer, or one for each namespace that was named. Objects are shared: a read clones handles.
pub struct Cached<O: Object> {
    shared: Arc<Shared<O>>,
}

struct Shared<O: Object> {
    resource: ApiResource,
    is_namespaced: bool,
    /// By namespace; the empty one has all that are not named.
    members: Vec<Member<O>>,
    /// The names that are taken, so that of two who add one at the same time each gets all of it or nothing. Nothing is
    /// called under its lock.
    indices: Mutex<BTreeSet<Arc<str>>>,
}

struct Member<O: Object> {
    namespace: String,
    informer: Informer<O>,
    lister: Lister<O>,
}

/// Why something was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nobody watches the type.
    #[error("{resource} are not watched: call `watch` of the cache before the start, or read from the server")]
    NotWatched {
        /// The resource, such as `pods`.
        resource: String,
    },
    /// The cache was not started.
    #[error("the cache of {resource} is not started: add the cluster to a manager, and read once that has started")]
    NotStarted {
        /// The resource.
        resource: String,
    },
    /// The first list is not there yet.
    #[error("the cache of {resource} is not synced: {hindrance}")]
    NotSynced {
        /// The resource.
        resource: String,
        /// What keeps it.
        hindrance: Box<Hindrance>,
    },
    /// The cache keeps nothing of this namespace.
    #[error("the cache keeps no {resource} of the namespace {namespace:?}: name it in the options of the cache")]
    UnknownNamespace {
        /// The resource.
        resource: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no such index.
    #[error(
        "there is no index {index:?} of {resource}: add it by `add_index`, or by `indexed_by_owner` for `owned_by`"
    )]
    UnknownIndex {
        /// The resource.
        resource: String,
        /// Its name.
        index: String,
    },
    /// A server knows no indices.
    #[error("an index can only be read from a cache: watch {resource}")]
    IndexOfServer {
        /// The resource.
        resource: String,
    },
    /// The type cannot be watched.
    #[error(transparent)]
    Watch(#[from] crate::WatchError),
    /// The server did not answer well.
    #[error("{0}")]
    Server(#[source] kubewire_listwatch::BoxError),
}

impl<O: Object> Cached<O> {
    pub(super) fn new(resource: ApiResource, is_namespaced: bool, informers: Vec<(String, Informer<O>)>) -> Self {
        let member = |(namespace, informer): (String, Informer<O>)| {
            let lister = informer.lister();
            Member { namespace, informer, lister }
        };
        let members: Vec<_> = informers.into_iter().map(member).collect();
        let names = members.iter().flat_map(|member| member.informer.indexer().indexer_names());
        let indices = Mutex::new(names.collect());
        Self { shared: Arc::new(Shared { resource, is_namespaced, members, indices }) }
    }

    /// What is watched.
    pub fn resource(&self) -> &ApiResource {
        &self.shared.resource
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.shared.is_namespaced
    }

    fn name(&self) -> String {
        self.shared.resource.plural.clone()
    }

    /// The informers, each with its namespace; the empty one is for all that are not named. To add a handler is to add it to
    /// each.
    pub fn informers(&self) -> impl Iterator<Item = (&str, &Informer<O>)> {
        self.shared.members.iter().map(|member| (member.namespace.as_str(), &member.informer))
    }

    /// The object of this namespace and name. For types of cluster scope the namespace does not count.
    ///
    /// Cost: one look-up, one clone of the handle.
    ///
    /// # Errors
    /// The cache is not synced, or keeps nothing of the namespace.
    pub fn get(&self, namespace: &str, name: &str) -> Result<Option<O>, ReadError> {
        let namespace = if self.shared.is_namespaced { namespace } else { "" };
        let member = self.member(namespace)?;
        self.check_synced(member)?;
        Ok(member.lister.get(&(namespace, name)))
    }

    /// [`get`](Self::get) by the key of the object, such as a [`Request`](crate::Request).
    ///
    /// # Errors
    /// As of [`get`](Self::get).
    pub fn get_by_key(&self, key: &ObjectKey) -> Result<Option<O>, ReadError> {
        self.get(key.namespace(), key.name())
    }

    /// The objects that are meant, in no order; those of each informer as of one moment.
    ///
    /// Cost: with an index, of its hits; else of the objects of the namespace, or of all.
    ///
    /// # Errors
    /// The cache is not synced, keeps nothing of the namespace, or has no such index.
    pub fn list(&self, query: &ListQuery) -> Result<Vec<O>, ReadError> {
        let namespace = if self.shared.is_namespaced { query.namespace.as_str() } else { "" };
        let members = match namespace {
            "" => self.shared.members.iter().collect(),
            namespace => vec![self.member(namespace)?],
        };
        let mut found = Vec::new();
        for member in members {
            self.check_synced(member)?;
            found.extend(self.list_member(member, namespace, query)?);
        }
        found.truncate(query.limit);
        Ok(found)
    }

    fn list_member(&self, member: &Member<O>, namespace: &str, query: &ListQuery) -> Result<Vec<O>, ReadError> {
        let Some(((index, value), others)) = query.indexed.split_first() else {
            return Ok(member.lister.namespace(namespace).list(&query.labels));
        };
        let indexer = member.informer.indexer();
        let unknown = |index: &str| ReadError::UnknownIndex { resource: self.name(), index: index.to_owned() };
        if let Some((index, _)) =
            others.iter().find(|(index, _)| !indexer.indexer_names().iter().any(|n| **n == **index))
        {
            return Err(unknown(index));
        }
        let mut found = indexer.by_index(index, value).map_err(|_| unknown(index))?;
        found.retain(|object| {
            let in_namespace = namespace.is_empty() || object.id().namespace == namespace;
            // The objects of one moment: their other values are computed, not looked up.
            in_namespace
                && query.labels.matches_object(object)
                && others.iter().all(|(index, value)| {
                    indexer.store().index_values(index, object).is_ok_and(|values| values.contains(value))
                })
        });
        Ok(found)
    }

    fn member(&self, namespace: &str) -> Result<&Member<O>, ReadError> {
        let of = |wanted: &str| self.shared.members.iter().find(|member| member.namespace == wanted);
        of(namespace)
            .or_else(|| of(""))
            .ok_or_else(|| ReadError::UnknownNamespace { resource: self.name(), namespace: namespace.to_owned() })
    }

    fn check_synced(&self, member: &Member<O>) -> Result<(), ReadError> {
        if member.informer.has_synced() {
            return Ok(());
        }
        let resource = self.name();
        Err(match CacheSync::hindrance(&member.informer) {
            Hindrance::NotStarted => ReadError::NotStarted { resource },
            hindrance => ReadError::NotSynced { resource, hindrance: Box::new(hindrance) },
        })
    }

    /// Adds an index, at any time: before the start, or while it runs. It is there at once, for what is there and for what
    /// comes.
    ///
    /// # Errors
    /// There is one of this name, or the cache has stopped.
    pub fn add_index(&self, name: impl Into<Arc<str>>, function: IndexFunc<O>) -> Result<(), AddIndexersError> {
        let name = name.into();
        if !self.shared.indices.lock().insert(Arc::clone(&name)) {
            return Err(IndexConflict { name }.into());
        }
        let mut members = self.shared.members.iter();
        members.try_for_each(|member| {
            member.informer.add_indexers(Indexers::none().with(Arc::clone(&name), function.clone()))
        })
    }

    /// Adds an index, unless there is one of this name: for two controllers that want the same. Where both add it at the same
    /// time, one may return when the other is still at it.
    ///
    /// # Errors
    /// The cache has stopped.
    pub fn add_index_if_absent(&self, name: impl Into<Arc<str>>, function: IndexFunc<O>) -> Result<(), Stopped> {
        match self.add_index(name, function) {
            Err(AddIndexersError::Stopped(stopped)) => Err(stopped),
            // A conflict is what was asked for.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// With [`OWNER_INDEX`], for [`ListQuery::owned_by`]; several may ask for it. See [`controlling_owner`] for its cost.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    /// use k8s_openapi::api::apps::v1::ReplicaSet;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewire_apiserver::ApiServer;
    /// use kubewire_controller::{Cached, Cluster, ListQuery, ReadError};
    ///
    /// fn pods_of(set: &ReplicaSet, pods: &Cached<Arc<Pod>>) -> Result<Vec<Arc<Pod>>, ReadError> {
    ///     pods.list(&ListQuery::all().owned_by(set))
    /// }
    ///
    /// let cluster = Cluster::new("cluster", ApiServer::start().await.client());
    /// let pods = cluster.cache().watch::<Arc<Pod>>()?.indexed_by_owner()?;
    /// # let _ = (pods_of, pods);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The cache has stopped.
    pub fn indexed_by_owner(self) -> Result<Self, Stopped> {
        self.add_index_if_absent(OWNER_INDEX, controlling_owner())?;
        Ok(self)
    }

    /// Waits until what was written is read: until the cache has taken in all that the server sent up to this version. With
    /// the version that a write of an object of this type has answered, the cache then has that write or something newer.
    /// Cancel-safe; put a time-out around it where the object may be outside of what is kept, though the next bookmark ends the
    /// wait there, too.
    ///
    /// # Errors
    /// The version is no number, or the informer has stopped; and none of the namespace is kept.
    pub async fn wait_for_version(&self, namespace: &str, version: &str) -> Result<(), WaitError> {
        let namespace = if self.shared.is_namespaced { namespace } else { "" };
        Ok(self.member(namespace)?.informer.wait_for_version(version).await?)
    }

    /// Waits until all first lists are there. Cancel-safe.
    ///
    /// # Errors
    /// It has stopped.
    pub async fn synced(&self) -> Result<(), Stopped> {
        for member in &self.shared.members {
            member.informer.synced().await?;
        }
        Ok(())
    }

    /// Whether all first lists are there.
    pub fn has_synced(&self) -> bool {
        self.shared.members.iter().all(|member| member.informer.has_synced())
    }

    /// How each informer is doing.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.shared.members.iter().map(|member| member.informer.status()).collect()
    }

    /// Whether both are handles to one watch.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether one of its informers was removed from the factory that made them.
    pub(super) fn is_over(&self, factory: &SharedInformerFactory) -> bool {
        self.shared.members.iter().any(|member| !factory.holds(&member.informer))
    }

    /// All at once.
    pub(super) fn remove_from(&self, factory: &SharedInformerFactory) {
        let informers: Vec<_> = self.shared.members.iter().map(|member| member.informer.clone()).collect();
        // How many were still there does not matter.
        let _ = factory.remove_all(&informers);
    }
}

/// Why the cache did not come to a version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The namespace is not kept.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The version will not be reached.
    #[error(transparent)]
    Version(#[from] WaitForVersionError),
}

/// What is asked of a watched type, whichever it is.
pub(super) trait AnyCached: Send + Sync {
    fn as_any(&self) -> &dyn std::any::Any;
    fn statuses(&self) -> Vec<InformerStatus>;
    fn unsynced(&self) -> Vec<(String, Hindrance)>;
}

impl<O: Object> AnyCached for Cached<O> {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn statuses(&self) -> Vec<InformerStatus> {
        self.status()
    }

    fn unsynced(&self) -> Vec<(String, Hindrance)> {
        let unsynced = self.informers().filter(|(_, informer)| !informer.has_synced());
        unsynced.map(|(_, informer)| (CacheSync::name(informer), CacheSync::hindrance(informer))).collect()
    }
}

/// What is wrong with a watch, if anything is: it has stopped, or has failed, and was not heard of, for longer than this.
pub(super) fn failing(status: &InformerStatus, tolerance: Duration) -> Option<String> {
    if status.phase == InformerPhase::New {
        return None;
    }
    let stopped = status.phase == InformerPhase::Stopped;
    let silent = status.staleness.is_none_or(|staleness| staleness > tolerance);
    let failing = status.reflector.failures_in_a_row > 0 && silent;
    (stopped || failing).then(|| status.to_string())
}

impl<O: Object> Clone for Cached<O> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<O: Object> fmt::Debug for Cached<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces: Vec<_> = self.informers().map(|(namespace, _)| namespace).collect();
        f.debug_struct("Cached").field("resource", &self.name()).field("namespaces", &namespaces).finish()
    }
}
