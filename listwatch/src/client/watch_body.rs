//! The events of a watch, from the pieces of its body.

use futures::StreamExt;
use futures::stream::unfold;
use std::sync::Arc;

use crate::client::excerpt::excerpt;
use crate::client::exchange::Chunks;
use crate::client::line_splitter::LineSplitter;
use crate::client::watch_line::read_line;
use crate::{Decode, DecodeOptions, ErrorClass, Json, RequestError, WatchEvent, WatchStream};

/// A watch that is open. At most one piece of its body and one line are held.
pub(crate) struct WatchBody {
    /// `None` once the stream is over: the connection is given up then, also while the stream is still held.
    chunks: Option<Chunks>,
    lines: LineSplitter,
    options: Arc<DecodeOptions>,
    /// What was asked, for errors.
    asked: String,
}

impl WatchBody {
    pub(crate) fn new(chunks: Chunks, line_len_max: usize, options: Arc<DecodeOptions>, asked: String) -> Self {
        Self { chunks: Some(chunks), lines: LineSplitter::new(line_len_max), options, asked }
    }

    /// The events as a stream, an error being the last of it.
    pub(crate) fn into_stream<O: Decode<Json>>(self) -> WatchStream<O> {
        unfold(self, |mut this| async move { Some((this.next().await?, this)) }).boxed()
    }

    async fn next<O: Decode<Json>>(&mut self) -> Option<Result<WatchEvent<O>, RequestError>> {
        let chunks = self.chunks.as_mut()?;
        let result = loop {
            match self.lines.next_line() {
                Ok(Some(line)) => break Some(read_line(line, &self.options)),
                Ok(None) => {}
                Err(error) => break Some(Err(RequestError::new(ErrorClass::TooLong, error.to_string()))),
            }
            match chunks.next().await {
                Some(Ok(chunk)) => self.lines.push(chunk),
                Some(Err(error)) => break Some(Err(error)),
                None => {
                    self.chunks = None;
                    break self.last_line();
                }
            }
        };
        if !matches!(result, Some(Ok(_))) {
            self.chunks = None;
        }
        Some(result?.map_err(|error| error.context(&self.asked)))
    }

    /// The line that the body ended in, if it did: an event if it is whole, else the body was cut off.
    fn last_line<O: Decode<Json>>(&self) -> Option<Result<WatchEvent<O>, RequestError>> {
        let rest = self.lines.rest();
        if rest.is_empty() {
            return None;
        }
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(rest).is_ok();
        Some(if whole {
            read_line(rest, &self.options)
        } else {
            let message = format!("the watch ended within a line: {}", excerpt(rest));
            Err(RequestError::new(ErrorClass::Truncated, message))
        })
    }
}
