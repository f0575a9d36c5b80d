//! `namespace/name`, the key of an object.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use arrayvec::ArrayString;
use hashbrown::Equivalent;
use smallvec::SmallVec;

/// Room for any key that Kubernetes allows: a namespace has up to 63 characters, a name up to 253.
const USUAL_LEN: usize = 512;

/// The longest text that a key holds by itself. Keys of pods have mostly 30 to 50 bytes; with this many a key fills one
/// cache line.
const SHORT_LEN: usize = 56;

/// The key of an object: its namespace (empty for cluster scope) and its name.
///
/// It prints as `namespace/name`, or `name` alone for cluster scope, and parses from the same text; as
/// client-go's `ObjectName`. Parsing what was printed gives the same key, unless a part has a slash in it: the
/// parts are held apart, so that such a key is distinct from all others, but its text is ambiguous.
///
/// A pair `(namespace, name)` of texts finds a key in a store, without an allocation:
///
/// ```
/// use kubewire_indexer::{ObjectKey, Store};
///
/// let ages = Store::new();
/// ages.add(ObjectKey::new("default", "web"), 7);
/// assert_eq!(ages.get(&("default", "web")), Some(7));
/// ```
///
/// Cost: 64 bytes, and no allocation where the text has up to 56 bytes; cloning copies them. A longer text is allocated
/// once, and cloning counts a reference.
#[derive(Clone)]
pub struct ObjectKey(Repr);

/// `namespace/name`, or the name alone, and the length of the namespace: 0 for cluster scope, and then the text has no
/// leading slash.
#[derive(Clone)]
enum Repr {
    Short { namespace_len: u8, text: ArrayString<SHORT_LEN> },
    Long { namespace_len: usize, text: Arc<str> },
}

/// Why there is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has more than one slash.
    #[error("unexpected key format {0:?}: want `namespace/name`, or `name` for cluster scope")]
    Format(String),
    /// The object has no name.
    #[error("the object has no name (metadata.name is missing or empty)")]
    NoName,
}

impl ObjectKey {
    /// The key of an object in a namespace; an empty namespace means cluster scope.
    ///
    /// Cost: none but a copy; for more than 56 bytes one allocation.
    pub fn new(namespace: &str, name: &str) -> Self {
        let mut text = ArrayString::new();
        let fits = match namespace {
            "" => text.try_push_str(name).is_ok(),
            _ => [namespace, "/", name].into_iter().all(|part| text.try_push_str(part).is_ok()),
        };
        // What fits is shorter than 256 bytes.
        Self(if fits {
            Repr::Short { namespace_len: namespace.len() as u8, text }
        } else {
            Self::long(namespace, name)
        })
    }

    #[cold]
    fn long(namespace: &str, name: &str) -> Repr {
        let namespace_len = namespace.len();
        if namespace.is_empty() {
            return Repr::Long { namespace_len, text: Arc::from(name) };
        }
        // Put together on the stack, so that the one allocation is that of the `Arc`.
        let mut text = SmallVec::<[u8; USUAL_LEN]>::new();
        text.extend_from_slice(namespace.as_bytes());
        text.push(b'/');
        text.extend_from_slice(name.as_bytes());
        let text = str::from_utf8(&text).expect("it is made of texts");
        Repr::Long { namespace_len, text: Arc::from(text) }
    }

    /// The key of an object of cluster scope.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }

    /// The namespace; empty for cluster scope.
    #[inline]
    pub fn namespace(&self) -> &str {
        self.parts().0
    }

    /// The name.
    #[inline]
    pub fn name(&self) -> &str {
        self.parts().1
    }

    /// The printed form, without a copy.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.text_and_len().0
    }

    #[inline]
    fn parts(&self) -> (&str, &str) {
        match self.text_and_len() {
            (name, 0) => ("", name),
            (text, len) => (&text[..len], &text[len + 1..]),
        }
    }

    #[inline]
    fn text_and_len(&self) -> (&str, usize) {
        match &self.0 {
            Repr::Short { namespace_len, text } => (text, usize::from(*namespace_len)),
            Repr::Long { namespace_len, text } => (text, *namespace_len),
        }
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        split_key(text).map(|(namespace, name)| Self::new(namespace, name))
    }
}

/// Splits `namespace/name`, or `name` alone, into namespace and name; as client-go's `SplitMetaNamespaceKey`.
///
/// More than one slash is an error, empty parts are not. Cost: no allocation but for an error.
///
/// ```
/// use kubewire_indexer::split_key;
///
/// assert_eq!(split_key("default/web"), Ok(("default", "web")));
/// assert_eq!(split_key("node-1"), Ok(("", "node-1")));
/// assert!(split_key("a/b/c").is_err());
/// ```
pub fn split_key(text: &str) -> Result<(&str, &str), KeyError> {
    match text.split_once('/') {
        None => Ok(("", text)),
        Some((_, name)) if name.contains('/') => Err(KeyError::Format(text.to_owned())),
        Some(parts) => Ok(parts),
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for ObjectKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.text_and_len() == other.text_and_len()
    }
}

impl Eq for ObjectKey {}

/// As the pair `(namespace, name)`, so that such a pair finds the key.
impl Hash for ObjectKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl Equivalent<ObjectKey> for (&str, &str) {
    #[inline]
    fn equivalent(&self, key: &ObjectKey) -> bool {
        *self == key.parts()
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}
