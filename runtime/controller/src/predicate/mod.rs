//! Which events a handler is told of.

mod changed;
mod combined;
mod selected;

use crate::event::Event;

pub use changed::{
    AnnotationsChanged, GenerationChanged, GenerationOrDeletionChanged, LabelsChanged, ResourceVersionChanged,
};
pub use combined::{AllOf, And, AnyOf, Not, Or};
pub use selected::{LabelsMatch, OnObject, PredicateFuncs, on_object};

/// Says of which events the handler of a watch is told: controller-runtime's `Predicate`. All predicates of a watch must say
/// yes; the first that says no ends the questions. What a cache holds does not depend on them.
///
/// A closure over an event is one. So are [`GenerationChanged`] and its kin, [`LabelsMatch`], [`on_object`], and
/// [`And`], [`Or`], [`Not`], [`AllOf`] and [`AnyOf`] of others.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{AnnotationsChanged, Event, GenerationChanged, Or, Predicate};
/// use kubewire_indexer::{Id, Meta};
///
/// struct Pod(&'static str);
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", "web").resource_version(self.0)
///     }
///     fn generation(&self) -> Option<i64> {
///         Some(1)
///     }
/// }
///
/// let (old, new) = (Arc::new(Pod("7")), Arc::new(Pod("8")));
/// let event = Event::Updated { old: &old, new: &new };
/// assert!(!Or(GenerationChanged, AnnotationsChanged).test(&event), "only the status has changed");
///
/// let mine = |event: &Event<'_, Arc<Pod>>| event.object().is_some_and(|pod| pod.0 == "8");
/// assert!(mine.test(&event));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no predicate for events of `{O}`",
    note = "one about the objects of one type belongs to them: `.for_(watched(&pods).when(predicate))`",
    note = "`Builder::with_predicate` takes those that ask about any object, such as `GenerationChanged`",
    note = "a closure takes the event: `|event: &Event<'_, Arc<Pod>>| …`; over the object alone it is `on_object(…)`"
)]
pub trait Predicate<O: ?Sized>: Send + Sync + 'static {
    /// Whether the handler is told. A panic counts as one of the handler's.
    fn test(&self, event: &Event<'_, O>) -> bool;
}

impl<O: ?Sized, F: Fn(&Event<'_, O>) -> bool + Send + Sync + 'static> Predicate<O> for F {
    fn test(&self, event: &Event<'_, O>) -> bool {
        self(event)
    }
}

impl<O: ?Sized + 'static> Predicate<O> for Box<dyn Predicate<O>> {
    fn test(&self, event: &Event<'_, O>) -> bool {
        (**self).test(event)
    }
}

#[cfg(test)]
mod tests;
