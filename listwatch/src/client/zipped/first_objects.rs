//! PURE. The objects that come before there is a dictionary.

/// As many objects, or as many bytes of them, are enough to learn a dictionary from.
pub(crate) const ENOUGH_OBJECTS: usize = 512;
pub(crate) const ENOUGH_BYTES: usize = 1 << 20;

/// The objects that wait for a dictionary, which is learned from the first of them. `T` is a reference that does not
/// keep the object alive.
///
/// Invariants: (1) while it gathers there are fewer than `ENOUGH_OBJECTS` objects, and less than `ENOUGH_BYTES` of them;
/// (2) `bytes` is the sum of their lengths; (3) each object that was added is handed out at the end, once, unless it was
/// gone by then; (4) learning begins once.
#[derive(Debug)]
pub(crate) struct FirstObjects<T> {
    phase: Phase,
    waiting: Vec<(T, usize)>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Learning,
    Done,
}

/// What is to be done about an object that has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<T> {
    /// Nothing: it waits.
    Waits,
    /// It waits; and these are enough to learn from.
    Learn(Vec<T>),
    /// The dictionary is there by now.
    TooLate,
}

impl<T: Clone> FirstObjects<T> {
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Gathering, waiting: Vec::new(), bytes: 0 }
    }

    /// One more, of so many bytes. Cost: amortized O(1) while objects stay, O(`ENOUGH_OBJECTS`) where they go as they come.
    pub(crate) fn add(&mut self, object: T, len: usize, is_there: impl Fn(&T) -> bool) -> Arrival<T> {
        if self.phase == Phase::Done {
            return Arrival::TooLate;
        }
        self.waiting.push((object, len));
        self.bytes += len;
        if self.phase == Phase::Learning || !self.is_enough() {
            return Arrival::Waits;
        }
        // Old states of the same few objects teach nothing of the others.
        self.waiting.retain(|(object, _)| is_there(object));
        self.bytes = self.waiting.iter().map(|(_, len)| len).sum();
        if !self.is_enough() {
            return Arrival::Waits;
        }
        self.phase = Phase::Learning;
        Arrival::Learn(self.waiting.iter().map(|(object, _)| object.clone()).collect())
    }

    /// Learning has ended, well or not. Gives all that wait.
    pub(crate) fn finish(&mut self) -> Vec<T> {
        self.phase = Phase::Done;
        self.bytes = 0;
        std::mem::take(&mut self.waiting).into_iter().map(|(object, _)| object).collect()
    }

    fn is_enough(&self) -> bool {
        self.waiting.len() >= ENOUGH_OBJECTS || self.bytes >= ENOUGH_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl<T: Clone> FirstObjects<T> {
        fn validate(&self) {
            if self.phase == Phase::Gathering {
                assert!(!self.is_enough(), "(1)");
            }
            assert_eq!(self.bytes, self.waiting.iter().map(|(_, len)| len).sum::<usize>(), "(2)");
            assert!(self.phase != Phase::Done || self.waiting.is_empty(), "(3)");
        }
    }

    #[test]
    fn learning_begins_with_enough_objects_that_are_there_still() {
        let mut first = FirstObjects::new();
        for n in 1..ENOUGH_OBJECTS {
            assert_eq!(first.add(n, 1, |_| true), Arrival::Waits);
        }
        // All but the even ones are gone.
        assert_eq!(first.add(ENOUGH_OBJECTS, 1, |n| n % 2 == 0), Arrival::Waits);
        first.validate();
        for n in 1..ENOUGH_OBJECTS / 2 {
            assert_eq!(first.add(2 * n, 1, |_| true), Arrival::Waits);
        }
        let Arrival::Learn(samples) = first.add(0, 1, |_| true) else { panic!("there are enough") };
        assert_eq!((samples.len(), samples.iter().filter(|n| *n % 2 == 1).count()), (ENOUGH_OBJECTS, 0));
        assert_eq!(first.add(1, 1, |_| true), Arrival::Waits);
        assert_eq!(first.finish().len(), ENOUGH_OBJECTS + 1);
        assert_eq!(first.add(1, 1, |_| true), Arrival::TooLate);
        first.validate();
    }

    #[test]
    fn a_few_long_objects_are_enough_too() {
        let mut first = FirstObjects::new();
        assert_eq!(first.add(1, ENOUGH_BYTES - 1, |_| true), Arrival::Waits);
        assert_eq!(first.add(2, 1, |_| true), Arrival::Learn(vec![1, 2]));
    }

    proptest! {
        #[test]
        fn every_object_is_handed_out_once_or_is_gone(
            lens in prop::collection::vec(0..40_usize << 10, 0..200),
            gone in prop::collection::vec(any::<bool>(), 200),
            learned_after in 0..100_usize,
        ) {
            let mut first = FirstObjects::new();
            let (mut learning, mut expected, mut late) = (None, BTreeSet::new(), 0);
            for (n, len) in lens.iter().enumerate() {
                if learning == Some(learned_after) {
                    let handed_out = first.finish();
                    prop_assert_eq!(&handed_out.iter().copied().collect::<BTreeSet<_>>(), &expected);
                    prop_assert_eq!(handed_out.len(), expected.len());
                }
                // What was found to be gone may be in it no more.
                let arrival = first.add(n, *len, |n| !gone[*n]);
                first.validate();
                match arrival {
                    Arrival::Waits => {
                        expected.insert(n);
                        expected.retain(|n| !gone[*n] || first.waiting.iter().any(|(waiting, _)| waiting == n));
                    }
                    Arrival::Learn(samples) => {
                        prop_assert_eq!(learning, None, "once");
                        prop_assert!(samples.iter().all(|n| !gone[*n]));
                        expected.insert(n);
                        expected.retain(|n| !gone[*n]);
                        prop_assert_eq!(&samples.into_iter().collect::<BTreeSet<_>>(), &expected);
                        learning = Some(0);
                        continue;
                    }
                    Arrival::TooLate => late += 1,
                }
                learning = learning.map(|arrivals| arrivals + 1);
            }
            let after = learning.unwrap_or(0).saturating_sub(learned_after);
            prop_assert_eq!(late, after, "only what comes after the end is too late");
        }
    }
}
