//! An informer seen as a watch.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use kubewire_indexer::{Deleted, Object};
use kubewire_listwatch::{ListerWatcher, RequestError, WatchEvent};
use pin_project::pin_project;
use tokio_util::sync::CancellationToken;

use crate::{Delivery, Informer, InformerOptions, Notification, RunningInformer, Subscription};

/// A running informer whose changes come as the events of a watch that begins from nothing: what is there at first
/// comes as `ADDED`. client-go's `NewIndexerInformerWatcher`.
///
/// A deletion that was missed comes as `DELETED` with the last known state. The stream gives no errors (what fails is
/// tried again) and no bookmarks. What waits to be polled is kept in memory without a bound. Dropping it stops the
/// informer.
#[must_use = "dropping it stops the informer"]
#[pin_project]
pub struct InformerWatcher<O: Object> {
    informer: Informer<O>,
    #[pin]
    changes: Subscription<O>,
    running: RunningInformer,
}

impl<O: Object> InformerWatcher<O> {
    /// Starts an informer of what this lists and watches.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(lister_watcher: impl ListerWatcher<Object = O>) -> Self {
        let options = InformerOptions::new().delivery(Delivery::InOrder);
        let informer = Informer::with_options(lister_watcher, options).expect("no index is given, so none twice");
        let changes = informer.subscribe().expect("it cannot have stopped before its start");
        let running = informer.start(CancellationToken::new());
        Self { informer, changes, running }
    }

    /// The informer, with its store.
    pub fn informer(&self) -> &Informer<O> {
        &self.informer
    }

    /// Stops the informer and waits until all its tasks have ended.
    pub async fn stop(self) {
        let Self { changes, running, .. } = self;
        drop(changes);
        running.stop();
        running.join().await;
    }
}

impl<O: Object> Stream for InformerWatcher<O> {
    type Item = Result<WatchEvent<O>, RequestError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            let event = match this.changes.as_mut().poll_next(cx) {
                Poll::Ready(Some(Notification::Added { object, .. })) => WatchEvent::Added(object),
                Poll::Ready(Some(Notification::Updated { new, .. })) => WatchEvent::Modified(new),
                Poll::Ready(Some(Notification::Deleted(deleted))) => match last_known(deleted) {
                    Some(object) => WatchEvent::Deleted(object),
                    // Nothing but a key is known, and a watch has no event for that.
                    None => continue,
                },
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            return Poll::Ready(Some(Ok(event)));
        }
    }
}

fn last_known<O>(deleted: Deleted<O>) -> Option<O> {
    match deleted {
        Deleted::Known(object) => Some(object),
        Deleted::FinalStateUnknown { last, .. } => last,
    }
}

impl<O: Object> fmt::Debug for InformerWatcher<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerWatcher").field("changes", &self.changes).finish_non_exhaustive()
    }
}
