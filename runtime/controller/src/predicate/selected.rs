//! PURE. Events of objects that are as wanted.

use std::fmt;
use std::marker::PhantomData;

use kubewire_indexer::LabelSelector;

use super::Predicate;
use crate::event::{AnyObject, Event};

/// Events of objects with these labels, in their state now: an object that loses them is not told of when it does. As
/// controller-runtime's `LabelSelectorPredicate`.
///
/// To keep what has no such labels out of the cache too, give the selector to the lister-watcher; then its objects are
/// deleted when they lose them.
#[derive(Clone, Debug)]
pub struct LabelsMatch(pub LabelSelector);

impl<O: AnyObject + ?Sized> Predicate<O> for LabelsMatch {
    fn test(&self, event: &Event<'_, O>) -> bool {
        event.object().is_some_and(|object| self.0.matches(|name| object.label(name)))
    }
}

/// See [`on_object`].
pub struct OnObject<F, O: ?Sized> {
    test: F,
    object: PhantomData<fn(&O)>,
}

/// Events of objects for which `test` says yes, in their state now. As controller-runtime's `NewPredicateFuncs`.
///
/// A deletion of which no state is known does not pass.
pub fn on_object<O: ?Sized, F: Fn(&O) -> bool + Send + Sync + 'static>(test: F) -> OnObject<F, O> {
    OnObject { test, object: PhantomData }
}

impl<O: ?Sized + 'static, F: Fn(&O) -> bool + Send + Sync + 'static> Predicate<O> for OnObject<F, O> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        event.object().is_some_and(|object| (self.test)(object))
    }
}

impl<F, O: ?Sized> fmt::Debug for OnObject<F, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnObject")
    }
}

type One<O> = Box<dyn Fn(&Event<'_, O>) -> bool + Send + Sync>;

/// A predicate of one closure for each kind of event; one that is not given says yes. As controller-runtime's `Funcs`.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::PredicateFuncs;
///
/// struct Pod;
/// // Only what goes, and what changes.
/// let predicate = PredicateFuncs::<Arc<Pod>>::new().created(|_| false).generic(|_| false);
/// ```
pub struct PredicateFuncs<O: ?Sized> {
    created: Option<One<O>>,
    updated: Option<One<O>>,
    deleted: Option<One<O>>,
    generic: Option<One<O>>,
}

impl<O: ?Sized> PredicateFuncs<O> {
    /// Says yes to everything.
    pub fn new() -> Self {
        Self { created: None, updated: None, deleted: None, generic: None }
    }

    /// Asks this about creations.
    #[must_use = "it changes nothing in place"]
    pub fn created(self, test: impl Fn(&Event<'_, O>) -> bool + Send + Sync + 'static) -> Self {
        Self { created: Some(Box::new(test)), ..self }
    }

    /// Asks this about updates.
    #[must_use = "it changes nothing in place"]
    pub fn updated(self, test: impl Fn(&Event<'_, O>) -> bool + Send + Sync + 'static) -> Self {
        Self { updated: Some(Box::new(test)), ..self }
    }

    /// Asks this about deletions.
    #[must_use = "it changes nothing in place"]
    pub fn deleted(self, test: impl Fn(&Event<'_, O>) -> bool + Send + Sync + 'static) -> Self {
        Self { deleted: Some(Box::new(test)), ..self }
    }

    /// Asks this about generic events.
    #[must_use = "it changes nothing in place"]
    pub fn generic(self, test: impl Fn(&Event<'_, O>) -> bool + Send + Sync + 'static) -> Self {
        Self { generic: Some(Box::new(test)), ..self }
    }
}

impl<O: ?Sized + 'static> Predicate<O> for PredicateFuncs<O> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        let test = match event {
            Event::Created { .. } => &self.created,
            Event::Updated { .. } => &self.updated,
            Event::Deleted { .. } => &self.deleted,
            Event::Generic { .. } => &self.generic,
        };
        test.as_ref().is_none_or(|test| test(event))
    }
}

impl<O: ?Sized> Default for PredicateFuncs<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: ?Sized> fmt::Debug for PredicateFuncs<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredicateFuncs")
            .field("created", &self.created.is_some())
            .field("updated", &self.updated.is_some())
            .field("deleted", &self.deleted.is_some())
            .field("generic", &self.generic.is_some())
            .finish()
    }
}
