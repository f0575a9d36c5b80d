//! What an event means for the queue.

mod for_object;
mod for_owner;
mod funcs;
mod map;

use std::collections::HashSet;

use crate::event::Event;
use crate::request::{Request, RequestKey};
use crate::request_queue::Enqueue;

pub use for_object::EnqueueRequestForObject;
pub use for_owner::{EnqueueRequestForOwner, GroupKind, ScopeOfOwner};
pub use funcs::EventHandlerFuncs;
pub use map::{EnqueueRequestsFromMap, map};

/// Turns events of objects of one type into requests: controller-runtime's `EventHandler`.
///
/// It is called with one event at a time, in the order of the informer, and must not block. A panic is caught, logged and
/// counted by the informer, and the next event follows.
///
/// A closure over an event and a queue is one. So are [`EnqueueRequestForObject`], [`EnqueueRequestForOwner`], [`map`] and
/// [`EventHandlerFuncs`].
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{Enqueue, Event, EventHandler, Request};
/// # use kubewire_indexer::{Id, Meta, Object};
/// # struct Pod;
/// # impl Meta for Pod { fn id(&self) -> Id<'_> { Id::new("default", "web") } }
///
/// fn is_handler(_: impl EventHandler<Arc<Pod>>) {}
///
/// is_handler(|event: &Event<'_, Arc<Pod>>, queue: &Enqueue<'_, Request>| {
///     if let Event::Deleted { key, .. } = event {
///         queue.add(Request::clone(key));
///     }
/// });
/// ```
pub trait EventHandler<O: ?Sized, R: RequestKey = Request>: Send + Sync + 'static {
    /// Adds to the queue what has to be reconciled because of the event.
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, R>);
}

impl<O, R, F> EventHandler<O, R> for F
where
    O: ?Sized,
    R: RequestKey,
    F: Fn(&Event<'_, O>, &Enqueue<'_, R>) + Send + Sync + 'static,
{
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, R>) {
        self(event, queue);
    }
}

/// Up to so many requests a look at those before each costs less than a set of them.
const FEW: usize = 8;

/// Adds each of some requests once, in order.
fn add_distinct<R: RequestKey>(requests: Vec<R>, queue: &Enqueue<'_, R>) {
    if requests.len() <= FEW {
        for (n, request) in requests.iter().enumerate() {
            if !requests[..n].contains(request) {
                queue.add(request.clone());
            }
        }
        return;
    }
    let mut seen = HashSet::with_capacity(requests.len());
    for request in requests {
        if seen.insert(request.clone()) {
            queue.add(request);
        }
    }
}

#[cfg(test)]
mod tests;
