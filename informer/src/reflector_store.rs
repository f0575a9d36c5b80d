//! The seam between the reflector and what it fills: client-go's `ReflectorStore`.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use kubewire_indexer::{Id, KeyError, Object, ObjectKey};

/// What a reflector writes into. The delta FIFO implements it; so may anything that wants the raw stream of
/// lists and events.
///
/// All methods return without waiting, and are called by one reflector task at a time. A transform runs inside
/// [`admit`](Self::admit), [`add`](Self::add), [`update`](Self::update) and [`delete`](Self::delete), exactly
/// once for each object, outside every lock.
pub trait ReflectorStore<O: Object>: Send + Sync + 'static {
    /// Prepares one object of a list: takes its key, and transforms it. A reflector calls it for each item as
    /// soon as the item is decoded, so that no more than the transformed objects are held.
    ///
    /// Where the very same state (uid and version) is cached already, the cached handle comes back, and the
    /// new one is dropped at once: a relist holds unchanged objects once. (Most are not even decoded, by
    /// [`cached`](Self::cached).)
    fn admit(&self, object: O) -> Result<Admitted<O>, AdmitError>;

    /// The cached handle of this very state (key, uid and version), transformed as it is. A relist asks for it before an
    /// item is decoded: one that is cached is neither decoded nor admitted, and goes into the list as this handle.
    ///
    /// `None` by default: then each item is decoded, and [`admit`](Self::admit) decides.
    fn cached(&self, state: Id<'_>) -> Option<O> {
        let _ = state;
        None
    }

    /// An `ADDED` event.
    fn add(&self, object: O) -> Result<(), AdmitError>;

    /// A `MODIFIED` event.
    fn update(&self, object: O) -> Result<(), AdmitError>;

    /// A `DELETED` event, with the object's last state.
    fn delete(&self, object: O) -> Result<(), AdmitError>;

    /// A `DELETED` event of which nothing but the key could be read.
    fn delete_key(&self, key: ObjectKey);

    /// A complete list, or the end of a streaming list.
    fn replace(&self, list: Replacement<O>);

    /// A resync check is due. No request is made for it.
    fn resync(&self);

    /// A bookmark: all changes up to this version were passed on.
    fn bookmark(&self, resource_version: &str);

    /// The version that the reflector has come to, after each event that moves it, bookmarks included.
    fn update_resource_version(&self, resource_version: &str) {
        let _ = resource_version;
    }

    /// All events that were at hand are passed on: whoever waits for them may be woken now, once for all. It is called
    /// after one of them or after several, and always before the reflector waits.
    fn flush(&self) {}
}

/// An object with its key, transformed.
#[derive(Clone, Debug)]
pub struct Admitted<O> {
    pub(crate) key: ObjectKey,
    pub(crate) received: Received<O>,
}

/// An object as it came, transformed, where its key stands elsewhere.
#[derive(Clone, Debug)]
pub struct Received<O> {
    pub(crate) object: O,
    /// The version that the server gave, where a transform has changed or removed it.
    pub(crate) original_version: Option<Arc<str>>,
}

impl<O> Received<O> {
    /// An object as it is, without any transform.
    pub(crate) fn new(object: O) -> Self {
        Self { object, original_version: None }
    }

    /// The object, after the transform.
    pub fn object(&self) -> &O {
        &self.object
    }

    /// The object, after the transform.
    pub fn into_object(self) -> O {
        self.object
    }
}

impl<O: Object> Received<O> {
    /// The version that the server gave to this state, whatever a transform made of it.
    pub fn resource_version(&self) -> &str {
        self.original_version.as_deref().unwrap_or(self.object.id().resource_version)
    }
}

impl<O: Object> Admitted<O> {
    /// An object as it is, without any transform; an error where it has no name.
    pub fn new(object: O) -> Result<Self, AdmitError> {
        Ok(Self { key: object.try_key()?, received: Received::new(object) })
    }

    /// The key of the object as it is now, after the transform.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The object, after the transform.
    pub fn object(&self) -> &O {
        &self.received.object
    }

    /// The object, after the transform.
    pub fn into_object(self) -> O {
        self.received.object
    }

    /// The version that the server gave to this state, whatever a transform made of it.
    pub fn resource_version(&self) -> &str {
        self.received.resource_version()
    }
}

/// A complete list, as it goes into a [`ReflectorStore`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replacement<O> {
    /// The objects in the order of the list.
    pub items: Vec<Admitted<O>>,
    /// The version of the list.
    pub resource_version: String,
    /// Keys of objects that exist but could not be taken (undecodable, or refused by the transform): what is
    /// cached under them stays as it is.
    pub kept: Vec<ObjectKey>,
    /// Whether the list had an item that exists but could not even be named: then a missing key proves
    /// nothing, and nothing that is cached is taken as deleted.
    pub incomplete: bool,
}

impl<O> Replacement<O> {
    /// A complete list at this version.
    pub fn new(items: Vec<Admitted<O>>, resource_version: impl Into<String>) -> Self {
        Self { items, resource_version: resource_version.into(), kept: Vec::new(), incomplete: false }
    }
}

/// Why an object was not taken.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The object has no name, so no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The transform failed or panicked.
    #[error("the transform of {key} failed: {source}")]
    Transform {
        /// The object's key, before the transform.
        key: ObjectKey,
        /// What the transform said.
        source: TransformError,
    },
}

impl AdmitError {
    /// The key of the object that was not taken, where it has one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Key(_) => None,
            Self::Transform { key, .. } => Some(key),
        }
    }
}

/// What a failing transform says. Cheap to clone, so that it can be kept as the last error.
#[derive(Clone)]
pub struct TransformError(Arc<dyn Error + Send + Sync>);

impl TransformError {
    /// An error with a message, or any other error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl fmt::Debug for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for TransformError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
