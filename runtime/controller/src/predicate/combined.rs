//! PURE. Predicates of predicates.

use super::Predicate;
use crate::event::Event;

/// Both; the second is not asked where the first says no.
#[derive(Clone, Copy, Debug)]
pub struct And<A, B>(pub A, pub B);

/// Either; the second is not asked where the first says yes.
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B>(pub A, pub B);

/// The opposite, for every kind of event: `Not(GenerationChanged)` keeps creations and deletions back too.
#[derive(Clone, Copy, Debug)]
pub struct Not<P>(pub P);

/// All of these; of none it is yes. They are asked in order, up to the first no.
#[derive(Clone, Debug)]
pub struct AllOf<P>(pub Vec<P>);

/// Any of these; of none it is no. They are asked in order, up to the first yes.
#[derive(Clone, Debug)]
pub struct AnyOf<P>(pub Vec<P>);

impl<O: ?Sized, A: Predicate<O>, B: Predicate<O>> Predicate<O> for And<A, B> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        self.0.test(event) && self.1.test(event)
    }
}

impl<O: ?Sized, A: Predicate<O>, B: Predicate<O>> Predicate<O> for Or<A, B> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        self.0.test(event) || self.1.test(event)
    }
}

impl<O: ?Sized, P: Predicate<O>> Predicate<O> for Not<P> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        !self.0.test(event)
    }
}

impl<O: ?Sized, P: Predicate<O>> Predicate<O> for AllOf<P> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        self.0.iter().all(|predicate| predicate.test(event))
    }
}

impl<O: ?Sized, P: Predicate<O>> Predicate<O> for AnyOf<P> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        self.0.iter().any(|predicate| predicate.test(event))
    }
}
