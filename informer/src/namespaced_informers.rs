//! Several namespaces, read as one store.

use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{IndexConflict, Object, ObjectKey, UnknownIndex};
use kubewire_listwatch::ListerWatcher;
use tokio_util::sync::CancellationToken;

use crate::{
    CacheSyncError, Informer, InformerOptions, Registration, ResourceEventHandler, RunningInformer, Stopped,
    wait_for_cache_sync,
};

/// One informer for each of several namespaces, for those who may not list all of them. Cloning gives another
/// handle to the same informers.
///
/// Each namespace has its own list, watch and failures; no order holds between objects of different ones.
#[derive(Clone, Debug)]
pub struct NamespacedInformers<O: Object> {
    /// By namespace, in the order in which they were given.
    informers: Arc<[(String, Informer<O>)]>,
}

impl<O: Object> NamespacedInformers<O> {
    /// Makes one informer for each namespace; one that is given twice counts once. Both functions are called
    /// with the namespace.
    ///
    /// The error names an index that was given twice.
    pub fn new<L: ListerWatcher<Object = O>>(
        namespaces: impl IntoIterator<Item = impl Into<String>>,
        mut lister_watcher: impl FnMut(&str) -> L,
        mut options: impl FnMut(&str) -> InformerOptions<O>,
    ) -> Result<Self, IndexConflict> {
        let mut informers: Vec<(String, Informer<O>)> = Vec::new();
        for namespace in namespaces {
            let namespace: String = namespace.into();
            if informers.iter().any(|(other, _)| *other == namespace) {
                continue;
            }
            let lister_watcher = lister_watcher(&namespace);
            let mut options = options(&namespace);
            if options.description.is_none() {
                options.description = Some(format!("{} in {namespace}", lister_watcher.resource()));
            }
            let informer = Informer::with_options(lister_watcher, options)?;
            informers.push((namespace, informer));
        }
        Ok(Self { informers: informers.into() })
    }

    /// The informer of one namespace.
    pub fn informer(&self, namespace: &str) -> Option<&Informer<O>> {
        self.informers.iter().find(|(other, _)| other == namespace).map(|(_, informer)| informer)
    }

    /// All namespaces with their informers.
    pub fn informers(&self) -> impl Iterator<Item = (&str, &Informer<O>)> {
        self.informers.iter().map(|(namespace, informer)| (namespace.as_str(), informer))
    }

    /// Adds a handler to each informer, or, where one has stopped, to none. They are called independently of one another, and
    /// at the same time.
    pub fn add_handlers<H: ResourceEventHandler<O>>(
        &self,
        mut handler: impl FnMut(&str) -> H,
    ) -> Result<Vec<Registration>, Stopped> {
        let mut added: Vec<Registration> = Vec::with_capacity(self.informers.len());
        for (namespace, informer) in self.informers() {
            match informer.add_handler(handler(namespace)) {
                Ok(registration) => added.push(registration),
                Err(stopped) => {
                    added.iter().for_each(Registration::remove);
                    return Err(stopped);
                }
            }
        }
        Ok(added)
    }

    /// Starts all, see [`Informer::start`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use = "dropping them stops the informers"]
    pub fn start(&self, stop: &CancellationToken) -> Vec<RunningInformer> {
        self.informers().map(|(_, informer)| informer.start(stop.clone())).collect()
    }

    /// Whether all are synced.
    pub fn has_synced(&self) -> bool {
        self.informers().all(|(_, informer)| informer.has_synced())
    }

    /// Waits until all are synced, see [`wait_for_cache_sync`]. Cancel-safe.
    pub async fn wait_for_cache_sync(&self, stop: &CancellationToken, timeout: Duration) -> Result<(), CacheSyncError> {
        wait_for_cache_sync(stop, timeout, self.informers().map(|(_, informer)| informer)).await
    }

    /// The object of this key; none where its namespace is not among these.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<O> {
        self.informer(key.namespace())?.indexer().get_by_key(key)
    }

    /// The objects of all namespaces, those of each as of one moment.
    pub fn list(&self) -> Vec<O> {
        self.informers().flat_map(|(_, informer)| informer.indexer().list()).collect()
    }

    /// The objects of all namespaces under a value of an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<O>, UnknownIndex> {
        let mut found = Vec::new();
        for (_, informer) in self.informers() {
            found.extend(informer.indexer().by_index(name, value)?);
        }
        Ok(found)
    }
}
