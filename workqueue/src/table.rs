//! PURE. Which slots have keys of a hash.

use crate::order::Slot;

/// Half of the bits of a key's hash: as many as a slot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Hash {
    pub(crate) const fn of(hash: u64) -> Self {
        Self((hash >> 32) as u32)
    }
}

/// Slots by the hashes of their keys: open addressing, linear probing, at most half full.
///
/// A map of the usual kind keeps tags apart from entries, which with a million keys are two cache misses an operation, and
/// each has to be over before the queue's lock can be let go. Here hash and slot share eight bytes, and what is probed
/// after them is in the same line of the cache: one miss.
///
/// Invariants (checked by [`validate`](Self::validate)):
/// 1. No place is free between where a hash belongs and where it is.
/// 2. `len` places are taken, at most half of them all; how many there are is a power of two, or zero.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Place>,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    hash: Hash,
    slot: Slot,
}

const FREE: Place = Place { hash: Hash(0), slot: Slot(u32::MAX) };

const SMALLEST: usize = 8;

impl Table {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), len: 0 }
    }

    /// The slot of this hash that is the wanted one.
    #[inline]
    pub(crate) fn find(&self, hash: Hash, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        self.probe(hash).map(|(_, place)| place).find(|place| place.hash == hash && is_it(place.slot)).map(|it| it.slot)
    }

    /// Adds a slot, which must not be here.
    #[inline]
    pub(crate) fn insert(&mut self, hash: Hash, slot: Slot) {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Place { hash, slot });
    }

    /// Takes a slot out.
    #[inline]
    pub(crate) fn remove(&mut self, hash: Hash, slot: Slot) {
        let Some((mut hole, _)) = self.probe(hash).find(|(_, place)| place.slot == slot) else { return };
        // What comes after it moves up, as far as it does not pass where it belongs.
        let mask = self.places.len() - 1;
        let mut index = hole;
        loop {
            index = (index + 1) & mask;
            let place = self.places[index];
            if place == FREE {
                break;
            }
            let (from_home, from_hole) = (index.wrapping_sub(place.hash.0 as usize), index.wrapping_sub(hole));
            if from_home & mask >= from_hole & mask {
                self.places[hole] = place;
                hole = index;
            }
        }
        self.places[hole] = FREE;
        self.len -= 1;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// The places that are taken, from where a hash belongs to the first that is free.
    #[inline]
    fn probe(&self, hash: Hash) -> impl Iterator<Item = (usize, Place)> {
        let mask = self.places.len().wrapping_sub(1);
        let mut next = hash.0 as usize;
        std::iter::from_fn(move || {
            let index = next & mask;
            let place = *self.places.get(index)?;
            next = index + 1;
            (place != FREE).then_some((index, place))
        })
    }

    #[inline]
    fn put(&mut self, place: Place) {
        let mask = self.places.len() - 1;
        let mut index = place.hash.0 as usize & mask;
        while self.places[index] != FREE {
            index = (index + 1) & mask;
        }
        self.places[index] = place;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![FREE; (2 * self.places.len()).max(SMALLEST)];
        let former = std::mem::replace(&mut self.places, larger);
        former.into_iter().filter(|place| *place != FREE).for_each(|place| self.put(place));
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let taken = self.places.iter().filter(|place| **place != FREE);
        assert_eq!(taken.clone().count(), self.len, "invariant 2");
        assert!(2 * self.len <= self.places.len(), "invariant 2");
        assert!(self.places.is_empty() || self.places.len().is_power_of_two(), "invariant 2");
        for place in taken {
            assert!(self.probe(place.hash).any(|(_, other)| other == *place), "invariant 1");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The oracle: a list. Few hashes, so that they collide and wrap around.
        #[test]
        fn table_agrees_with_a_list(ops in proptest::collection::vec((0..4_u8, 0..40_u32, any::<bool>()), 1..300)) {
            let (mut table, mut list) = (Table::new(), Vec::new());
            for (hash, slot, insert) in ops {
                // Near the end of every capacity, and near its beginning.
                let entry = (Hash([u32::MAX, u32::MAX - 1, 0, 7][hash as usize]), Slot(slot));
                let at = list.iter().position(|&(_, other): &(Hash, Slot)| other == entry.1);
                match (insert, at) {
                    (true, None) => {
                        table.insert(entry.0, entry.1);
                        list.push(entry);
                    }
                    (false, Some(at)) => {
                        let (hash, slot) = list.swap_remove(at);
                        table.remove(hash, slot);
                    }
                    (false, None) => table.remove(entry.0, entry.1),
                    (true, Some(_)) => {}
                }
                table.validate();
                for &(hash, slot) in &list {
                    prop_assert_eq!(table.find(hash, |found| found == slot), Some(slot));
                }
                prop_assert_eq!(table.len(), list.len());
                prop_assert_eq!(table.find(entry.0, |_| true).is_some(), list.iter().any(|other| other.0 == entry.0));
            }
        }
    }
}
