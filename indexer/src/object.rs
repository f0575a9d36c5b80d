//! What the cache needs to know of an object: its id and its labels. What more a controller asks is optional.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{KeyError, ObjectKey, OwnerReference};

/// What identifies an object and one state of it, borrowed from the object. Absent parts are empty strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Id<'a> {
    /// Empty for objects of cluster scope.
    pub namespace: &'a str,
    /// Never empty for an object that an API server has stored.
    pub name: &'a str,
    /// Differs between an object and a later one of the same name.
    pub uid: &'a str,
    /// The state of the object; an opaque text.
    pub resource_version: &'a str,
}

impl<'a> Id<'a> {
    /// An id of these parts; [`uid`](Self::uid) and [`resource_version`](Self::resource_version) are empty.
    pub const fn new(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace, name, uid: "", resource_version: "" }
    }

    /// With this uid.
    #[must_use]
    pub const fn uid(self, uid: &'a str) -> Self {
        Self { uid, ..self }
    }

    /// With this resource version.
    #[must_use]
    pub const fn resource_version(self, resource_version: &'a str) -> Self {
        Self { resource_version, ..self }
    }

    /// The key of namespace and name. Cost: a copy, see [`ObjectKey`].
    pub fn key(self) -> ObjectKey {
        ObjectKey::new(self.namespace, self.name)
    }
}

/// A handle to an object as the delta FIFO, the indexer, the informer, handlers and listers hold it: cheap to
/// clone, shared, read-only.
///
/// It is implemented for `Arc<T>` of every `T:` [`Meta`]; a representation with a handle of its own implements
/// it directly.
pub trait Object: Clone + Send + Sync + 'static {
    /// What identifies the object. Must not change during the object's life.
    fn id(&self) -> Id<'_>;

    /// The value of one label.
    fn label(&self, name: &str) -> Option<&str>;

    /// The object's key, also where its name is empty: what went through a delta FIFO has one.
    ///
    /// Cost: a copy, see [`ObjectKey`].
    fn key(&self) -> ObjectKey {
        self.id().key()
    }

    /// The object's key, or an error where its name is empty.
    fn try_key(&self) -> Result<ObjectKey, KeyError> {
        if self.id().name.is_empty() { Err(KeyError::NoName) } else { Ok(self.key()) }
    }

    /// `metadata.generation`: the number of the desired state. `None` where there is
    /// none, or where this representation does not keep it.
    fn generation(&self) -> Option<i64> {
        None
    }

    /// Whether the object is marked for deletion and waits for its finalizers. `false` too where this
    /// representation does not keep it.
    fn is_being_deleted(&self) -> bool {
        false
    }

    /// The owners, in the order in which they stand. Cost: allocates where there are
    /// some. Empty too where this representation does not keep them.
    fn owners(&self) -> Vec<OwnerReference<'_>> {
        Vec::new()
    }

    /// All labels, in no order. Cost: allocates where there are some. Empty too where this
    /// representation does not keep them.
    fn all_labels(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// All annotations, in no order. Cost: allocates where there are some, and may have to parse.
    /// Empty too where this representation does not keep them.
    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        Vec::new()
    }
}

/// What a plain struct tells of itself, so that an `Arc` of it is an [`Object`].
///
/// The feature `kube` implements it for every `kube_core::Resource`; `#[derive(Meta)]` (feature `derive`) for
/// a user's own struct. Never both for one type.
pub trait Meta {
    /// What identifies the object.
    fn id(&self) -> Id<'_>;

    /// The value of one label. Without an implementation there are none.
    fn label(&self, name: &str) -> Option<&str> {
        let _ = name;
        None
    }

    /// The object's key. To be written only where the object holds it; it must be that of [`id`](Self::id).
    fn key(&self) -> ObjectKey {
        self.id().key()
    }

    /// `metadata.generation`: the number of the desired state. Without an implementation there is none.
    fn generation(&self) -> Option<i64> {
        None
    }

    /// Whether the object is marked for deletion and waits for its finalizers. Without an implementation it is not.
    fn is_being_deleted(&self) -> bool {
        false
    }

    /// The owners, in the order in which they stand. Without an implementation there are none.
    fn owners(&self) -> Vec<OwnerReference<'_>> {
        Vec::new()
    }

    /// All labels, in no order. Without an implementation there are none.
    fn all_labels(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    /// All annotations, in no order. Without an implementation there are none.
    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        Vec::new()
    }
}

impl<T: Meta + Send + Sync + 'static> Object for Arc<T> {
    fn id(&self) -> Id<'_> {
        (**self).id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        (**self).label(name)
    }

    fn key(&self) -> ObjectKey {
        Meta::key(&**self)
    }

    fn generation(&self) -> Option<i64> {
        (**self).generation()
    }

    fn is_being_deleted(&self) -> bool {
        (**self).is_being_deleted()
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        (**self).owners()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        (**self).all_labels()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        (**self).all_annotations()
    }
}
