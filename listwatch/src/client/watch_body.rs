//! The events of a watch, from the pieces of its body.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::stream::unfold;
use futures::{FutureExt, StreamExt};

use crate::client::excerpt::excerpt;
use crate::client::exchange::Chunks;
use crate::client::line_splitter::LineSplitter;
use crate::client::pipeline::{Pipeline, Read};
use crate::client::protobuf::frame_splitter::{FrameError, FrameSplitter};
use crate::{ErrorClass, RequestError, WatchEvent, WatchStream};

/// What cuts the body of a watch into events.
pub(crate) trait SplitWatch: Send + 'static {
    /// Feeds a chunk; the one before must be used up.
    fn push(&mut self, chunk: Bytes);

    /// The next event; `None` where the chunk holds no further end of one.
    fn next_event(&mut self) -> Result<Option<&[u8]>, RequestError>;

    /// The event that the body ended in, if it did: whole, else the body was cut off, which is an error.
    fn last_event(&self) -> Result<Option<&[u8]>, RequestError>;
}

/// An event, or the error that ends the stream.
type Event<O> = Result<WatchEvent<O>, RequestError>;

/// A watch that is open. At most one piece of its body and one event are held; of a streaming list's initial events what
/// the pipeline holds, and what it handed out together.
pub(crate) struct WatchBody<S, O> {
    /// `None` once nothing more is read: the connection is given up then, also while the stream is still held.
    chunks: Option<Chunks>,
    splitter: S,
    /// How an event is read once those of a streaming list are over.
    read: Read<Event<O>>,
    /// Until the end mark of a streaming list: initial events come in bulk.
    initial: Option<Pipeline<Event<O>>>,
    /// Read, and not given out.
    ready: VecDeque<Event<O>>,
    /// What was asked, for errors.
    asked: String,
}

impl<S: SplitWatch, O: Send + 'static> WatchBody<S, O> {
    pub(crate) fn new(
        chunks: Chunks,
        splitter: S,
        read: Read<Event<O>>,
        initial: Option<Pipeline<Event<O>>>,
        asked: String,
    ) -> Self {
        Self { chunks: Some(chunks), splitter, read, initial, ready: VecDeque::new(), asked }
    }

    /// The events as a stream, an error being the last of it.
    pub(crate) fn into_stream(self) -> WatchStream<O> {
        unfold(self, |mut this| async move { Some((this.next().await?, this)) }).boxed()
    }

    async fn next(&mut self) -> Option<Event<O>> {
        while self.ready.is_empty() {
            if let Err(error) = self.read_more().await? {
                self.chunks = None;
                self.ready.push_back(Err(error));
            }
        }
        let event = self.ready.pop_front()?;
        match &event {
            Ok(WatchEvent::Bookmark { initial_events_end: true, .. }) => self.end_bulk().await,
            Ok(_) => {}
            Err(_) => (self.chunks, self.initial, self.ready) = (None, None, VecDeque::new()),
        }
        Some(event.map_err(|error| error.context(&self.asked)))
    }

    /// Takes the next event, or reads the next piece of the body. `None`: nothing more comes.
    async fn read_more(&mut self) -> Option<Result<(), RequestError>> {
        let chunks = self.chunks.as_mut()?;
        let ready = &mut self.ready;
        match self.splitter.next_event() {
            Ok(Some(event)) => match &mut self.initial {
                Some(pipeline) => return Some(pipeline.push(event, &mut |event| ready.push_back(event)).await),
                None => {
                    ready.push_back((self.read)(event, 0));
                    return Some(Ok(()));
                }
            },
            Ok(None) => {}
            Err(error) => return Some(self.finish_bulk().await.and(Err(error))),
        }
        let chunk = if self.initial.as_ref().is_none_or(Pipeline::is_empty) {
            chunks.next().await
        } else {
            match chunks.next().now_or_never() {
                Some(chunk) => chunk,
                // What came is not kept until a batch is full.
                None => return Some(self.finish_bulk().await),
            }
        };
        match chunk {
            Some(Ok(chunk)) => self.splitter.push(chunk),
            Some(Err(error)) => return Some(self.finish_bulk().await.and(Err(error))),
            None => {
                self.chunks = None;
                if let Err(error) = self.finish_bulk().await {
                    return Some(Err(error));
                }
                let last = self.splitter.last_event().transpose();
                self.ready.extend(last.map(|event| event.and_then(|event| (self.read)(event, 0))));
            }
        }
        Some(Ok(()))
    }

    /// Reads what came in bulk to its end.
    async fn finish_bulk(&mut self) -> Result<(), RequestError> {
        let ready = &mut self.ready;
        match &mut self.initial {
            Some(pipeline) => pipeline.finish(&mut |event| ready.push_back(event)).await,
            None => Ok(()),
        }
    }

    /// From here on events come one by one.
    async fn end_bulk(&mut self) {
        if let Err(error) = self.finish_bulk().await {
            self.ready.push_back(Err(error));
        }
        self.initial = None;
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
