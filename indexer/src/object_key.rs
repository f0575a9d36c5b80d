//! `namespace/name`, the key of an object.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The key of an object: its namespace (empty for cluster scope) and its name.
///
/// It prints as `namespace/name`, or `name` alone for cluster scope, and parses from the same text. One
/// allocation; cloning counts a reference.
#[derive(Clone)]
pub struct ObjectKey {
    /// `namespace/name`, or the name alone.
    text: Arc<str>,
    /// Length of the namespace; 0 for cluster scope, and then `text` has no leading slash.
    namespace_len: u32,
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
    /// Cost: one allocation.
    pub fn new(namespace: &str, name: &str) -> Self {
        let namespace_len = u32::try_from(namespace.len()).unwrap_or(u32::MAX);
        if namespace.is_empty() {
            return Self { text: Arc::from(name), namespace_len };
        }
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Self { text: Arc::from(text), namespace_len }
    }

    /// The key of an object of cluster scope.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }

    /// The namespace; empty for cluster scope.
    pub fn namespace(&self) -> &str {
        &self.text[..self.namespace_len as usize]
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self.namespace_len as usize {
            0 => &self.text,
            len => &self.text[len + 1..],
        }
    }

    /// The printed form, without a copy.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match text.split_once('/') {
            None => Ok(Self::cluster(text)),
            Some((_, name)) if name.contains('/') => Err(KeyError::Format(text.to_owned())),
            Some((namespace, name)) => Ok(Self::new(namespace, name)),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.namespace_len == other.namespace_len && self.text == other.text
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}
