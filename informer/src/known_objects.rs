//! What a delta FIFO may look up: client-go's `KeyListerGetter`.

use kubewire_indexer::{Indexer, Object, ObjectKey};

/// The objects that a consumer has taken out of a delta FIFO and stored, so that the FIFO can tell which ones
/// a list lacks, and resync the rest.
///
/// An [`Indexer`] is one. The methods are called while the FIFO is locked: they
/// must not call back into it, nor wait for anything that does.
pub trait KnownObjects<O: Object>: Send + Sync {
    /// The keys of all objects.
    fn known_keys(&self) -> Vec<ObjectKey>;

    /// The object under a key.
    fn known(&self, key: &ObjectKey) -> Option<O>;

    /// Whether there is an object under a key.
    fn is_known(&self, key: &ObjectKey) -> bool {
        self.known(key).is_some()
    }
}

impl<O: Object> KnownObjects<O> for Indexer<O> {
    fn known_keys(&self) -> Vec<ObjectKey> {
        self.list_keys()
    }

    fn known(&self, key: &ObjectKey) -> Option<O> {
        self.get_by_key(key)
    }

    fn is_known(&self, key: &ObjectKey) -> bool {
        self.contains(key)
    }
}
