//! The seam to the API server, small enough to fake in a test in ten lines.

use futures::stream::BoxStream;
use kubewire_indexer::Object;

use crate::{Held, ItemError, ListMeta, ListOptions, RelistSink, Relisted, RequestError, WatchEvent, WatchOptions};

/// Where the items of a list go, one by one as they are decoded. An item that could not be decoded comes as
/// the error that says which one it was.
pub type ItemSink<'a, O> = &'a mut (dyn FnMut(Result<O, ItemError>) + Send);

/// What a watch gives until it ends. An `Err` is the last thing that comes out of it: an `ERROR` event of the
/// server, or a failure of the connection or of the framing.
pub type WatchStream<O> = BoxStream<'static, Result<WatchEvent<O>, RequestError>>;

/// Something that can be listed and watched: client-go's `ListerWatcher`.
///
/// Both futures, and the stream, must be cancel-safe in the sense that dropping them ends the request and
/// nothing else.
pub trait ListerWatcher: Send + Sync + 'static {
    /// The representation in which objects come out.
    type Object: Object;

    /// Makes one list request (one page) and hands each of its items to `each`, in order, as soon as it is
    /// decoded. On an error the items handed out before it count for nothing.
    fn list(
        &self,
        options: &ListOptions,
        each: ItemSink<'_, Self::Object>,
    ) -> impl Future<Output = Result<ListMeta, RequestError>> + Send;

    /// Opens one watch.
    fn watch(
        &self,
        options: &WatchOptions,
    ) -> impl Future<Output = Result<WatchStream<Self::Object>, RequestError>> + Send;

    /// The same as [`list`](Self::list), for somebody who holds what an earlier list brought: an item whose very state
    /// is `held` may come as [`Relisted::Unchanged`], without being decoded.
    ///
    /// By default nothing is looked up, so that a fake need not know of it. What wraps another one passes it on.
    fn relist(
        &self,
        options: &ListOptions,
        held: &Held<Self::Object>,
        each: RelistSink<'_, Self::Object>,
    ) -> impl Future<Output = Result<ListMeta, RequestError>> + Send {
        let _ = held;
        async move {
            let mut each = |item: Result<_, _>| each(item.map(Relisted::New));
            self.list(options, &mut each).await
        }
    }

    /// The same as [`watch`](Self::watch), for a streaming list of somebody who holds what an earlier list brought: until
    /// its end mark an `ADDED` object whose very state is `held` may come as [`WatchEvent::Unchanged`].
    ///
    /// By default nothing is looked up. What wraps another one passes it on.
    fn streaming_relist(
        &self,
        options: &WatchOptions,
        held: &Held<Self::Object>,
    ) -> impl Future<Output = Result<WatchStream<Self::Object>, RequestError>> + Send {
        let _ = held;
        self.watch(options)
    }

    /// Whether streaming lists (`sendInitialEvents`) may be asked for. By default not, so that a fake need not know of
    /// them; `ListWatch` may be asked. What wraps another one passes its answer on.
    fn supports_watch_list(&self) -> bool {
        false
    }

    /// What is listed, for errors, logs and spans: `pods`, or `apps/v1 deployments`.
    fn resource(&self) -> String {
        std::any::type_name::<Self::Object>().to_owned()
    }
}
