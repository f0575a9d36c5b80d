//! Requests that a function says.

use std::fmt;
use std::marker::PhantomData;

use super::{EventHandler, add_distinct};
use crate::event::Event;
use crate::request::RequestKey;
use crate::request_queue::Enqueue;

/// See [`map`].
pub struct EnqueueRequestsFromMap<F, O: ?Sized> {
    map: F,
    object: PhantomData<fn(&O)>,
}

/// Asks for what `map` makes of the object: any number of requests. As controller-runtime's `EnqueueRequestsFromMapFunc`.
///
/// Of an update it is asked about both states, the old one first; what comes twice is added once. A deletion of which no
/// state is known is passed over.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{EventHandler, Request, map};
///
/// struct ConfigMap { used_by: Vec<String> }
///
/// fn is_handler(_: impl EventHandler<Arc<ConfigMap>>) {}
///
/// is_handler(map(|config: &Arc<ConfigMap>| {
///     let pods = config.used_by.iter().map(|pod| Request::new("default", pod));
///     pods.collect::<Vec<_>>()
/// }));
/// ```
pub fn map<O, I, F>(map: F) -> EnqueueRequestsFromMap<F, O>
where
    O: ?Sized,
    I: IntoIterator,
    F: Fn(&O) -> I + Send + Sync + 'static,
{
    EnqueueRequestsFromMap { map, object: PhantomData }
}

impl<O, R, I, F> EventHandler<O, R> for EnqueueRequestsFromMap<F, O>
where
    O: ?Sized + 'static,
    R: RequestKey,
    I: IntoIterator<Item = R>,
    F: Fn(&O) -> I + Send + Sync + 'static,
{
    fn handle(&self, event: &Event<'_, O>, queue: &Enqueue<'_, R>) {
        let objects = event.old().into_iter().chain(event.object());
        add_distinct(objects.flat_map(|object| (self.map)(object)).collect(), queue);
    }
}

impl<F, O: ?Sized> fmt::Debug for EnqueueRequestsFromMap<F, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnqueueRequestsFromMap")
    }
}
