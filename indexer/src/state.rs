//! PURE. The entries of a store, their indices, and the version that the store saw last.
//!
//! No user function is called here: index values come in computed ([`Prepared`]), and what a write replaces goes
//! out, so that the shell drops it without the lock. `Eq` and `Clone` of keys and values are called by
//! [`find_to_write`](State::find_to_write) and [`reserve`](State::reserve), before anything changes: where they panic,
//! nothing has.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, Equivalent, HashTable};

use crate::index_definition::Definition;
use crate::index_table::IndexTable;
use crate::prepared::Prepared;
use crate::slots::{Copied, SlotId, Slots, Snapshot};
use crate::version::Version;

/// What a store holds. Invariants, checked by [`validate`](Self::validate):
///
/// 1. `lookup` finds exactly the occupied slots, each under its own key.
/// 2. `tables[i]` is the index of `definitions[i]`; definitions are only ever appended.
/// 3. A table files no empty slot. Where `ready` every occupied slot is filed.
/// 4. The values under which a table has filed an entry are those that its function gives for it (none where it
///    fails). The shell checks it (`Store::validate`), because that calls user code.
pub(crate) struct State<K, V> {
    slots: Slots<K, V>,
    lookup: HashTable<Found>,
    /// Shared with writers that compute index values.
    definitions: Definitions<K, V>,
    tables: Vec<Table>,
    version: Version,
    hasher: DefaultHashBuilder,
}

/// What the lookup has of an entry. With its hash, so that a growing table reads no key.
#[derive(Clone, Copy)]
struct Found {
    hash: u32,
    slot: SlotId,
}

/// Whether an entry is the one of this key, which has this hash.
fn is_under<K, V, Q>(slots: &Slots<K, V>, hash: u32, key: &Q) -> impl Fn(&Found) -> bool
where
    Q: Equivalent<K> + ?Sized,
{
    move |found| found.hash == hash && slots.get(found.slot).is_some_and(|(other, _)| key.equivalent(other))
}

/// Half of a hash is kept.
fn narrow(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// A hash table looks at the lowest and at the highest bits.
fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

pub(crate) type Definitions<K, V> = Arc<[Arc<Definition<K, V>>]>;

struct Table {
    index: IndexTable,
    /// Readers may ask it. Not while the entries that were there before it are still being filed.
    ready: bool,
}

impl<K, V> State<K, V> {
    pub(crate) fn new(hasher: DefaultHashBuilder) -> Self {
        Self {
            slots: Slots::default(),
            lookup: HashTable::new(),
            definitions: Arc::new([]),
            tables: Vec::new(),
            version: Version::default(),
            hasher,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn snapshot(&self) -> Snapshot<K, V> {
        self.slots.snapshot()
    }

    pub(crate) fn version(&self) -> &str {
        self.version.as_str()
    }

    /// The last write wins; versions are not compared, so that it may go down. Gives the old one back.
    pub(crate) fn set_version(&mut self, version: Version) -> Version {
        std::mem::replace(&mut self.version, version)
    }

    /// All indices, also those that are not ready: a writer must compute values for each of them.
    pub(crate) fn definitions(&self) -> &Definitions<K, V> {
        &self.definitions
    }

    /// The names of the indices that readers may ask.
    pub(crate) fn ready_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let ready = self.definitions.iter().zip(&self.tables).filter(|(_, table)| table.ready);
        ready.map(|(definition, _)| &definition.name)
    }

    /// The index of this name, if readers may ask it.
    pub(crate) fn index(&self, name: &str) -> Option<(&Arc<Definition<K, V>>, &IndexTable)> {
        let at = self.definitions.iter().position(|definition| *definition.name == *name)?;
        self.tables[at].ready.then(|| (&self.definitions[at], &self.tables[at].index))
    }

    /// The entry in a slot that an index has named.
    pub(crate) fn entry(&self, slot: SlotId) -> Option<&(K, V)> {
        self.slots.get(slot)
    }
}

impl<K: Eq + Hash, V> State<K, V> {
    pub(crate) fn get<Q: Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<&(K, V)> {
        self.entry(self.find(hash, key)?)
    }

    fn find<Q: Equivalent<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<SlotId> {
        let hash = narrow(hash);
        self.lookup.find(widen(hash), is_under(&self.slots, hash, key)).map(|found| found.slot)
    }
}

/// What a write has replaced. To be dropped without the lock.
pub(crate) type Replaced<K, V> = (Option<K>, Option<V>);

impl<K: Clone + Eq + Hash, V: Clone> State<K, V> {
    /// The slot of this key, ready to be written to.
    pub(crate) fn find_to_write<Q>(&mut self, hash: u64, key: &Q, copied: &mut Copied<K, V>) -> Option<SlotId>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let slot = self.find(hash, key)?;
        self.slots.own(slot, copied);
        Some(slot)
    }

    /// Makes ready for so many new entries.
    pub(crate) fn reserve(&mut self, count: usize, copied: &mut Copied<K, V>) {
        self.slots.reserve(count, copied);
    }

    /// Replaces the entry at this slot, which [`find_to_write`](Self::find_to_write) has found, or adds one where there is
    /// none, and files it under the values of this row. Says where it is.
    pub(crate) fn put(
        &mut self,
        at: Option<SlotId>,
        hash: u64,
        key: K,
        value: V,
        row: Row<'_>,
    ) -> (SlotId, Replaced<K, V>) {
        let (slot, replaced) = match at {
            Some(slot) => (slot, (Some(key), self.slots.replace_value(slot, value))),
            None => {
                let (hash, slot) = (narrow(hash), self.slots.insert(key, value));
                self.lookup.insert_unique(widen(hash), Found { hash, slot }, |found| widen(found.hash));
                (slot, (None, None))
            }
        };
        for (at, table) in self.tables.iter_mut().enumerate() {
            table.index.file(slot, row.get(at));
        }
        (slot, replaced)
    }

    /// Removes the entry at this slot, which [`find_to_write`](Self::find_to_write) has found by this hash.
    pub(crate) fn remove(&mut self, slot: SlotId, hash: u64) -> Replaced<K, V> {
        if let Ok(found) = self.lookup.find_entry(widen(narrow(hash)), |found| found.slot == slot) {
            found.remove();
        }
        self.tables.iter_mut().for_each(|table| table.index.unfile(slot));
        let (key, value) = self.slots.remove(slot).unzip();
        if self.slots.len() == 0 {
            self.release();
        }
        (key, value)
    }

    /// Gives memory back where there is nothing left to hold.
    fn release(&mut self) {
        self.slots = Slots::default();
        self.lookup = HashTable::new();
        self.tables.iter_mut().for_each(|table| table.index = IndexTable::default());
    }

    /// Takes over the entries of `new`, which was built with the same hasher and the same definitions, and gives
    /// it the old ones.
    pub(crate) fn swap(&mut self, new: &mut Self) {
        debug_assert_eq!(self.definitions.len(), new.definitions.len());
        std::mem::swap(&mut self.slots, &mut new.slots);
        std::mem::swap(&mut self.lookup, &mut new.lookup);
        for (old, new) in self.tables.iter_mut().zip(&mut new.tables) {
            std::mem::swap(&mut old.index, &mut new.index);
        }
    }

    /// Appends indices. Entries that are there stay pending in them until [`file_pending`](Self::file_pending);
    /// every later write files them at once.
    pub(crate) fn append(&mut self, new: impl IntoIterator<Item = Arc<Definition<K, V>>>) {
        self.definitions = self.definitions.iter().cloned().chain(new).collect();
        self.tables.resize_with(self.definitions.len(), || Table { index: IndexTable::default(), ready: false });
    }

    /// Files an entry in one index, unless it was written since the index was appended: the writer knew better.
    pub(crate) fn file_pending(&mut self, index: usize, slot: SlotId, row: Row<'_>) {
        let table = &mut self.tables[index].index;
        if self.slots.get(slot).is_some() && table.is_pending(slot) {
            table.file(slot, row.get(0));
        }
    }

    /// From now on readers may ask these indices.
    pub(crate) fn set_ready(&mut self, indices: std::ops::Range<usize>) {
        self.tables[indices].iter_mut().for_each(|table| table.ready = true);
    }

    /// Checks the invariants 1 to 3. Cost: O(n).
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.slots.validate()?;
        if self.lookup.len() != self.slots.len() {
            return Err(format!("state 1: {} found, {} stored", self.lookup.len(), self.slots.len()));
        }
        for (slot, (key, _)) in self.slots.iter() {
            if self.find(self.hasher.hash_one(key), key) != Some(slot) {
                return Err(format!("state 1: the entry in slot {slot} is not found under its key"));
            }
        }
        if self.tables.len() != self.definitions.len() {
            return Err(format!("state 2: {} tables, {} definitions", self.tables.len(), self.definitions.len()));
        }
        for (definition, table) in self.definitions.iter().zip(&self.tables) {
            table.index.validate().map_err(|broken| format!("{}: {broken}", definition.name))?;
            for slot in 0..self.slots.slot_count() as SlotId {
                let occupied = self.slots.get(slot).is_some();
                let filed = !table.index.is_pending(slot);
                if (filed && !occupied) || (table.ready && occupied && !filed) {
                    return Err(format!("state 3: {}: slot {slot}: occupied {occupied}", definition.name));
                }
            }
        }
        Ok(())
    }

    /// Each entry with its values in each index, sorted, as they are filed.
    pub(crate) fn filed(&self) -> impl Iterator<Item = (&(K, V), Vec<Vec<String>>)> {
        self.slots.iter().map(|(slot, entry)| {
            let values = |table: &Table| {
                let mut values: Vec<_> = table.index.values_of(slot).map(str::to_owned).collect();
                values.sort_unstable();
                values
            };
            (entry, self.tables.iter().map(values).collect())
        })
    }
}

/// The computed index values of one entry.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) prepared: &'a Prepared,
    /// Which of the prepared entries it is.
    pub(crate) row: usize,
    /// The number of indices for which values were computed.
    pub(crate) width: usize,
}

impl<'a> Row<'a> {
    fn get(self, index: usize) -> impl ExactSizeIterator<Item = &'a str> {
        self.prepared.get(self.row, self.width, index)
    }
}
