//! Index functions and the names of their indices.

use std::fmt;
use std::sync::Arc;

use crate::IndexFunc;

/// Index functions and the names of their indices, as client-go's `Indexers`.
///
/// A name that stands in it twice is a conflict, and is reported as one by the store that is given them.
///
/// ```
/// use kubewire_indexer::{IndexFunc, Indexers};
///
/// let indexers = Indexers::none()
///     .with("first-letter", IndexFunc::many(|word: &String| word.get(..1).map(str::to_owned)))
///     .with("word", IndexFunc::one(|word: &String| word));
/// assert_eq!(indexers.names().collect::<Vec<_>>(), ["first-letter", "word"]);
/// ```
pub struct Indexers<V> {
    functions: Vec<(Arc<str>, IndexFunc<V>)>,
}

impl<V> Indexers<V> {
    /// No index.
    pub const fn none() -> Self {
        Self { functions: Vec::new() }
    }

    /// With one more index.
    #[must_use = "the indexers are returned with the index, not changed in place"]
    pub fn with(mut self, name: impl Into<Arc<str>>, function: IndexFunc<V>) -> Self {
        self.functions.push((name.into(), function));
        self
    }

    /// The names, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| &**name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    pub(crate) fn into_functions(self) -> Vec<(Arc<str>, IndexFunc<V>)> {
        self.functions
    }
}

impl<V> Default for Indexers<V> {
    fn default() -> Self {
        Self::none()
    }
}

impl<V> Clone for Indexers<V> {
    fn clone(&self) -> Self {
        Self { functions: self.functions.clone() }
    }
}

impl<V> fmt::Debug for Indexers<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl<V, N: Into<Arc<str>>> FromIterator<(N, IndexFunc<V>)> for Indexers<V> {
    fn from_iter<I: IntoIterator<Item = (N, IndexFunc<V>)>>(functions: I) -> Self {
        Self { functions: functions.into_iter().map(|(name, function)| (name.into(), function)).collect() }
    }
}

impl<V, N: Into<Arc<str>>, const LEN: usize> From<[(N, IndexFunc<V>); LEN]> for Indexers<V> {
    fn from(functions: [(N, IndexFunc<V>); LEN]) -> Self {
        functions.into_iter().collect()
    }
}
