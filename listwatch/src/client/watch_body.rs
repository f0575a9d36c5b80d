//! The events of a watch, from the pieces of its body.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::unfold;

use crate::client::codec::sealed::ReadEvent;
use crate::client::excerpt::excerpt;
use crate::client::exchange::Chunks;
use crate::client::line_splitter::LineSplitter;
use crate::client::protobuf::frame_splitter::{FrameError, FrameSplitter};
use crate::{DecodeOptions, ErrorClass, RequestError, WatchEvent, WatchStream};

/// What cuts the body of a watch into events.
pub(crate) trait SplitWatch: Send + 'static {
    /// Feeds a chunk; the one before must be used up.
    fn push(&mut self, chunk: Bytes);

    /// The next event; `None` where the chunk holds no further end of one.
    fn next_event(&mut self) -> Result<Option<&[u8]>, RequestError>;

    /// The event that the body ended in, if it did: whole, else the body was cut off, which is an error.
    fn last_event(&self) -> Result<Option<&[u8]>, RequestError>;
}

/// A watch that is open. At most one piece of its body and one event are held.
pub(crate) struct WatchBody<S, O> {
    /// `None` once the stream is over: the connection is given up then, also while the stream is still held.
    chunks: Option<Chunks>,
    splitter: S,
    read_event: ReadEvent<O>,
    options: Arc<DecodeOptions>,
    /// What was asked, for errors.
    asked: String,
}

impl<S: SplitWatch, O: 'static> WatchBody<S, O> {
    pub(crate) fn new(
        chunks: Chunks,
        splitter: S,
        read_event: ReadEvent<O>,
        options: Arc<DecodeOptions>,
        asked: String,
    ) -> Self {
        Self { chunks: Some(chunks), splitter, read_event, options, asked }
    }

    /// The events as a stream, an error being the last of it.
    pub(crate) fn into_stream(self) -> WatchStream<O> {
        unfold(self, |mut this| async move { Some((this.next().await?, this)) }).boxed()
    }

    async fn next(&mut self) -> Option<Result<WatchEvent<O>, RequestError>> {
        let chunks = self.chunks.as_mut()?;
        let result = loop {
            match self.splitter.next_event() {
                Ok(Some(event)) => break Some((self.read_event)(event, &self.options)),
                Ok(None) => {}
                Err(error) => break Some(Err(error)),
            }
            match chunks.next().await {
                Some(Ok(chunk)) => self.splitter.push(chunk),
                Some(Err(error)) => break Some(Err(error)),
                None => {
                    self.chunks = None;
                    let event = self.splitter.last_event().transpose()?;
                    break Some(event.and_then(|event| (self.read_event)(event, &self.options)));
                }
            }
        };
        if !matches!(result, Some(Ok(_))) {
            self.chunks = None;
        }
        Some(result?.map_err(|error| error.context(&self.asked)))
    }
}

impl SplitWatch for LineSplitter {
    fn push(&mut self, chunk: Bytes) {
        self.push(chunk);
    }

    fn next_event(&mut self) -> Result<Option<&[u8]>, RequestError> {
        self.next_line().map_err(|error| RequestError::new(ErrorClass::TooLong, error.to_string()))
    }

    fn last_event(&self) -> Result<Option<&[u8]>, RequestError> {
        let rest = self.rest();
        if rest.is_empty() || serde_json::from_slice::<serde::de::IgnoredAny>(rest).is_ok() {
            return Ok(Some(rest).filter(|rest| !rest.is_empty()));
        }
        let message = format!("the watch ended within a line: {}", excerpt(rest));
        Err(RequestError::new(ErrorClass::Truncated, message))
    }
}

impl SplitWatch for FrameSplitter {
    fn push(&mut self, chunk: Bytes) {
        self.push(chunk);
    }

    fn next_event(&mut self) -> Result<Option<&[u8]>, RequestError> {
        self.next_frame().map_err(|error| {
            let class = match error {
                FrameError::TooLong { .. } => ErrorClass::TooLong,
                FrameError::NoFrame => ErrorClass::Decode,
            };
            RequestError::new(class, error.to_string())
        })
    }

    fn last_event(&self) -> Result<Option<&[u8]>, RequestError> {
        match self.is_whole() {
            true => Ok(None),
            false => Err(RequestError::new(ErrorClass::Truncated, "the watch ended within an event")),
        }
    }
}
