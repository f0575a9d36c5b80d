//! A read-only view of an indexer.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::Equivalent;

use crate::{Indexer, LabelSelector, NAMESPACE_INDEX, Object, ObjectKey};

/// Reads objects out of an [`Indexer`], by key, by namespace and by label selector, as client-go's listers; it
/// cannot write. Cloning gives another handle.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{Id, Indexer, Indexers, LabelSelector, Lister, Meta};
///
/// #[derive(Debug)]
/// struct Pod(&'static str, &'static str);
///
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new(self.0, self.1)
///     }
/// }
///
/// let indexer = Indexer::with_indexers(Indexers::by_namespace())?;
/// indexer.add(Arc::new(Pod("default", "web")))?;
/// indexer.add(Arc::new(Pod("kube-system", "dns")))?;
///
/// let pods = Lister::new(indexer, "pods");
/// assert_eq!(pods.list(&LabelSelector::everything()).len(), 2);
/// assert_eq!(pods.namespace("default").list(&LabelSelector::everything()).len(), 1);
/// assert!(pods.namespace("default").get("web").is_some());
/// let error = pods.require(&("default", "nope")).unwrap_err();
/// assert_eq!(error.to_string(), r#"pods "default/nope" not found"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lister<O> {
    indexer: Indexer<O>,
    shared: Arc<Shared>,
}

struct Shared {
    resource: Box<str>,
    /// That there is no index by namespace has been said.
    warned: AtomicBool,
}

/// There is no such object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} {:?} not found", .key.as_str())]
#[non_exhaustive]
pub struct NotFound {
    /// What was looked for, such as `pods`.
    pub resource: String,
    /// The key that was looked for.
    pub key: ObjectKey,
}

impl<O: Object> Lister<O> {
    /// A lister over an indexer; `resource` is what it lists, for errors, such as `pods`.
    pub fn new(indexer: Indexer<O>, resource: &str) -> Self {
        Self { indexer, shared: Arc::new(Shared { resource: resource.into(), warned: AtomicBool::new(false) }) }
    }

    /// The object of this key.
    pub fn get<Q: Equivalent<ObjectKey> + Hash + ?Sized>(&self, key: &Q) -> Option<O> {
        self.indexer.get_by_key(key)
    }

    /// The object of this namespace and name, or an error that names the resource; as `GenericLister`'s `Get`.
    pub fn require(&self, key: &(&str, &str)) -> Result<O, NotFound> {
        self.get(key)
            .ok_or_else(|| NotFound { resource: self.shared.resource.to_string(), key: ObjectKey::new(key.0, key.1) })
    }

    /// The objects that the selector selects, as of one moment, in no order.
    ///
    /// Cost: O(all objects), without a lock; one clone for each result.
    pub fn list(&self, selector: &LabelSelector) -> Vec<O> {
        if selector.is_nothing() {
            Vec::new()
        } else if selector.is_everything() {
            self.indexer.list().to_vec()
        } else {
            self.indexer.store().list_where(|_, object| selector.matches_object(object))
        }
    }

    /// The view of one namespace; of all where it is empty.
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> NamespaceLister<'a, O> {
        NamespaceLister { lister: self, namespace }
    }

    fn list_in(&self, namespace: &str, selector: &LabelSelector) -> Vec<O> {
        if namespace.is_empty() || selector.is_nothing() {
            return self.list(selector);
        }
        match self.indexer.by_index(NAMESPACE_INDEX, namespace) {
            Ok(mut objects) => {
                if !selector.is_everything() {
                    objects.retain(|object| selector.matches_object(object));
                }
                objects
            }
            Err(_) => {
                if !self.shared.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        resource = &*self.shared.resource,
                        "no index {NAMESPACE_INDEX:?}: each list of a namespace looks at all objects"
                    );
                }
                let wanted = |object: &O| object.id().namespace == namespace && selector.matches_object(object);
                self.indexer.store().list_where(|_, object| wanted(object))
            }
        }
    }
}

/// The objects of one namespace, see [`Lister::namespace`].
#[derive(Clone, Copy, Debug)]
pub struct NamespaceLister<'a, O: Object> {
    lister: &'a Lister<O>,
    namespace: &'a str,
}

impl<O: Object> NamespaceLister<'_, O> {
    /// The object of this name. Where the namespace is empty: of cluster scope.
    pub fn get(&self, name: &str) -> Option<O> {
        self.lister.get(&(self.namespace, name))
    }

    /// The object of this name, or an error that names the resource.
    pub fn require(&self, name: &str) -> Result<O, NotFound> {
        self.lister.require(&(self.namespace, name))
    }

    /// The objects of the namespace that the selector selects, as of one moment, in no order; of all namespaces
    /// where it is empty.
    ///
    /// Cost: O(objects of the namespace) with the index [`NAMESPACE_INDEX`]; without it O(all objects), and one
    /// warning is logged.
    pub fn list(&self, selector: &LabelSelector) -> Vec<O> {
        self.lister.list_in(self.namespace, selector)
    }
}

impl<O> Clone for Lister<O> {
    fn clone(&self) -> Self {
        Self { indexer: self.indexer.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<O: Object> fmt::Debug for Lister<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("resource", &self.shared.resource).field("indexer", &self.indexer).finish()
    }
}
