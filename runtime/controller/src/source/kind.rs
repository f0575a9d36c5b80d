//! The events of an informer.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kubewire_indexer::{Deleted, Object};
use kubewire_informer::{HandlerOptions, Informer, Registration, ResourceEventHandler};

use super::{Source, SourceContext, Started};
use crate::event::Event;
use crate::event_handler::EventHandler;
use crate::predicate::Predicate;
use crate::request::{Request, RequestKey};
use crate::request_queue::RequestQueue;
use crate::runnable::BoxError;
use crate::watch::{AnyPredicate, Watch};

/// The events of an informer, behind predicates, turned into requests by a handler: controller-runtime's `source.Kind`.
///
/// When it is started it adds a handler to the informer, under the controller's name; it is synced once that handler has
/// returned from all calls for what was there. When the controller ends the handler is removed. (controller-runtime leaves
/// it there.)
///
/// The informer belongs to whoever started it, a factory or a cluster, and goes on. With [`owned`](Self::owned) it belongs
/// to the source, which starts and stops it: for a controller that is wired by hand. An informer that cannot list is tried
/// again and again by itself; what was wrong last stands in the error after the time-out.
pub struct KindSource<O: Object, R: RequestKey = Request> {
    /// One, or one for each of several namespaces.
    informers: Vec<Informer<O>>,
    watch: Watch<O, R>,
    owned: bool,
}

impl<O: Object, R: RequestKey> KindSource<O, R> {
    /// The events of this informer for this handler. Nothing happens before the controller starts.
    pub fn new(informer: &Informer<O>, handler: impl EventHandler<O, R>) -> Self {
        Self::of_all(vec![informer.clone()], handler)
    }

    /// The events of several informers of one type, such as one for each namespace, for one handler. No order holds between
    /// those of different ones.
    pub(crate) fn of_all(informers: Vec<Informer<O>>, handler: impl EventHandler<O, R>) -> Self {
        Self { informers, watch: Watch::new(handler), owned: false }
    }

    /// Only events for which this says yes. Of several all must.
    #[must_use = "it changes nothing in place"]
    pub fn when(mut self, predicate: impl Predicate<O>) -> Self {
        self.watch.predicates.push(Box::new(predicate));
        self
    }

    /// The informer is started with this source and stopped with its controller.
    #[must_use = "it changes nothing in place"]
    pub fn owned(self) -> Self {
        Self { owned: true, ..self }
    }

    pub(crate) fn with_global(mut self, predicates: &[AnyPredicate]) -> Self {
        self.watch.global = predicates.to_vec();
        self
    }

    pub(crate) fn with_predicates(mut self, predicates: Vec<Box<dyn Predicate<O>>>) -> Self {
        self.watch.predicates.extend(predicates);
        self
    }
}

impl<O: Object, R: RequestKey> Source<R> for KindSource<O, R> {
    fn name(&self) -> String {
        let resources: Vec<_> = self.informers.iter().map(Informer::resource).collect();
        resources.join(", ")
    }

    fn start(self: Box<Self>, cx: SourceContext<R>) -> BoxFuture<'static, Result<Started, BoxError>> {
        Box::pin(async move {
            let Self { informers, watch, owned } = *self;
            let (watch, mut started) = (Arc::new(watch), Started::now());
            for informer in informers {
                let handler = Adapter { watch: Arc::clone(&watch), queue: cx.queue.clone() };
                let options = HandlerOptions::new().name(cx.controller.clone());
                let registration = informer.add_handler_with(handler, options)?;
                started = started.and_sync(registration.clone()).and_keep(RemoveOnDrop(registration));
                if owned {
                    started = started.and_keep(informer.start(cx.stop.clone()));
                }
            }
            Ok(started)
        })
    }
}

impl<O: Object, R: RequestKey> fmt::Debug for KindSource<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindSource").field("resource", &Source::<R>::name(self)).finish_non_exhaustive()
    }
}

struct RemoveOnDrop(Registration);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Tells a watch what an informer tells.
struct Adapter<O, R: RequestKey> {
    watch: Arc<Watch<O, R>>,
    queue: RequestQueue<R>,
}

impl<O: Object, R: RequestKey> ResourceEventHandler<O> for Adapter<O, R> {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        self.watch.tell(&Event::Created { object: &object, is_in_initial_list }, &self.queue);
    }

    fn on_update(&mut self, old: O, new: O) {
        self.watch.tell(&Event::Updated { old: &old, new: &new }, &self.queue);
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        let event = Event::Deleted {
            key: &deleted.key(),
            object: deleted.last_known(),
            is_final_state_unknown: deleted.is_final_state_unknown(),
        };
        self.watch.tell(&event, &self.queue);
    }
}
