//! The body of an answer, whatever it is made of.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};

use crate::fault::Cut;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Frames = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// The body of an answer: a whole one, or one that is made while it is read. Dropping it ends the watch or the list.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Stream(Frames),
    Cut { inner: Box<ResponseBody>, left: u64, then: Cut },
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Some(bytes.into())))
    }

    pub(crate) fn stream(frames: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(frames.fuse())))
    }

    /// The same body, which stops after so many bytes.
    pub(crate) fn cut(self, after_bytes: u64, then: Cut) -> Self {
        Self(Kind::Cut { inner: Box::new(self), left: after_bytes, then })
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
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b)))),
            Kind::Stream(frames) => frames.as_mut().poll_next(cx).map_ok(Frame::data),
            Kind::Cut { left: 0, then: Cut::End, .. } => Poll::Ready(None),
            Kind::Cut { left: 0, then: then @ Cut::Reset, .. } => {
                *then = Cut::End;
                Poll::Ready(Some(Err(reset_error())))
            }
            // Nothing wakes the reader: it gives up, or waits for ever.
            Kind::Cut { left: 0, then: Cut::Stall, .. } => Poll::Pending,
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
        match &self.0 {
            Kind::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}
