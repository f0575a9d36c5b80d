//! PURE. One inverted index: value -> entries, and back.
//!
//! Entries are known by their slot, values by a number, so that an entry costs an index 20 bytes, and up to twice
//! that because vectors grow by doubling: its place in the value's list (4), and which value it has and where it
//! stands in its list (16; 24 more and 8 for each value where it has several). A value's text is held once. Taking an entry out of a list hashes nothing and searches
//! nothing, because each entry knows its position there.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::slots::SlotId;

type ValueId = u32;

/// An inverted index. Invariants, checked by [`validate`](Self::validate):
///
/// 1. `lookup` finds exactly the live values, each under its own text.
/// 2. No live value is without members: empty sets are removed.
/// 3. `filed[slot]` names value v at position p exactly if `values[v].members[p] == slot`; the places of an entry
///    are sorted by value and each value is named once.
/// 4. `free` names each dead value once.
#[derive(Default)]
pub(crate) struct IndexTable {
    lookup: HashTable<ValueId>,
    values: Vec<Value>,
    free: Vec<ValueId>,
    /// By slot. Shorter than the slots where the rest is `Pending` or empty.
    filed: Vec<Filed>,
    hasher: DefaultHashBuilder,
}

struct Value {
    text: Arc<str>,
    members: Vec<SlotId>,
}

/// What an index knows of one slot.
#[derive(Default)]
enum Filed {
    /// Nothing yet: the slot is empty, or its entry was there before the index.
    #[default]
    Pending,
    /// Under no value.
    Nowhere,
    /// Under one value; by far the most common case.
    One(Place),
    /// Under several, sorted by value.
    #[expect(clippy::box_collection, reason = "boxed twice, an entry costs 16 bytes and not 24")]
    Many(Box<Vec<Place>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    value: ValueId,
    /// Where the slot stands among the members of the value.
    position: u32,
}

impl IndexTable {
    /// Files an entry under these values, which must be distinct, and under no others.
    pub(crate) fn file<'a>(&mut self, slot: SlotId, mut values: impl ExactSizeIterator<Item = &'a str>) {
        if values.len() == 0 {
            self.unfile(slot);
            self.set(slot, Filed::Nowhere);
        } else if values.len() == 1 {
            let value = values.next().unwrap_or_default();
            if let Some(Filed::One(place)) = self.filed.get(slot as usize)
                && *self.values[place.value as usize].text == *value
            {
                return;
            }
            self.unfile(slot);
            let place = self.enter(slot, value);
            self.set(slot, Filed::One(place));
        } else {
            self.unfile(slot);
            let mut places = Vec::with_capacity(values.len());
            for value in values {
                places.push(self.enter(slot, value));
            }
            places.sort_unstable_by_key(|place| place.value);
            self.set(slot, Filed::Many(Box::new(places)));
        }
    }

    /// Takes an entry out of the index; its slot is pending again.
    pub(crate) fn unfile(&mut self, slot: SlotId) {
        match self.filed.get_mut(slot as usize).map(std::mem::take) {
            None | Some(Filed::Pending | Filed::Nowhere) => {}
            Some(Filed::One(place)) => self.leave(place),
            // From the back would do as well: an entry stands at most once in a list, so that no removal moves
            // another place of the same entry.
            Some(Filed::Many(places)) => places.iter().for_each(|&place| self.leave(place)),
        }
    }

    /// Whether the entry in this slot has not been filed since it came or since the index came.
    pub(crate) fn is_pending(&self, slot: SlotId) -> bool {
        matches!(self.filed.get(slot as usize), None | Some(Filed::Pending))
    }

    /// The entries under this value, in no order.
    pub(crate) fn members(&self, value: &str) -> &[SlotId] {
        match self.find(value) {
            Some(id) => &self.values[id as usize].members,
            None => &[],
        }
    }

    /// The values that have entries, in no order.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.lookup.iter().map(|&id| &self.values[id as usize].text)
    }

    /// The values of one entry.
    pub(crate) fn values_of(&self, slot: SlotId) -> impl Iterator<Item = &str> {
        self.places(slot).iter().map(|place| &*self.values[place.value as usize].text)
    }

    fn find(&self, value: &str) -> Option<ValueId> {
        self.lookup.find(self.hasher.hash_one(value), |&id| *self.values[id as usize].text == *value).copied()
    }

    fn places(&self, slot: SlotId) -> &[Place] {
        match self.filed.get(slot as usize) {
            None | Some(Filed::Pending | Filed::Nowhere) => &[],
            Some(Filed::One(place)) => std::slice::from_ref(place),
            Some(Filed::Many(places)) => places,
        }
    }

    fn set(&mut self, slot: SlotId, filed: Filed) {
        let slot = slot as usize;
        if slot >= self.filed.len() {
            self.filed.resize_with(slot + 1, Filed::default);
        }
        self.filed[slot] = filed;
    }

    /// Appends the slot to the members of the value.
    fn enter(&mut self, slot: SlotId, value: &str) -> Place {
        let id = self.find(value).unwrap_or_else(|| self.intern(value));
        let members = &mut self.values[id as usize].members;
        members.push(slot);
        Place { value: id, position: (members.len() - 1) as u32 }
    }

    /// Takes the member at this place out; the last member moves into the gap and is told.
    fn leave(&mut self, place: Place) {
        let members = &mut self.values[place.value as usize].members;
        members.swap_remove(place.position as usize);
        // A set that has shrunk to a quarter gives half of its memory back.
        if members.capacity() > 16 && members.len() * 4 < members.capacity() {
            members.shrink_to(members.len() * 2);
        }
        match members.get(place.position as usize).copied() {
            Some(moved) => self.moved(moved, place),
            None if members.is_empty() => self.forget(place.value),
            None => {}
        }
    }

    fn moved(&mut self, slot: SlotId, to: Place) {
        match &mut self.filed[slot as usize] {
            Filed::Pending | Filed::Nowhere => {}
            Filed::One(place) => *place = to,
            Filed::Many(places) => {
                if let Ok(at) = places.binary_search_by_key(&to.value, |place| place.value) {
                    places[at] = to;
                }
            }
        }
    }

    fn intern(&mut self, text: &str) -> ValueId {
        let value = Value { text: Arc::from(text), members: Vec::new() };
        let id = match self.free.pop() {
            Some(id) => {
                self.values[id as usize] = value;
                id
            }
            None => {
                self.values.push(value);
                (self.values.len() - 1) as ValueId
            }
        };
        let Self { lookup, values, hasher, .. } = self;
        lookup.insert_unique(hasher.hash_one(text), id, |&id| hasher.hash_one(&*values[id as usize].text));
        id
    }

    fn forget(&mut self, id: ValueId) {
        let Self { lookup, values, hasher, free, .. } = self;
        let value = &mut values[id as usize];
        if let Ok(found) = lookup.find_entry(hasher.hash_one(&*value.text), |&other| other == id) {
            found.remove();
        }
        *value = Value { text: Arc::default(), members: Vec::new() };
        free.push(id);
    }

    /// Checks the invariants. Cost: O(values and places).
    pub(crate) fn validate(&self) -> Result<(), String> {
        let mut live: Vec<_> = self.lookup.iter().copied().collect();
        live.sort_unstable();
        live.dedup();
        for &id in &live {
            let value = &self.values[id as usize];
            if self.find(&value.text) != Some(id) {
                return Err(format!("index 1: the value {:?} is not found under its text", value.text));
            }
            if value.members.is_empty() {
                return Err(format!("index 2: the value {:?} has no members", value.text));
            }
            for (position, &slot) in (0..).zip(&value.members) {
                if !self.places(slot).contains(&Place { value: id, position }) {
                    return Err(format!("index 3: slot {slot} does not know of its place under {:?}", value.text));
                }
            }
        }
        for slot in 0..self.filed.len() as SlotId {
            let places = self.places(slot);
            let known = |place: &Place| {
                let members = self.values.get(place.value as usize).map(|value| &value.members);
                members.and_then(|members| members.get(place.position as usize)) == Some(&slot)
            };
            if !places.is_sorted_by(|a, b| a.value < b.value) || !places.iter().all(known) {
                return Err(format!("index 3: slot {slot} has places {places:?}"));
            }
        }
        let mut all: Vec<_> = self.free.iter().chain(&live).copied().collect();
        all.sort_unstable();
        if !all.iter().copied().eq(0..self.values.len() as ValueId) {
            return Err(format!("index 4: live {live:?} and free {:?} of {}", self.free, self.values.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(table: &mut IndexTable, slot: SlotId, values: &[&str]) {
        table.file(slot, values.iter().copied());
        table.validate().unwrap();
    }

    fn members(table: &IndexTable, value: &str) -> Vec<SlotId> {
        let mut members = table.members(value).to_vec();
        members.sort_unstable();
        members
    }

    #[test]
    fn a_changed_value_leaves_its_old_set_and_an_empty_set_is_removed() {
        let mut table = IndexTable::default();
        file(&mut table, 0, &["a"]);
        file(&mut table, 0, &["b"]);
        assert!(members(&table, "a").is_empty());
        assert_eq!(members(&table, "b"), [0]);
        assert_eq!(table.values().map(|v| &**v).collect::<Vec<_>>(), ["b"]);
        table.unfile(0);
        table.validate().unwrap();
        assert_eq!(table.values().len(), 0);
    }

    #[test]
    fn two_entries_under_one_value_and_one_leaves() {
        let mut table = IndexTable::default();
        file(&mut table, 0, &["a"]);
        file(&mut table, 1, &["a", "b"]);
        table.unfile(0);
        table.validate().unwrap();
        assert_eq!(members(&table, "a"), [1]);
        assert_eq!(table.values_of(1).collect::<Vec<_>>().len(), 2);
    }

    #[test]
    fn an_entry_with_no_value_is_filed_and_not_pending() {
        let mut table = IndexTable::default();
        assert!(table.is_pending(3));
        file(&mut table, 3, &[]);
        assert!(!table.is_pending(3));
        assert!(table.is_pending(2));
        table.unfile(3);
        assert!(table.is_pending(3));
    }

    #[test]
    fn an_entry_costs_sixteen_bytes_beside_its_place_in_a_set() {
        assert_eq!(size_of::<Filed>(), 16);
    }
}
