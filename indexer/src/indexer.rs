//! A store of objects under their own keys.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::Equivalent;
use smallvec::SmallVec;

use crate::version::Version;
use crate::{
    Change, Deleted, Id, IndexConflict, IndexError, IndexFailure, IndexFunc, Indexers, KeyError, List, Object,
    ObjectKey, Store, TransactionError, UnknownIndex,
};

/// The usual name of the index by namespace, as client-go's `NamespaceIndex`. Listers use it where it exists.
pub const NAMESPACE_INDEX: &str = "namespace";

impl<O: Object> IndexFunc<O> {
    /// The namespace of the object, as client-go's `MetaNamespaceIndexFunc`. Empty for cluster scope.
    pub fn namespace() -> Self {
        Self::one(|object: &O| object.id().namespace)
    }

    /// The name of the object.
    pub fn name() -> Self {
        Self::one(|object: &O| object.id().name)
    }
}

impl<O: Object> Indexers<O> {
    /// The index by namespace under its usual name.
    pub fn by_namespace() -> Self {
        Self::none().with(NAMESPACE_INDEX, IndexFunc::namespace())
    }
}

/// A [`Store`] of objects that know their own key and version, as client-go's `Indexer`.
///
/// Reading is that of the store. Each write of an object remembers the object's version
/// ([`last_version`](Self::last_version)); objects without one, tombstones and deletes by key leave it. Cloning
/// gives another handle to the same content.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{Id, Indexer, Indexers, Meta, ObjectKey, NAMESPACE_INDEX};
///
/// struct Pod { name: &'static str, version: &'static str }
///
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", self.name).resource_version(self.version)
///     }
/// }
///
/// let pods = Indexer::with_indexers(Indexers::by_namespace())?;
/// pods.add(Arc::new(Pod { name: "web", version: "7" }))?;
///
/// assert!(pods.get_by_key(&ObjectKey::new("default", "web")).is_some());
/// assert_eq!(pods.by_index(NAMESPACE_INDEX, "default")?.len(), 1);
/// assert_eq!(pods.last_version(), "7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Indexer<O> {
    store: Store<ObjectKey, O>,
}

impl<O: Object> Indexer<O> {
    /// An empty indexer without an index.
    pub fn new() -> Self {
        Self { store: Store::new() }
    }

    /// An empty indexer with these indices. The error names an index that was given twice.
    pub fn with_indexers(indexers: Indexers<O>) -> Result<Self, IndexConflict> {
        Ok(Self { store: Store::with_indexers(indexers)? })
    }

    /// The store beneath.
    pub fn store(&self) -> &Store<ObjectKey, O> {
        &self.store
    }

    /// Adds an object under its own key, or replaces the one that is there, which is returned.
    pub fn add(&self, object: O) -> Result<Option<O>, KeyError> {
        Ok(self.put(object.try_key()?, object))
    }

    /// The same as [`add`](Self::add), as in client-go.
    pub fn update(&self, object: O) -> Result<Option<O>, KeyError> {
        self.add(object)
    }

    /// As [`add`](Self::add), under a key that the caller has at hand: nothing is computed, and nothing can fail.
    pub fn put(&self, key: ObjectKey, object: O) -> Option<O> {
        let version = version_of(&object);
        self.store.put(key, object, version)
    }

    /// Removes the object that has the key of this one, and remembers the version of this one. What is removed
    /// is returned; if nothing is there that is no error.
    pub fn delete(&self, object: &O) -> Result<Option<O>, KeyError> {
        match object.id() {
            Id { name: "", .. } => Err(KeyError::NoName),
            Id { namespace, name, .. } => Ok(self.store.remove(&(namespace, name), version_of(object))),
        }
    }

    /// Removes a deleted object. A tombstone's key counts, whatever its object says, and its version does not.
    pub fn delete_deleted(&self, deleted: &Deleted<O>) -> Result<Option<O>, KeyError> {
        match deleted {
            Deleted::Known(object) => self.delete(object),
            Deleted::FinalStateUnknown { key, .. } => Ok(self.delete_by_key(&**key)),
        }
    }

    /// Removes the object of this key, which is returned. The version stays.
    pub fn delete_by_key<Q: Equivalent<ObjectKey> + Hash + ?Sized>(&self, key: &Q) -> Option<O> {
        self.store.remove(key, None)
    }

    /// Makes all these changes in one step, in order: a reader sees all of them or none. The last version among
    /// them is remembered.
    ///
    /// Returns, for each change, the object that it replaced or removed.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change<O>>) -> Vec<Option<O>> {
        let changes: SmallVec<[_; 2]> = changes.into_iter().collect();
        let version = changes.iter().rev().find_map(Change::version);
        // The last states of deleted objects live until the lock is released.
        let mut deleted = Vec::new();
        let writes = changes.into_iter().map(|mut change| {
            if let Change::Delete { last, .. } = &mut change {
                deleted.extend(last.take());
            }
            change.into_write()
        });
        self.store.write(writes.collect(), version)
    }

    /// Makes one change, and gives what it replaced or removed. As [`apply`](Self::apply), without an allocation.
    pub fn apply_one(&self, change: Change<O>) -> Option<O> {
        match change {
            Change::Put { key, object } => self.put(key, object),
            Change::Delete { key, last } => self.store.remove(&key, last.as_ref().and_then(version_of)),
        }
    }

    /// As [`apply`](Self::apply), where the key of some objects may be missing: those fail, all others are made, and
    /// the error says which; as client-go's `Transaction`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kubewire_indexer::{Change, Id, Indexer, Meta};
    ///
    /// struct Pod(&'static str);
    ///
    /// impl Meta for Pod {
    ///     fn id(&self) -> Id<'_> {
    ///         Id::new("default", self.0)
    ///     }
    /// }
    ///
    /// let pods = Indexer::new();
    /// let changes = ["a", "", "b"].map(|name| Change::put(Arc::new(Pod(name))));
    /// let error = pods.transaction(changes).err().unwrap();
    /// assert_eq!(error.made.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [0, 2]);
    /// assert_eq!(pods.len(), 2);
    /// ```
    pub fn transaction<E>(
        &self,
        changes: impl IntoIterator<Item = Result<Change<O>, E>>,
    ) -> Result<Vec<Option<O>>, TransactionError<O, E>> {
        let mut good = Vec::new();
        let mut positions = Vec::new();
        let mut failed = Vec::new();
        for (position, change) in changes.into_iter().enumerate() {
            match change {
                Ok(change) => {
                    good.push(change);
                    positions.push(position);
                }
                Err(error) => failed.push((position, error)),
            }
        }
        let replaced = self.apply(good);
        if failed.is_empty() {
            return Ok(replaced);
        }
        Err(TransactionError { made: positions.into_iter().zip(replaced).collect(), failed })
    }

    /// Replaces the whole content by a list, in one step: a reader sees the old content or the new one. The
    /// version of the list is remembered. Where a key comes twice, the later object counts.
    ///
    /// If an object has no name, nothing is changed.
    ///
    /// Cost: O(n), without the lock; under the lock O(1). The old objects are dropped after the lock.
    pub fn replace(&self, objects: impl IntoIterator<Item = O>, version: &str) -> Result<(), KeyError> {
        let keyed = |object: O| Ok((object.try_key()?, object));
        let entries = objects.into_iter().map(keyed).collect::<Result<Vec<_>, _>>()?;
        self.replace_entries(entries, version);
        Ok(())
    }

    /// As [`replace`](Self::replace), under keys that the caller has at hand.
    pub fn replace_entries(&self, entries: impl IntoIterator<Item = (ObjectKey, O)>, version: &str) {
        self.store.replace_at(entries, version);
    }

    /// Remembers the version of a bookmark.
    pub fn bookmark(&self, version: &str) {
        self.store.bookmark(version);
    }

    /// The version that came last, by a list, a bookmark, or the write of an object: the last one, not the
    /// highest. Empty at first.
    pub fn last_version(&self) -> String {
        self.store.last_version()
    }

    /// The stored object that has the key of this one.
    pub fn get(&self, object: &O) -> Option<O> {
        let Id { namespace, name, .. } = object.id();
        self.store.get(&(namespace, name))
    }

    /// The object of this key. Cost: one look-up, one clone of the handle.
    pub fn get_by_key<Q: Equivalent<ObjectKey> + Hash + ?Sized>(&self, key: &Q) -> Option<O> {
        self.store.get(key)
    }

    /// Whether there is an object of this key.
    pub fn contains<Q: Equivalent<ObjectKey> + Hash + ?Sized>(&self, key: &Q) -> bool {
        self.store.contains(key)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// All objects as of one moment, in no order. See [`Store::list`].
    pub fn list(&self) -> List<ObjectKey, O> {
        self.store.list()
    }

    /// All keys as of one moment, in no order.
    pub fn list_keys(&self) -> Vec<ObjectKey> {
        self.store.list_keys()
    }

    /// The objects that share a value of the index with this one, see [`Store::index`].
    pub fn index(&self, name: &str, object: &O) -> Result<Vec<O>, IndexError> {
        self.store.index(name, object)
    }

    /// The objects under this value of the index, in no order.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<O>, UnknownIndex> {
        self.store.by_index(name, value)
    }

    /// The keys of the objects under this value of the index, sorted.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, UnknownIndex> {
        self.store.index_keys(name, value)
    }

    /// The values of the index, in no order; none if there is no such index.
    pub fn list_index_func_values(&self, name: &str) -> Vec<Arc<str>> {
        self.store.list_index_func_values(name)
    }

    /// The names of the indices.
    pub fn indexer_names(&self) -> Vec<Arc<str>> {
        self.store.indexer_names()
    }

    /// Adds indices at any time, see [`Store::add_indexers`].
    pub fn add_indexers(&self, indexers: Indexers<O>) -> Result<(), IndexConflict> {
        self.store.add_indexers(indexers)
    }

    /// The index functions that have failed, see [`Store::index_failures`].
    pub fn index_failures(&self) -> Vec<IndexFailure<ObjectKey>> {
        self.store.index_failures()
    }
}

/// The version to remember of an object; none where it has none.
pub(crate) fn version_of<O: Object>(object: &O) -> Option<Version> {
    Some(object.id().resource_version).filter(|version| !version.is_empty()).map(Version::from)
}

impl<O> Clone for Indexer<O> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<O: Object> Default for Indexer<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Object> fmt::Debug for Indexer<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Indexer").field(&self.store).finish()
    }
}
