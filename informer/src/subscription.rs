//! A handler as a stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use kubewire_indexer::Object;

use crate::listener::{AnyListener, Listener};
use crate::{Notification, Registration};

/// The changes of an informer's store as a stream; made by [`Informer::subscribe`](crate::Informer::subscribe).
///
/// A notification counts as handled when the next one is asked for. The stream ends when the subscription is
/// removed or the informer stops; what waits then is not told any more. Dropping it removes the subscription.
/// The store goes on whether anybody polls the stream or not.
///
/// `next()` on it is cancel-safe: a notification is taken out only when it is returned.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription<O: Object> {
    listener: Arc<Listener<O>>,
}

impl<O: Object> Subscription<O> {
    pub(crate) fn new(listener: Arc<Listener<O>>) -> Self {
        Self { listener }
    }

    /// To see whether it is synced, how much waits, and to remove it from elsewhere.
    pub fn registration(&self) -> Registration {
        let listener: Arc<Listener<O>> = Arc::clone(&self.listener);
        Registration::new(listener)
    }
}

impl<O: Object> Stream for Subscription<O> {
    type Item = Notification<O>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notification<O>>> {
        self.listener.poll_next(cx).map(|told| Some(told?.notification))
    }
}

impl<O: Object> Drop for Subscription<O> {
    fn drop(&mut self) {
        self.listener.remove();
    }
}

impl<O: Object> fmt::Debug for Subscription<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.listener.status()).finish()
    }
}
