//! The body of an answer, whatever it is made of.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};

use tokio::time::{Sleep, sleep};

use crate::fault::Cut;
use crate::open_count::OpenOne;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Frames = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// The body of an answer: a whole one, or one that is made while it is read. Dropping it ends the watch or the list.
pub struct ResponseBody {
    kind: Kind,
    /// Counts the request as under way.
    open: Option<OpenOne>,
}

enum Kind {
    Whole(Option<Bytes>),
    Stream(Frames),
    Cut { inner: Box<ResponseBody>, left: u64, then: Cut, met: Option<Met> },
    Drip { inner: Box<ResponseBody>, drip: Drip },
}

/// Counts a fault once, when it has met the body.
pub(crate) type Met = Box<dyn FnOnce() + Send>;

/// A body that comes in small pieces.
struct Drip {
    piece_len_max: usize,
    pause: Duration,
    /// What of the inner body waits.
    rest: Bytes,
    /// The pause before the next piece.
    sleep: Option<Pin<Box<Sleep>>>,
    pieces: usize,
    met: Option<Met>,
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::new(Kind::Whole(Some(bytes.into())))
    }

    pub(crate) fn stream(frames: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Self {
        Self::new(Kind::Stream(Box::pin(frames.fuse())))
    }

    /// The same body, which stops after so many bytes.
    pub(crate) fn cut(self, after_bytes: u64, then: Cut, met: Met) -> Self {
        Self::new(Kind::Cut { inner: Box::new(self), left: after_bytes, then, met: Some(met) })
    }

    /// The same body in pieces of this length at most, with this pause before each.
    pub(crate) fn drip(self, piece_len_max: usize, pause: Duration, met: Met) -> Self {
        let drip = Drip { piece_len_max, pause, rest: Bytes::new(), sleep: None, pieces: 0, met: Some(met) };
        Self::new(Kind::Drip { inner: Box::new(self), drip })
    }

    /// The same body, which counts as open until it is dropped.
    pub(crate) fn counted(mut self, open: OpenOne) -> Self {
        self.open = Some(open);
        self
    }

    fn new(kind: Kind) -> Self {
        Self { kind, open: None }
    }
}

impl Drip {
    fn poll_frame(
        &mut self,
        inner: &mut ResponseBody,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut *inner).poll_frame(cx)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                other => return Poll::Ready(other),
            }
        }
        if !self.pause.is_zero() {
            ready!(self.sleep.get_or_insert_with(|| Box::pin(sleep(self.pause))).as_mut().poll(cx));
            self.sleep = None;
        }
        // Other lengths each time, the same in each run.
        self.pieces += 1;
        let len = self.piece_len_max.min(1 + self.pieces * 7919 % self.piece_len_max);
        let piece = self.rest.split_to(len.min(self.rest.len()));
        if let Some(met) = self.met.take_if(|_| !self.rest.is_empty()) {
            met();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

/// What the reader of a body gets when the connection breaks.
pub(crate) fn reset_error() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset (injected)").into()
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b)))),
            Kind::Stream(frames) => frames.as_mut().poll_next(cx).map_ok(Frame::data),
            Kind::Cut { left: 0, then, met, .. } => {
                if let Some(met) = met.take() {
                    met();
                }
                match std::mem::replace(then, if *then == Cut::Stall { Cut::Stall } else { Cut::End }) {
                    Cut::End => Poll::Ready(None),
                    Cut::Reset => Poll::Ready(Some(Err(reset_error()))),
                    // Nothing wakes the reader: it gives up, or waits for ever.
                    Cut::Stall => Poll::Pending,
                }
            }
            Kind::Drip { inner, drip } => drip.poll_frame(inner, cx),
            Kind::Cut { inner, left, .. } => {
                let Some(frame) = ready!(Pin::new(&mut **inner).poll_frame(cx)) else { return Poll::Ready(None) };
                Poll::Ready(Some(frame.map(|frame| {
                    let mut data = frame.into_data().unwrap_or_default();
                    data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= data.len() as u64;
                    Frame::data(data)
                })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}
