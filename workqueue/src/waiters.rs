//! PURE. Who waits for a key: in which order they are told, and which of them keeps the time.

use std::task::Waker;
use std::time::Instant;

use slab::Slab;

/// The gets that wait, first come, first served.
///
/// A get that is *called* has a waiting key reserved: it takes one when it is polled, and until then nobody who comes
/// later may take the last ones. No key is bound to a get before that poll, so a call that is dropped passes to the next.
///
/// One of those in line, the *leader*, also keeps the time of the next delayed key. When it leaves, or an earlier moment
/// comes, a get is woken to take over. The new leader is the last in line, because it stays longest.
///
/// Invariants (checked by [`validate`](Self::validate)):
/// 1. The line (`first` to `last` by `next`, back by `previous`) holds exactly the places that are not called.
/// 2. `called` is the number of those that are.
/// 3. The leader stands in line.
///
/// Wakers are never woken or dropped in here: they are taken out and given to the caller.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    places: Slab<Place>,
    first: Option<usize>,
    last: Option<usize>,
    called: usize,
    leader: Option<Leader>,
}

#[derive(Debug)]
struct Place {
    /// `None`: woken, and not polled since.
    waker: Option<Waker>,
    called: bool,
    previous: Option<usize>,
    next: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Leader {
    place: usize,
    /// The moment that it keeps, or was woken to keep.
    due: Instant,
}

impl Waiters {
    /// Whether nobody stands in line.
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many are called.
    pub(crate) const fn called(&self) -> usize {
        self.called
    }

    /// Whether `place` is called.
    pub(crate) fn is_called(&self, place: usize) -> bool {
        self.places[place].called
    }

    /// Joins the end of the line.
    pub(crate) fn join(&mut self) -> usize {
        let place = self.places.insert(Place { waker: None, called: false, previous: self.last, next: None });
        match self.last {
            Some(last) => self.places[last].next = Some(place),
            None => self.first = Some(place),
        }
        self.last = Some(place);
        place
    }

    /// `place` is being polled, so it is not to be woken. Answers its waker.
    pub(crate) fn hush(&mut self, place: usize) -> Option<Waker> {
        self.places[place].waker.take()
    }

    /// `place`, in line, goes on waiting and is to be woken by `waker`.
    pub(crate) fn stay(&mut self, place: usize, waker: Waker) {
        self.places[place].waker = Some(waker);
    }

    /// Leaves, in line or called; its waker is to be taken out first. A call passes to nobody by itself.
    pub(crate) fn leave(&mut self, place: usize) {
        if self.places[place].called {
            self.called -= 1;
        } else {
            self.unlink(place);
        }
        self.places.remove(place);
    }

    /// Calls the first in line. Answers whom to wake: nobody where it is woken already.
    pub(crate) fn call_first(&mut self) -> Option<Waker> {
        let place = self.first?;
        self.unlink(place);
        self.called += 1;
        self.places[place].called = true;
        self.places[place].waker.take()
    }

    /// Takes out the wakers of all in line, who stay there.
    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let mut place = self.first;
        while let Some(entry) = place.map(|place| &mut self.places[place]) {
            wakers.extend(entry.waker.take());
            place = entry.next;
        }
        wakers
    }

    /// `place`, in line and being polled, asks whether it has to keep the time of the next delayed key: so it is where it
    /// leads or nobody does.
    pub(crate) fn keep_time(&mut self, place: usize, next_due: Option<Instant>) -> Option<Instant> {
        let leads = self.leader.is_none_or(|leader| leader.place == place);
        if leads {
            self.leader = next_due.map(|due| Leader { place, due });
        }
        next_due.filter(|_| leads)
    }

    /// Sees to it that somebody in line keeps the time of the next delayed key. Answers whom to wake for it.
    pub(crate) fn appoint(&mut self, next_due: Option<Instant>) -> Option<Waker> {
        let Some(due) = next_due else {
            self.leader = None;
            return None;
        };
        let place = match self.leader {
            // A leader that keeps an earlier moment finds out when that has come.
            Some(leader) if leader.due <= due => return None,
            Some(leader) => leader.place,
            None => self.last?,
        };
        self.leader = Some(Leader { place, due });
        self.places[place].waker.take()
    }

    fn unlink(&mut self, place: usize) {
        let Place { previous, next, .. } = self.places[place];
        match previous {
            Some(previous) => self.places[previous].next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => self.places[next].previous = previous,
            None => self.last = previous,
        }
        if self.leader.is_some_and(|leader| leader.place == place) {
            self.leader = None;
        }
    }

    #[cfg(test)]
    pub(crate) fn validate(&self) {
        let mut in_line = Vec::new();
        let (mut place, mut previous) = (self.first, None);
        while let Some(current) = place {
            assert_eq!(self.places[current].previous, previous, "invariant 1");
            assert!(!self.places[current].called, "invariant 1");
            in_line.push(current);
            (previous, place) = (Some(current), self.places[current].next);
        }
        assert_eq!(self.last, previous, "invariant 1");
        assert_eq!(in_line.len() + self.called, self.places.len(), "invariants 1 and 2");
        assert!(self.leader.is_none_or(|leader| in_line.contains(&leader.place)), "invariant 3");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Join,
        Leave(usize),
        Call,
        Appoint(Option<u64>),
        KeepTime(usize, Option<u64>),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => Just(Op::Join),
            2 => (0..8_usize).prop_map(Op::Leave),
            2 => Just(Op::Call),
            2 => proptest::option::of(0..9_u64).prop_map(Op::Appoint),
            2 => (0..8_usize, proptest::option::of(0..9_u64)).prop_map(|(place, due)| Op::KeepTime(place, due)),
        ]
    }

    proptest! {
        /// The oracle: the line and the called as two lists.
        #[test]
        fn line_agrees_with_a_list(ops in proptest::collection::vec(op(), 1..200)) {
            let start = Instant::now();
            let at = |due: Option<u64>| due.map(|due| start + Duration::from_secs(due));
            let mut waiters = Waiters::default();
            let (mut line, mut called): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for op in ops {
                match op {
                    Op::Join => line.push(waiters.join()),
                    Op::Leave(index) => {
                        let list = if index % 2 == 0 { &mut line } else { &mut called };
                        if !list.is_empty() {
                            let index = index % list.len();
                            waiters.leave(list.remove(index));
                        }
                    }
                    Op::Call => {
                        waiters.call_first();
                        if !line.is_empty() {
                            called.push(line.remove(0));
                        }
                    }
                    Op::Appoint(due) => {
                        waiters.appoint(at(due));
                        let leads = waiters.leader;
                        prop_assert_eq!(leads.is_some(), due.is_some() && !line.is_empty());
                        prop_assert!(leads.is_none_or(|leader| Some(leader.due) <= at(due)), "keeps no later moment");
                    }
                    Op::KeepTime(index, due) => {
                        if !line.is_empty() {
                            let place = line[index % line.len()];
                            let keeps = waiters.keep_time(place, at(due));
                            let leads = waiters.leader.is_some_and(|leader| leader.place == place);
                            prop_assert_eq!(keeps, at(due).filter(|_| leads));
                        }
                    }
                }
                waiters.validate();
                prop_assert_eq!(waiters.is_empty(), line.is_empty());
                prop_assert_eq!(waiters.called(), called.len());
                prop_assert!(called.iter().all(|&place| waiters.is_called(place)));
                prop_assert!(!line.iter().any(|&place| waiters.is_called(place)));
            }
            let mut order = Vec::new();
            while let Some(first) = waiters.first {
                order.push(first);
                waiters.call_first();
            }
            prop_assert_eq!(order, line);
        }
    }
}
