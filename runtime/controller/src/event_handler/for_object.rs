//! The object itself.

use super::EventHandler;
use crate::event::{AnyObject, Event};
use crate::request::Request;
use crate::request_queue::Enqueue;

/// Asks for the object of the event, whatever happened to it. As controller-runtime's `EnqueueRequestForObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueueRequestForObject;

impl<O: AnyObject + ?Sized> EventHandler<O> for EnqueueRequestForObject {
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, Request>) {
        let key = event.key();
        if key.name().is_empty() {
            tracing::error!("an event without a name: its object has none, so that nothing can be asked for");
            return;
        }
        queue.add(key);
    }
}
