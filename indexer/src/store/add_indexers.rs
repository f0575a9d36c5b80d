//! Indices that are added while others read and write.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use crate::index_definition::Definition;
use crate::prepared::Prepared;
use crate::slots::Snapshot;
use crate::state::Row;
use crate::{IndexConflict, Indexers, Store};

impl<K: Clone + Eq + Hash, V: Clone> Store<K, V> {
    /// Adds indices, at any time. When it returns, all values that are there are filed in them. If a name is
    /// taken, or given twice, nothing is added.
    ///
    /// Cost: O(n) calls of the new functions, without the lock; readers and writers go on meanwhile, and the new
    /// indices are [unknown](crate::UnknownIndex) to readers until they are complete.
    pub fn add_indexers(&self, indexers: Indexers<V>) -> Result<(), IndexConflict> {
        let new: Vec<_> = indexers
            .into_functions()
            .into_iter()
            .map(|(name, function)| Arc::new(Definition::new(name, function)))
            .collect();
        let (range, snapshot) = self.append(new)?;
        let definitions = self.definitions();
        // Writers file their entries in the new indices from here on. What is left are the entries from before.
        let there: Vec<_> = snapshot.iter().collect();
        let mut prepared = Prepared::default();
        for index in range.clone() {
            for entries in there.chunks(FILED_AT_ONCE) {
                prepared.clear();
                entries.iter().for_each(|(_, (key, value))| definitions[index].prepare(key, value, &mut prepared));
                let mut state = self.inner.state.write();
                for (row, &(slot, _)) in entries.iter().enumerate() {
                    state.file_pending(index, slot, Row { prepared: &prepared, row, width: 1 });
                }
            }
        }
        self.inner.state.write().set_ready(range);
        Ok(())
    }

    /// Appends definitions, unless a name is taken; says where they stand and what was there before them.
    fn append(&self, new: Vec<Arc<Definition<K, V>>>) -> Result<(Range<usize>, Snapshot<K, V>), IndexConflict> {
        let mut state = self.inner.state.write();
        let first = state.definitions().len();
        for (position, definition) in new.iter().enumerate() {
            let mut taken = state.definitions().iter().chain(&new[..position]);
            if taken.any(|other| other.name == definition.name) {
                let conflict = IndexConflict { name: definition.name.clone() };
                drop(state);
                return Err(conflict);
            }
        }
        state.append(new);
        Ok((first..state.definitions().len(), state.snapshot()))
    }
}

/// Entries that `add_indexers` files before it lets others take the lock again.
const FILED_AT_ONCE: usize = 256;
