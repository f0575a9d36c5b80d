//! Where an informer's requests can be cut off, held back and counted. The requests themselves are real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::ready;
use kubewire_listwatch::{
    Held, ItemSink, ListMeta, ListOptions, ListerWatcher, RelistSink, RequestError, WatchEvent, WatchOptions,
    WatchStream,
};
use tokio::sync::watch;

/// The handle of a tap. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Line {
    shared: Arc<Shared>,
}

struct Shared {
    requests: AtomicU64,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// Grows by one with each cut.
    cuts: u64,
    /// Requests wait.
    away: bool,
    /// What watches ask for in place of the reflector's own time.
    watch_time: Option<Duration>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::new(Shared { requests: AtomicU64::new(0), state: watch::Sender::default() }) }
    }

    /// How many requests were made: pages and watches.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Ends the watch that is open, and its connection.
    pub(crate) fn cut(&self) {
        self.shared.state.send_modify(|state| state.cuts += 1);
    }

    /// Ends the watch, and lets no request out.
    pub(crate) fn go_away(&self) {
        self.shared.state.send_modify(|state| {
            state.cuts += 1;
            state.away = true;
        });
    }

    /// Lets requests out again.
    pub(crate) fn come_back(&self) {
        self.shared.state.send_modify(|state| state.away = false);
    }

    /// Ends the watch, and lets those that follow ask for this time; `None` for what the reflector wants.
    pub(crate) fn hurry(&self, watch_time: Option<Duration>) {
        self.shared.state.send_modify(|state| {
            state.cuts += u64::from(watch_time.is_some());
            state.watch_time = watch_time;
        });
    }

    /// Waits until a request may go out, and counts it.
    async fn pass(&self) -> (watch::Receiver<State>, State) {
        let mut receiver = self.shared.state.subscribe();
        // The sender lives as long as this line, so there is no error.
        let _ = receiver.wait_for(|state| !state.away).await;
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        let state = *receiver.borrow();
        (receiver, state)
    }
}

/// A watch that is younger than this is cut a little later: a reflector takes watches of less than a second for the work
/// of a proxy, and lists.
const YOUNG: Duration = Duration::from_millis(1100);

/// A lister-watcher with a tap on it.
pub(crate) struct Tap<L> {
    pub(crate) inner: L,
    pub(crate) line: Line,
    /// Loses one deletion in twenty, to show that this is noticed.
    pub(crate) leaks: bool,
}

impl State {
    fn adjusted(&self, options: &WatchOptions) -> WatchOptions {
        let mut options = options.clone();
        options.timeout = self.watch_time.unwrap_or(options.timeout);
        options
    }
}

impl<L: ListerWatcher> Tap<L> {
    /// The events of a watch that was opened after so many cuts, until the next one.
    fn tapped(
        &self,
        stream: WatchStream<L::Object>,
        mut receiver: watch::Receiver<State>,
        cuts: u64,
    ) -> WatchStream<L::Object> {
        let opened = tokio::time::Instant::now();
        let cut = async move {
            // An error says that the line is gone, and with it the informer.
            let _ = receiver.wait_for(|now| now.cuts != cuts).await;
            tokio::time::sleep_until(opened + YOUNG).await;
        };
        let mut deletions = 0_u32;
        let leaks = self.leaks;
        let passes = move |event: &Result<WatchEvent<L::Object>, RequestError>| {
            deletions += u32::from(matches!(event, Ok(WatchEvent::Deleted(_))));
            ready(!(leaks && matches!(event, Ok(WatchEvent::Deleted(_))) && deletions.is_multiple_of(20)))
        };
        stream.filter(passes).take_until(cut).boxed()
    }
}

impl<L: ListerWatcher> ListerWatcher for Tap<L> {
    type Object = L::Object;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, L::Object>) -> Result<ListMeta, RequestError> {
        self.line.pass().await;
        self.inner.list(options, each).await
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<L::Object>, RequestError> {
        let (receiver, state) = self.line.pass().await;
        let stream = self.inner.watch(&state.adjusted(options)).await?;
        Ok(self.tapped(stream, receiver, state.cuts))
    }

    async fn relist(
        &self,
        options: &ListOptions,
        held: &Held<L::Object>,
        each: RelistSink<'_, L::Object>,
    ) -> Result<ListMeta, RequestError> {
        self.line.pass().await;
        self.inner.relist(options, held, each).await
    }

    async fn streaming_relist(
        &self,
        options: &WatchOptions,
        held: &Held<L::Object>,
    ) -> Result<WatchStream<L::Object>, RequestError> {
        let (receiver, state) = self.line.pass().await;
        let stream = self.inner.streaming_relist(&state.adjusted(options), held).await?;
        Ok(self.tapped(stream, receiver, state.cuts))
    }

    fn supports_watch_list(&self) -> bool {
        self.inner.supports_watch_list()
    }

    fn resource(&self) -> String {
        self.inner.resource()
    }
}
