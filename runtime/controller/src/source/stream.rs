//! Events out of a stream.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kubewire_indexer::Object;

use super::{Source, SourceContext, Started};
use crate::event::Event;
use crate::event_handler::EventHandler;
use crate::predicate::Predicate;
use crate::request::{Request, RequestKey};
use crate::runnable::BoxError;
use crate::watch::Watch;

/// The objects of a stream, as [`Event::Generic`], behind predicates, turned into requests by a handler. Workers do not wait
/// for it. It takes the next object when the handler has returned from the one before: what is not taken waits in the
/// stream, which has to be bounded. It ends with its stream, also where that panics, and says so in the log.
pub struct StreamSource<O, R: RequestKey = Request> {
    name: String,
    stream: BoxStream<'static, O>,
    watch: Watch<O, R>,
}

impl<O: Object, R: RequestKey> StreamSource<O, R> {
    /// The objects of this stream for this handler.
    pub fn new(
        name: impl Into<String>,
        stream: impl Stream<Item = O> + Send + 'static,
        handler: impl EventHandler<O, R>,
    ) -> Self {
        Self { name: name.into(), stream: stream.boxed(), watch: Watch::new(handler) }
    }

    /// Only objects for which this says yes. Of several all must.
    #[must_use = "it changes nothing in place"]
    pub fn when(mut self, predicate: impl Predicate<O>) -> Self {
        self.watch.predicates.push(Box::new(predicate));
        self
    }
}

impl<O: Object, R: RequestKey> Source<R> for StreamSource<O, R> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(self: Box<Self>, cx: SourceContext<R>) -> BoxFuture<'static, Result<Started, BoxError>> {
        let Self { name, stream, watch } = *self;
        Box::pin(async move { Ok(Started::now().and_task(tokio::spawn(pump(name, stream, watch, cx)))) })
    }
}

impl<O: Object, R: RequestKey> fmt::Debug for StreamSource<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamSource").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Tells a watch of all that a stream brings.
pub(super) async fn pump<O: Object, R: RequestKey>(
    name: String,
    stream: impl Stream<Item = O>,
    watch: Watch<O, R>,
    cx: SourceContext<R>,
) {
    let mut stream = std::pin::pin!(stream);
    while let Some(Some(object)) = cx.stop.run_until_cancelled(stream.next()).await {
        let tell = || watch.tell(&Event::Generic { object: &object }, &cx.queue);
        if catch_unwind(AssertUnwindSafe(tell)).is_err() {
            tracing::error!(
                source = name,
                controller = cx.controller,
                "a handler or predicate panicked; the source goes on"
            );
        }
        tokio::task::coop::consume_budget().await;
    }
}
