//! The answers on a connection of HTTP/2 that its client has to take.
//!
//! A client there grants how much may be sent of each answer. What it does not grant waits in the body, or in the queue of the
//! library beneath, for as long as the connection lives; and that answers pings.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::bounds::WRITE_TIMEOUT;

/// A part of an answer: what counts as taken when it was sent.
const PART_LEN: usize = 16 << 10;

/// The answers of one connection that are not sent as a whole. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Untaken {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    begun: u64,
    /// When a part of each was sent last; at first, when it began.
    moved: HashMap<u64, Instant>,
}

impl Untaken {
    /// The body, which counts until all of it is sent or it is given up.
    pub(crate) fn begin(&self, body: Full<Bytes>) -> InParts {
        let mut inner = self.inner.lock();
        inner.begun += 1;
        let id = inner.begun;
        inner.moved.insert(id, Instant::now());
        drop(inner);
        InParts { body, rest: Bytes::new(), one: Arc::new(One { id, untaken: self.clone() }) }
    }

    /// Returns when nothing of one of the answers was sent for [`WRITE_TIMEOUT`].
    pub(crate) async fn stalled(&self) {
        loop {
            let now = Instant::now();
            let oldest = self.inner.lock().moved.values().min().copied();
            let due = oldest.unwrap_or(now) + WRITE_TIMEOUT;
            if due <= now {
                return;
            }
            sleep_until(due).await;
        }
    }
}

/// One answer, until this is dropped.
struct One {
    id: u64,
    untaken: Untaken,
}

impl Drop for One {
    fn drop(&mut self) {
        self.untaken.inner.lock().moved.remove(&self.id);
    }
}

/// A part that was handed over; it is dropped when it was sent, or never will be.
struct Part {
    bytes: Bytes,
    one: Arc<One>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(moved) = self.one.untaken.inner.lock().moved.get_mut(&self.one.id) {
            *moved = Instant::now();
        }
    }
}

/// A body in parts, each of which tells when it was sent.
pub(crate) struct InParts {
    body: Full<Bytes>,
    /// What is left of a frame of the body.
    rest: Bytes,
    one: Arc<One>,
}

impl Body for InParts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(never)) => match never {},
                None => return Poll::Ready(None),
            }
        }
        let len = self.rest.len().min(PART_LEN);
        let part = Part { bytes: self.rest.split_to(len), one: Arc::clone(&self.one) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        // A whole body has an exact one.
        SizeHint::with_exact(rest + self.body.size_hint().exact().unwrap_or_default())
    }
}
