//! Events that a program makes itself, for any number of controllers.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kubewire_indexer::Object;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::stream::pump;
use super::{Source, SourceContext, Started};
use crate::event_handler::EventHandler;
use crate::predicate::Predicate;
use crate::request::{Request, RequestKey};
use crate::runnable::BoxError;
use crate::watch::Watch;

/// How many objects wait for a controller before a sender has to: controller-runtime's buffer of its channel source.
pub(crate) const CHANNEL_CAPACITY: usize = 1024;

/// Sends objects, as [`Event::Generic`](crate::Event::Generic), to the sources made of it: for what happens outside of a
/// cluster. Controller-runtime's `source.Channel`. Cloning gives another sender of the same.
///
/// Each source gets what is sent after it was made, started or not, in order: nothing is lost at a start. Each has a buffer;
/// while one is full, [`send`](Self::send) waits, so that a slow handler slows the sender rather than filling the memory. A
/// source that ends leaves.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{Channel, EnqueueRequestForObject, Request, RequestQueue, Source, SourceContext};
/// use kubewire_indexer::{Id, Meta};
/// use tokio_util::sync::CancellationToken;
///
/// struct Webhook;
/// impl Meta for Webhook {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", "web")
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let channel = Channel::<Arc<Webhook>>::new();
/// let source = channel.source("webhooks", EnqueueRequestForObject);
/// channel.send(Arc::new(Webhook)).await.unwrap();
///
/// let queue = RequestQueue::<Request>::for_test(None);
/// let cx = SourceContext::new(queue.clone(), "pods", CancellationToken::new());
/// let started = Box::new(source).start(cx).await.unwrap();
/// assert_eq!(queue.queue().get().await.unwrap().to_string(), "default/web");
/// drop(started);
/// # });
/// ```
pub struct Channel<O> {
    capacity: usize,
    /// Guards who gets what is sent. Nothing is sent under the lock.
    destinations: Arc<Mutex<Vec<mpsc::Sender<O>>>>,
}

/// Nobody gets what was sent: no source was made, or all have ended. It holds what was sent.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no source of this channel is left: make one before sending, and stop sending when the controller has ended")]
pub struct ChannelClosed<O>(pub O);

impl<O> fmt::Debug for ChannelClosed<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelClosed")
    }
}

impl<O: Object> Channel<O> {
    /// A channel whose sources have room for 1024 objects each.
    pub fn new() -> Self {
        Self::with_capacity(CHANNEL_CAPACITY)
    }

    /// A channel whose sources have room for so many objects each; one at least.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), destinations: Arc::default() }
    }

    /// A source of what is sent from now on.
    pub fn source<R: RequestKey>(
        &self,
        name: impl Into<String>,
        handler: impl EventHandler<O, R>,
    ) -> ChannelSource<O, R> {
        let (sender, receiver) = mpsc::channel(self.capacity);
        self.destinations.lock().push(sender);
        ChannelSource { name: name.into(), receiver, watch: Watch::new(handler) }
    }

    /// Sends an object to all sources, once all have room.
    ///
    /// Cancel-safe: what is dropped before it is done has sent nothing.
    ///
    /// # Errors
    /// No source is left.
    pub async fn send(&self, object: O) -> Result<(), ChannelClosed<O>> {
        let destinations = self.destinations.lock().clone();
        let mut permits = Vec::with_capacity(destinations.len());
        let mut ended = false;
        for destination in &destinations {
            match destination.reserve().await {
                Ok(permit) => permits.push(permit),
                Err(_) => ended = true,
            }
        }
        if ended {
            self.destinations.lock().retain(|destination| !destination.is_closed());
        }
        if permits.is_empty() {
            return Err(ChannelClosed(object));
        }
        for permit in permits {
            permit.send(object.clone());
        }
        Ok(())
    }
}

impl<O> Clone for Channel<O> {
    fn clone(&self) -> Self {
        Self { capacity: self.capacity, destinations: Arc::clone(&self.destinations) }
    }
}

impl<O: Object> Default for Channel<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> fmt::Debug for Channel<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// What a [`Channel`] sends, behind predicates, turned into requests by a handler. Workers do not wait for it.
///
/// It ends, once all that was sent is handled, when the last sender of its channel is dropped.
pub struct ChannelSource<O, R: RequestKey = Request> {
    name: String,
    receiver: mpsc::Receiver<O>,
    watch: Watch<O, R>,
}

impl<O: Object, R: RequestKey> ChannelSource<O, R> {
    /// Only objects for which this says yes. Of several all must.
    #[must_use = "it changes nothing in place"]
    pub fn when(mut self, predicate: impl Predicate<O>) -> Self {
        self.watch.predicates.push(Box::new(predicate));
        self
    }
}

impl<O: Object, R: RequestKey> Source<R> for ChannelSource<O, R> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(self: Box<Self>, cx: SourceContext<R>) -> BoxFuture<'static, Result<Started, BoxError>> {
        let Self { name, mut receiver, watch } = *self;
        let stream = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
        Box::pin(async move { Ok(Started::now().and_task(tokio::spawn(pump(name, stream, watch, cx)))) })
    }
}

impl<O: Object, R: RequestKey> fmt::Debug for ChannelSource<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSource").field("name", &self.name).finish_non_exhaustive()
    }
}
