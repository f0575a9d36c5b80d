//! Lists in pages, for whoever wants a list and no watch: client-go's `tools/pager`.

use std::convert::Infallible;

use futures::future::try_join;
use kubewire_listwatch::{ItemError, ListMeta, ListOptions, ListerWatcher, RequestError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::page_walk::{PageWalk, Walk};
use super::rules::DEFAULT_PAGE_SIZE;

/// Pages that [`ListPager::each_list_item`] lists ahead.
const DEFAULT_PAGE_BUFFER: usize = 10;

/// Walks a list page by page.
///
/// ```
/// # use std::sync::Arc;
/// # use kubewire_indexer::{Id, Meta};
/// # use kubewire_listwatch::{ItemSink, ListMeta, ListerWatcher, RequestError, WatchOptions, WatchStream};
/// use kubewire_informer::reflector::ListPager;
/// use kubewire_listwatch::ListOptions;
/// # struct Pod(String);
/// # impl Meta for Pod {
/// #     fn id(&self) -> Id<'_> { Id::new("default", &self.0) }
/// # }
/// # struct Pods;
/// # impl ListerWatcher for Pods {
/// #     type Object = Arc<Pod>;
/// #     async fn list(&self, options: &ListOptions, each: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
/// #         let second = options.continue_token.is_some();
/// #         each(Ok(Arc::new(Pod(format!("web-{second}")))));
/// #         Ok(if second { ListMeta::new("7") } else { ListMeta::new("7").continued("t") })
/// #     }
/// #     async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
/// #         Ok(Box::pin(futures::stream::pending()))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // `Pods` is any `ListerWatcher`; its list has two pages.
/// let list = ListPager::new(&Pods).page_size(1).list(ListOptions::default()).await.expect("a list");
/// assert_eq!((list.items.len(), list.resource_version.as_str(), list.paginated), (2, "7", true));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a pager lists nothing before it is asked to"]
pub struct ListPager<'a, L> {
    lister_watcher: &'a L,
    page_size: u32,
    full_list_if_expired: bool,
    page_buffer: usize,
    stop: CancellationToken,
}

/// A list put together from its pages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PagedList<O> {
    /// The objects, in order.
    pub items: Vec<O>,
    /// The objects that could not be decoded.
    pub undecodable: Vec<ItemError>,
    /// The version of the first page.
    pub resource_version: String,
    /// Whether there was more than one page (also where the full list took their place).
    pub paginated: bool,
}

/// Why a list came to no end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PagerError<E = Infallible> {
    /// A request failed.
    #[error("cannot list: {source}")]
    Request {
        /// The failure.
        source: RequestError,
        /// Whether it was not the first page.
        paginated: bool,
    },
    /// The server gave a continue token a second time: paging would never end.
    #[error("the server gave the same continue token again, so its list never ends")]
    RepeatedToken,
    /// The stop token was cancelled.
    #[error("stopped before the list was complete")]
    Stopped,
    /// The callback failed.
    #[error(transparent)]
    Callback(E),
}

type Page<O> = Vec<Result<O, ItemError>>;

impl<'a, L: ListerWatcher> ListPager<'a, L> {
    /// Pages of 500; an expired continuation falls back to the full list; 10 pages ahead.
    pub fn new(lister_watcher: &'a L) -> Self {
        Self {
            lister_watcher,
            page_size: DEFAULT_PAGE_SIZE,
            full_list_if_expired: true,
            page_buffer: DEFAULT_PAGE_BUFFER,
            stop: CancellationToken::new(),
        }
    }

    /// The page size where the options of a list have no limit; 0 for none.
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = page_size;
        self
    }

    /// Whether [`list`](Self::list) asks for the full list where a continuation has expired.
    pub fn full_list_if_expired(mut self, full_list: bool) -> Self {
        self.full_list_if_expired = full_list;
        self
    }

    /// How many complete pages may wait for the callback of [`each_list_item`](Self::each_list_item), beside the one
    /// that it works on and the one that is being listed.
    pub fn page_buffer(mut self, pages: usize) -> Self {
        self.page_buffer = pages;
        self
    }

    /// Gives up when this token is cancelled.
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// The whole list, page after page. The version and its match are sent with the first page only.
    ///
    /// Cancel-safe: dropping it ends the request under way.
    ///
    /// # Errors
    ///
    /// All but [`PagerError::Callback`]. Nothing is tried again.
    pub async fn list(&self, options: ListOptions) -> Result<PagedList<L::Object>, PagerError> {
        let (mut walk, mut options) = self.walk(options, self.full_list_if_expired);
        let mut items = Vec::new();
        loop {
            let answer = self.page(&options, &mut items).await?;
            options = match answer.map(|meta| walk.page(&meta)) {
                Ok(Walk::More(next)) => next,
                Ok(Walk::Done { version, paginated }) => return Ok(PagedList::new(items, version, paginated)),
                Ok(Walk::Circle) => return Err(PagerError::RepeatedToken),
                Err(error) => match walk.failed(&error) {
                    Some(full_list) => {
                        items.clear();
                        full_list
                    }
                    None => return Err(PagerError::Request { source: error, paginated: walk.paginated() }),
                },
            };
        }
    }

    /// Calls `each` with one item after the other, in order, while further pages are listed ahead. There is no fall
    /// back to the full list: what was visited cannot be taken back. A stop is noticed between two pages.
    ///
    /// Cancel-safe: dropping it ends the request under way; what was visited was visited.
    ///
    /// # Errors
    ///
    /// The first failure of `each`, at once, as [`PagerError::Callback`]; a failed request, after all items before it
    /// were visited. A panic of `each` passes through.
    pub async fn each_list_item<F, Fut, E>(&self, options: ListOptions, each: F) -> Result<(), PagerError<E>>
    where
        F: FnMut(Result<L::Object, ItemError>) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        // One more than may wait: the next page is listed only when there is room for it.
        let (sender, receiver) = mpsc::channel(self.page_buffer + 1);
        let listing = async { Ok(self.list_ahead(options, sender).await) };
        let (listed, ()) = try_join(listing, self.visit(receiver, each)).await?;
        listed
    }

    async fn list_ahead<E>(
        &self,
        options: ListOptions,
        pages: mpsc::Sender<Page<L::Object>>,
    ) -> Result<(), PagerError<E>> {
        let (mut walk, mut options) = self.walk(options, false);
        // The receiver is dropped only together with this future.
        while let Ok(room) = pages.reserve().await {
            let mut items = Vec::new();
            let meta = match self.page(&options, &mut items).await? {
                Ok(meta) => meta,
                Err(source) => return Err(PagerError::Request { source, paginated: walk.paginated() }),
            };
            room.send(items);
            match walk.page(&meta) {
                Walk::More(next) => options = next,
                Walk::Done { .. } => break,
                Walk::Circle => return Err(PagerError::RepeatedToken),
            }
        }
        Ok(())
    }

    async fn visit<F, Fut, E>(
        &self,
        mut pages: mpsc::Receiver<Page<L::Object>>,
        mut each: F,
    ) -> Result<(), PagerError<E>>
    where
        F: FnMut(Result<L::Object, ItemError>) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        while let Some(page) = pages.recv().await {
            for item in page {
                each(item).await.map_err(PagerError::Callback)?;
            }
            if self.stop.is_cancelled() {
                return Err(PagerError::Stopped);
            }
        }
        Ok(())
    }

    fn walk(&self, mut options: ListOptions, full_list_if_expired: bool) -> (PageWalk, ListOptions) {
        if options.limit.is_none_or(|limit| limit == 0) {
            options.limit = (self.page_size > 0).then_some(self.page_size);
        }
        (PageWalk::new(options.clone(), full_list_if_expired), options)
    }

    /// One page; the outer error is the stop.
    async fn page<E>(
        &self,
        options: &ListOptions,
        items: &mut Page<L::Object>,
    ) -> Result<Result<ListMeta, RequestError>, PagerError<E>> {
        let mut each = |item| items.push(item);
        let request = self.lister_watcher.list(options, &mut each);
        self.stop.run_until_cancelled(request).await.ok_or(PagerError::Stopped)
    }
}

impl<O> PagedList<O> {
    fn new(page: Page<O>, resource_version: String, paginated: bool) -> Self {
        let mut list =
            Self { items: Vec::with_capacity(page.len()), undecodable: Vec::new(), resource_version, paginated };
        for item in page {
            match item {
                Ok(object) => list.items.push(object),
                Err(error) => list.undecodable.push(error),
            }
        }
        list
    }
}
