//! What is done with the events of objects of one type: predicates, then a handler.

use std::sync::Arc;

use kubewire_indexer::Object;

use crate::event::{AnyObject, Event};
use crate::event_handler::EventHandler;
use crate::predicate::Predicate;
use crate::request::RequestKey;
use crate::request_queue::RequestQueue;

/// A predicate for objects of any type.
pub(crate) type AnyPredicate = Arc<dyn Predicate<dyn AnyObject>>;

/// A handler behind predicates.
pub(crate) struct Watch<O, R: RequestKey> {
    /// Asked first.
    pub(crate) global: Vec<AnyPredicate>,
    pub(crate) predicates: Vec<Box<dyn Predicate<O>>>,
    pub(crate) handler: Box<dyn EventHandler<O, R>>,
}

impl<O: Object, R: RequestKey> Watch<O, R> {
    pub(crate) fn new(handler: impl EventHandler<O, R>) -> Self {
        Self { global: Vec::new(), predicates: Vec::new(), handler: Box::new(handler) }
    }

    /// Tells the handler of an event for which all predicates say yes.
    pub(crate) fn tell(&self, event: &Event<'_, O>, queue: &RequestQueue<R>) {
        let erased = event.erase();
        let wanted = self.global.iter().all(|predicate| predicate.test(&erased))
            && self.predicates.iter().all(|predicate| predicate.test(event));
        if wanted {
            self.handler.handle(event, &queue.for_event(event));
        }
    }
}
