//! The items of a list, from the pieces of its body.

use bytes::Bytes;

use crate::client::excerpt::excerpt;
use crate::client::exchange::Chunks;
use crate::client::pipeline::{Pipeline, Sink};
use crate::client::shaped::Types;
use crate::client::{list_head, list_splitter, protobuf};
use crate::{ErrorClass, ListMeta, RequestError};

/// What cuts the body of a list into items. How it is used is told at [`list_splitter::ListSplitter`].
pub(crate) trait SplitList {
    type Error;

    /// Feeds a chunk; the one before must be used up.
    fn push(&mut self, chunk: Bytes);

    /// The next item; `None` where the chunk holds no further end of one.
    fn next_item(&mut self) -> Result<Option<&[u8]>, Self::Error>;

    /// The error for people, and for callers its class.
    fn explain(&self, error: Self::Error) -> RequestError;

    /// What the list said of itself, after the last chunk.
    fn finish(self, types: Option<&Types>) -> Result<ListMeta, RequestError>;
}

/// The body of a list that has begun.
pub(crate) struct ListBody<'a, T> {
    pub(crate) chunks: Chunks,
    /// Of a longer one no more is read.
    pub(crate) len_max: u64,
    pub(crate) pipeline: Pipeline<T>,
    pub(crate) types: Option<&'a Types>,
}

impl<T: Send + 'static> ListBody<'_, T> {
    /// Reads the list to its end; at most one piece of the body and one item are held, beside what the pipeline holds.
    pub(crate) async fn read<S: SplitList>(
        mut self,
        mut splitter: S,
        each: Sink<'_, T>,
    ) -> Result<ListMeta, RequestError> {
        let mut len = 0_u64;
        while let Some(chunk) = self.chunks.next().await {
            let chunk = chunk?;
            len += chunk.len() as u64;
            if len > self.len_max {
                return Err(self.too_long());
            }
            splitter.push(chunk);
            loop {
                match splitter.next_item() {
                    Ok(Some(item)) => self.pipeline.push(item, &mut *each).await?,
                    Ok(None) => break,
                    Err(error) => return Err(splitter.explain(error)),
                }
            }
        }
        self.pipeline.finish(each).await?;
        splitter.finish(self.types)
    }

    fn too_long(&self) -> RequestError {
        let message = format!(
            "the answer is longer than {} bytes; ask for pages, select fewer objects, or raise `Limits::list`",
            self.len_max
        );
        RequestError::new(ErrorClass::TooLong, message)
    }
}

impl SplitList for list_splitter::ListSplitter {
    type Error = list_splitter::ListError;

    fn push(&mut self, chunk: Bytes) {
        self.push(chunk);
    }

    fn next_item(&mut self) -> Result<Option<&[u8]>, Self::Error> {
        self.next_item()
    }

    fn explain(&self, error: Self::Error) -> RequestError {
        error_of_json(&error, self.unread())
    }

    fn finish(self, types: Option<&Types>) -> Result<ListMeta, RequestError> {
        let head = self.finish().map_err(|error| error_of_json(&error, &[]))?;
        list_head::read_head(&head, types)
    }
}

fn error_of_json(error: &list_splitter::ListError, unread: &[u8]) -> RequestError {
    use list_splitter::ListError;

    let class = match error {
        ListError::Syntax { .. } | ListError::ItemsTwice | ListError::Table => ErrorClass::Decode,
        ListError::ItemTooLong { .. } | ListError::HeadTooLong => ErrorClass::TooLong,
        ListError::Truncated => ErrorClass::Truncated,
    };
    let text = match (error, excerpt(unread)) {
        (ListError::Syntax { .. }, text) if !text.is_empty() => format!("{error}: {text}"),
        _ => error.to_string(),
    };
    RequestError::new(class, text)
}

impl SplitList for protobuf::list_splitter::ListSplitter {
    type Error = protobuf::list_splitter::ListError;

    fn push(&mut self, chunk: Bytes) {
        self.push(chunk);
    }

    fn next_item(&mut self) -> Result<Option<&[u8]>, Self::Error> {
        self.next_item()
    }

    fn explain(&self, error: Self::Error) -> RequestError {
        error_of_protobuf(&error)
    }

    fn finish(self, _: Option<&Types>) -> Result<ListMeta, RequestError> {
        let head = self.finish().map_err(|error| error_of_protobuf(&error))?;
        protobuf::list_head::read_head(&head)
    }
}

fn error_of_protobuf(error: &protobuf::list_splitter::ListError) -> RequestError {
    use protobuf::list_splitter::ListError;

    let class = match error {
        ListError::Syntax { .. } | ListError::Part(_) | ListError::Kind(_) | ListError::Twice => ErrorClass::Decode,
        ListError::ItemTooLong { .. } | ListError::HeadTooLong => ErrorClass::TooLong,
        ListError::Truncated => ErrorClass::Truncated,
    };
    RequestError::new(class, error.to_string())
}
