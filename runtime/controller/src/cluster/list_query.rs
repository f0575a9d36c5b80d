//! Which objects to list.

use kubewire_indexer::{LabelSelector, Meta};

use super::owner_index::OWNER_INDEX;

/// Which objects to list. All, unless something is said; of several things all must hold.
#[derive(Clone, Debug)]
#[must_use = "a query does nothing by itself"]
pub struct ListQuery {
    pub(super) namespace: String,
    pub(super) labels: LabelSelector,
    pub(super) indexed: Vec<(String, String)>,
    pub(super) limit: usize,
}

impl ListQuery {
    /// All objects.
    pub fn all() -> Self {
        Self { namespace: String::new(), labels: LabelSelector::everything(), indexed: Vec::new(), limit: usize::MAX }
    }

    /// Those of one namespace; of all where it is empty.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// Those with such labels.
    pub fn labels(self, selector: LabelSelector) -> Self {
        Self { labels: selector, ..self }
    }

    /// Those that an index files under this value. More than once: under all of these.
    pub fn by_index(mut self, index: impl Into<String>, value: impl Into<String>) -> Self {
        self.indexed.push((index.into(), value.into()));
        self
    }

    /// Those that this object owns, as its controller: in its namespace, or in all where it lives in none. They are found by
    /// [`OWNER_INDEX`], which [`indexed_by_owner`](crate::Cached::indexed_by_owner) adds. An object without a uid, which was
    /// not read from a server, owns nothing.
    pub fn owned_by(self, owner: &impl Meta) -> Self {
        let owner = owner.id();
        self.namespace(owner.namespace).by_index(OWNER_INDEX, owner.uid)
    }

    /// At most so many of those that are meant, whichever. There are no pages: a cache is read at once.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }
}

impl Default for ListQuery {
    fn default() -> Self {
        Self::all()
    }
}
