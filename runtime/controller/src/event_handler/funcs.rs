//! A handler of closures.

use std::fmt;

use super::EventHandler;
use crate::event::Event;
use crate::request::{Request, RequestKey};
use crate::request_queue::Enqueue;

type One<O, R> = Box<dyn Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync>;

/// A handler of one closure for each kind of event; one that is not given does nothing. As controller-runtime's `Funcs`.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{EventHandlerFuncs, Request};
/// # use kubewire_indexer::{Id, Meta, Object};
/// # struct Pod;
/// # impl Meta for Pod { fn id(&self) -> Id<'_> { Id::new("default", "web") } }
///
/// let handler = EventHandlerFuncs::<Arc<Pod>, Request>::new()
///     .created(|event, queue| queue.add(event.key()))
///     .deleted(|event, queue| queue.add_after(event.key(), std::time::Duration::from_secs(5)));
/// ```
pub struct EventHandlerFuncs<O: ?Sized, R: RequestKey = Request> {
    created: Option<One<O, R>>,
    updated: Option<One<O, R>>,
    deleted: Option<One<O, R>>,
    generic: Option<One<O, R>>,
}

impl<O: ?Sized, R: RequestKey> EventHandlerFuncs<O, R> {
    /// Does nothing.
    pub fn new() -> Self {
        Self { created: None, updated: None, deleted: None, generic: None }
    }

    /// Calls this with creations.
    #[must_use = "it changes nothing in place"]
    pub fn created(self, handle: impl Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Self {
        Self { created: Some(Box::new(handle)), ..self }
    }

    /// Calls this with updates.
    #[must_use = "it changes nothing in place"]
    pub fn updated(self, handle: impl Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Self {
        Self { updated: Some(Box::new(handle)), ..self }
    }

    /// Calls this with deletions.
    #[must_use = "it changes nothing in place"]
    pub fn deleted(self, handle: impl Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Self {
        Self { deleted: Some(Box::new(handle)), ..self }
    }

    /// Calls this with generic events.
    #[must_use = "it changes nothing in place"]
    pub fn generic(self, handle: impl Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync + 'static) -> Self {
        Self { generic: Some(Box::new(handle)), ..self }
    }
}

impl<O: ?Sized + 'static, R: RequestKey> EventHandler<O, R> for EventHandlerFuncs<O, R> {
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, R>) {
        let handle = match event {
            Event::Created { .. } => &self.created,
            Event::Updated { .. } => &self.updated,
            Event::Deleted { .. } => &self.deleted,
            Event::Generic { .. } => &self.generic,
        };
        if let Some(handle) = handle {
            handle(event, queue);
        }
    }
}

impl<O: ?Sized, R: RequestKey> Default for EventHandlerFuncs<O, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: ?Sized, R: RequestKey> fmt::Debug for EventHandlerFuncs<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventHandlerFuncs")
            .field("created", &self.created.is_some())
            .field("updated", &self.updated.is_some())
            .field("deleted", &self.deleted.is_some())
            .field("generic", &self.generic.is_some())
            .finish()
    }
}
