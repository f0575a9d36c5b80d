//! Where events come from.

mod channel;
mod kind;
mod started;
mod stream;

use std::fmt;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::request::{Request, RequestKey};
use crate::request_queue::RequestQueue;
use crate::runnable::BoxError;

pub use channel::{Channel, ChannelClosed, ChannelSource};
pub use kind::KindSource;
pub use started::Started;
pub use stream::StreamSource;

/// Where the requests of a controller come from: controller-runtime's `Source`.
///
/// [`KindSource`] is an informer, [`ChannelSource`] and [`StreamSource`] are for what happens outside of a cluster, and
/// [`source_fn`] makes one of an async closure.
pub trait Source<R: RequestKey = Request>: Send + 'static {
    /// What it is called in logs and errors.
    fn name(&self) -> String;

    /// Starts it: from now on it adds to the queue, until what this answers is dropped. It is called once.
    ///
    /// It must not do the work itself, but spawn it, and answer: the controller waits for all its sources to be started and
    /// synced, within [`cache_sync_timeout`](crate::ControllerOptions::cache_sync_timeout).
    fn start(self: Box<Self>, cx: SourceContext<R>) -> BoxFuture<'static, Result<Started, BoxError>>;
}

/// What a source is started with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceContext<R: RequestKey = Request> {
    /// What it adds to.
    pub queue: RequestQueue<R>,
    /// The name of its controller.
    pub controller: String,
    /// Cancelled when it is to end.
    pub stop: CancellationToken,
}

impl<R: RequestKey> SourceContext<R> {
    /// To start a source by hand, as tests do.
    pub fn new(queue: RequestQueue<R>, controller: impl Into<String>, stop: CancellationToken) -> Self {
        Self { queue, controller: controller.into(), stop }
    }
}

/// A source of an async closure; as controller-runtime's `source.Func`.
///
/// ```
/// use kubewire_controller::{Request, SourceContext, Started, source_fn};
///
/// let hourly = source_fn("hourly", |cx: SourceContext| async move {
///     let task = tokio::spawn(async move {
///         let mut hours = tokio::time::interval(std::time::Duration::from_secs(3600));
///         while cx.stop.run_until_cancelled(hours.tick()).await.is_some() {
///             cx.queue.add(Request::cluster("all"), 0);
///         }
///     });
///     Ok::<_, std::io::Error>(Started::now().and_task(task))
/// });
/// ```
pub fn source_fn<R, F, Fut, E>(name: impl Into<String>, start: F) -> impl Source<R>
where
    R: RequestKey,
    F: FnOnce(SourceContext<R>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Started, E>> + Send + 'static,
    E: Into<BoxError>,
{
    SourceFn { name: name.into(), start }
}

struct SourceFn<F> {
    name: String,
    start: F,
}

impl<R, F, Fut, E> Source<R> for SourceFn<F>
where
    R: RequestKey,
    F: FnOnce(SourceContext<R>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Started, E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(self: Box<Self>, cx: SourceContext<R>) -> BoxFuture<'static, Result<Started, BoxError>> {
        let start = self.start;
        Box::pin(async move { start(cx).await.map_err(Into::into) })
    }
}

impl<F> fmt::Debug for SourceFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceFn").field("name", &self.name).finish_non_exhaustive()
    }
}
