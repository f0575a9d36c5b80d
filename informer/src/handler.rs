//! Who is told of changes.

use std::fmt;

use kubewire_indexer::{Deleted, Object};

use crate::Notification;

/// Gets the changes of the store, one at a time and in order: client-go's `ResourceEventHandler`.
///
/// Each handler has its own task and its own buffer, so a slow one delays nobody else. The methods are called
/// without any lock of the informer: they may read the store, add and remove handlers, remove their own, and
/// stop or drop the informer. They must not block, since they share the runtime's threads: put a key into a work
/// queue, and do the work there; one that has to block belongs on a
/// [thread of its own](crate::HandlerOptions::own_thread). A panic is caught, logged and counted, and the next change follows.
///
/// The store is changed before anybody is told, so a handler that looks into it finds the state of its event or
/// a newer one; the object may be gone already.
pub trait ResourceEventHandler<O: Object>: Send + 'static {
    /// There is a new object; `is_in_initial_list` says that it was there when this handler began.
    fn on_add(&mut self, object: O, is_in_initial_list: bool);

    /// An object has changed. Both states have the same version where it is told again by a resync or a new
    /// list, and different uids where an object was deleted and made anew while the informer did not look.
    fn on_update(&mut self, old: O, new: O);

    /// An object is gone. A handler of an informer [in order](crate::Delivery::InOrder) may be told of an
    /// object of which it has never heard.
    fn on_delete(&mut self, deleted: Deleted<O>);

    /// Any of the three.
    fn handle(&mut self, notification: Notification<O>) {
        match notification {
            Notification::Added { object, is_in_initial_list } => self.on_add(object, is_in_initial_list),
            Notification::Updated { old, new } => self.on_update(old, new),
            Notification::Deleted(deleted) => self.on_delete(deleted),
        }
    }
}

impl<O: Object, H: ResourceEventHandler<O> + ?Sized> ResourceEventHandler<O> for Box<H> {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        (**self).on_add(object, is_in_initial_list);
    }

    fn on_update(&mut self, old: O, new: O) {
        (**self).on_update(old, new);
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        (**self).on_delete(deleted);
    }
}

type OnAdd<O> = Box<dyn FnMut(O, bool) + Send>;
type OnUpdate<O> = Box<dyn FnMut(O, O) + Send>;
type OnDelete<O> = Box<dyn FnMut(Deleted<O>) + Send>;

/// A handler made of closures; one that is not given does nothing.
///
/// ```
/// # use std::sync::Arc;
/// # use kubewire_indexer::{Id, Meta, Object};
/// # use kubewire_informer::ResourceEventHandlerFuncs;
/// # struct Pod;
/// # impl Meta for Pod { fn id(&self) -> Id<'_> { Id::new("default", "web") } }
/// let handler = ResourceEventHandlerFuncs::<Arc<Pod>>::new()
///     .on_add(|pod, _initial| println!("+ {}", pod.key()))
///     .on_update(|_old, new| println!("~ {}", new.key()))
///     .on_delete(|deleted| println!("- {}", deleted.key()));
/// ```
#[must_use = "a handler does nothing until it is added to an informer"]
pub struct ResourceEventHandlerFuncs<O> {
    add: Option<OnAdd<O>>,
    update: Option<OnUpdate<O>>,
    delete: Option<OnDelete<O>>,
}

impl<O: Object> ResourceEventHandlerFuncs<O> {
    /// A handler that does nothing.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Calls this with each new object, and whether it belongs to the initial list.
    pub fn on_add(self, function: impl FnMut(O, bool) + Send + 'static) -> Self {
        Self { add: Some(Box::new(function)), ..self }
    }

    /// Calls this with the state before and the state now of each object that changes.
    pub fn on_update(self, function: impl FnMut(O, O) + Send + 'static) -> Self {
        Self { update: Some(Box::new(function)), ..self }
    }

    /// Calls this for each object that is gone.
    pub fn on_delete(self, function: impl FnMut(Deleted<O>) + Send + 'static) -> Self {
        Self { delete: Some(Box::new(function)), ..self }
    }
}

impl<O: Object> ResourceEventHandler<O> for ResourceEventHandlerFuncs<O> {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        if let Some(add) = &mut self.add {
            add(object, is_in_initial_list);
        }
    }

    fn on_update(&mut self, old: O, new: O) {
        if let Some(update) = &mut self.update {
            update(old, new);
        }
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        if let Some(delete) = &mut self.delete {
            delete(deleted);
        }
    }
}

impl<O: Object> Default for ResourceEventHandlerFuncs<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> fmt::Debug for ResourceEventHandlerFuncs<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceEventHandlerFuncs")
            .field("on_add", &self.add.is_some())
            .field("on_update", &self.update.is_some())
            .field("on_delete", &self.delete.is_some())
            .finish()
    }
}

/// Passes on what concerns the objects for which a filter says yes: client-go's
/// `FilteringResourceEventHandler`.
///
/// For the inner handler an object that begins to pass is added (not as part of the initial list), and one that
/// no longer passes is deleted, with its last state that did. A deletion is passed on if the last known state
/// passes, or if none is known.
#[derive(Clone, Debug)]
pub struct FilteringResourceEventHandler<F, H> {
    /// Says which objects the handler is to hear of.
    pub filter: F,
    /// Who is told.
    pub handler: H,
}

impl<O, F, H> ResourceEventHandler<O> for FilteringResourceEventHandler<F, H>
where
    O: Object,
    F: FnMut(&O) -> bool + Send + 'static,
    H: ResourceEventHandler<O>,
{
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        if (self.filter)(&object) {
            self.handler.on_add(object, is_in_initial_list);
        }
    }

    fn on_update(&mut self, old: O, new: O) {
        match ((self.filter)(&old), (self.filter)(&new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => self.handler.on_add(new, false),
            (true, false) => self.handler.on_delete(Deleted::Known(old)),
            (false, false) => {}
        }
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        if deleted.last_known().is_none_or(|object| (self.filter)(object)) {
            self.handler.on_delete(deleted);
        }
    }
}
