//! PURE. Connections with room for a number of requests each, and which of them the next request takes.

/// Connections in the order of their age. A request takes the oldest that has room, so that few are needed.
///
/// Invariants: (1) ids grow along the list; (2) a request enters no lane that holds `max` of them; (3) a lane that was
/// left empty stays only where no other has room.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    next: u64,
}

#[derive(Debug)]
struct Lane<T> {
    id: u64,
    handle: T,
    /// How many requests are on it.
    open: usize,
}

/// What a lane leads to.
pub(crate) trait Handle: Clone {
    /// How many requests may be on it at present.
    fn max(&self) -> usize;
}

impl<T: Handle> Lanes<T> {
    pub(crate) fn new() -> Self {
        Self { lanes: Vec::new(), next: 0 }
    }

    pub(crate) fn add(&mut self, handle: T) -> u64 {
        let id = self.next;
        self.next += 1;
        self.lanes.push(Lane { id, handle, open: 0 });
        id
    }

    /// A place for one request, if there is one; to be given back.
    pub(crate) fn enter(&mut self) -> Option<(u64, T)> {
        let lane = self.lanes.iter_mut().find(|lane| lane.has_room())?;
        lane.open += 1;
        Some((lane.id, lane.handle.clone()))
    }

    /// Gives a place back. Gives the lane out if it is not needed any more: it is empty, and another has room.
    pub(crate) fn leave(&mut self, id: u64) -> Option<T> {
        let lane = self.lanes.iter_mut().find(|lane| lane.id == id)?;
        lane.open -= 1;
        let is_spare = lane.open == 0 && self.lanes.iter().any(|other| other.id != id && other.has_room());
        if is_spare { self.remove(id) } else { None }
    }

    /// A connection that is at its end. What is on it goes on; nothing else enters it.
    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let at = self.lanes.iter().position(|lane| lane.id == id)?;
        Some(self.lanes.remove(at).handle)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }
}

impl<T: Handle> Lane<T> {
    fn has_room(&self) -> bool {
        self.open < self.handle.max()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    struct Room(usize);

    impl Handle for Room {
        fn max(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn requests_fill_the_oldest_lane_first_and_a_lane_that_is_not_needed_goes() {
        let mut lanes = Lanes::new();
        assert!(lanes.enter().is_none());
        let first = lanes.add(Room(2));
        assert_eq!(lanes.enter().unwrap().0, first);
        assert_eq!(lanes.enter().unwrap().0, first);
        assert!(lanes.enter().is_none(), "it is full");
        let second = lanes.add(Room(2));
        assert_eq!(lanes.enter().unwrap().0, second);
        assert!(lanes.leave(second).is_none(), "the first is full: short requests do not make a connection each");
        assert_eq!(lanes.enter().unwrap().0, second);
        assert!(lanes.leave(first).is_none(), "one is on it still");
        assert!(lanes.leave(second).is_some(), "the first has room");
        assert!(lanes.leave(first).is_none(), "the last one stays");
        assert_eq!(lanes.len(), 1);
    }

    #[test]
    fn what_is_on_a_lane_that_is_gone_may_still_leave_it() {
        let mut lanes = Lanes::new();
        let gone = lanes.add(Room(1));
        assert!(lanes.enter().is_some());
        assert!(lanes.remove(gone).is_some());
        assert!(lanes.leave(gone).is_none() && lanes.remove(gone).is_none() && lanes.enter().is_none());
    }

    #[derive(Clone, Debug)]
    enum Op {
        Add(usize),
        Enter,
        Leave(prop::sample::Index),
        Remove(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (0..4_usize).prop_map(Op::Add),
            Just(Op::Enter),
            Just(Op::Enter),
            any::<prop::sample::Index>().prop_map(Op::Leave),
            (0..6_u64).prop_map(Op::Remove),
        ]
    }

    proptest! {
        #[test]
        fn no_lane_is_overfull_and_a_request_waits_only_where_all_are_full(ops in prop::collection::vec(op(), 0..60)) {
            let mut lanes = Lanes::new();
            // what is known from outside: the room of each lane that is there, and where requests are
            let (mut rooms, mut inside) = (BTreeMap::new(), Vec::<u64>::new());
            for op in ops {
                let on = |inside: &[u64], id: u64| inside.iter().filter(|on| **on == id).count();
                match op {
                    Op::Add(room) => {
                        rooms.insert(lanes.add(Room(room)), room);
                    }
                    Op::Enter => {
                        let oldest = rooms.iter().find(|(id, room)| on(&inside, **id) < **room).map(|(id, _)| *id);
                        let entered = lanes.enter().map(|(id, _)| id);
                        prop_assert_eq!(entered, oldest);
                        inside.extend(entered);
                    }
                    Op::Leave(which) => if !inside.is_empty() {
                        let id = inside.swap_remove(which.index(inside.len()));
                        let others = rooms.iter().any(|(other, room)| *other != id && on(&inside, *other) < *room);
                        let goes = rooms.contains_key(&id) && on(&inside, id) == 0 && others;
                        prop_assert_eq!(lanes.leave(id).is_some(), goes);
                        if goes {
                            rooms.remove(&id);
                        }
                    }
                    Op::Remove(id) => prop_assert_eq!(lanes.remove(id).is_some(), rooms.remove(&id).is_some()),
                }
                prop_assert_eq!(lanes.len(), rooms.len());
            }
        }
    }
}
