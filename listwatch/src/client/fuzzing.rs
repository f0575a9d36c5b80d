//! What `testing/properties` reaches of the inside. Compiled for it alone (the feature `fuzzing`), and no part of the API.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use kube_core::ApiResource;

use crate::client::codec::{Json, Protobuf};
use crate::client::decode::{Decode, DecodeOptions};
use crate::client::line_splitter::LineSplitter;
use crate::client::list_head::read_head;
use crate::client::list_splitter::ListSplitter;
use crate::client::query::{self, Selectors, list_query, watch_query};
use crate::client::shaped::Types;
use crate::client::{peek, protobuf, retry_after, status, watch_line};
use crate::{ListMeta, ListOptions, RequestError, WatchEvent, WatchOptions};

/// What a splitter makes of a body that comes in these chunks, up to its end or the first error.
fn pieces<S>(
    chunks: &[&[u8]],
    splitter: &mut S,
    push: impl Fn(&mut S, Bytes),
    next: impl Fn(&mut S) -> Result<Option<Vec<u8>>, String>,
) -> (Vec<Vec<u8>>, Option<String>) {
    let mut pieces = Vec::new();
    for chunk in chunks {
        push(splitter, Bytes::copy_from_slice(chunk));
        loop {
            match next(splitter) {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break,
                Err(error) => return (pieces, Some(error)),
            }
        }
    }
    (pieces, None)
}

fn owned<T: AsRef<[u8]>>(piece: Result<Option<T>, impl ToString>) -> Result<Option<Vec<u8>>, String> {
    piece.map(|piece| piece.map(|piece| piece.as_ref().to_vec())).map_err(|error| error.to_string())
}

/// What a list that comes in these chunks splits into: its items, and its head or the error.
pub fn split_list(chunks: &[&[u8]], item_len_max: usize) -> (Vec<Vec<u8>>, Result<Vec<u8>, String>) {
    let mut splitter = ListSplitter::new(item_len_max);
    let (items, error) = pieces(chunks, &mut splitter, ListSplitter::push, |splitter| owned(splitter.next_item()));
    if let Some(error) = error {
        // What is shown to people must be there too.
        let _ = splitter.unread().len();
        return (items, Err(error));
    }
    (items, splitter.finish().map_err(|error| error.to_string()))
}

/// Which state of which object an item of a list is, without decoding it: namespace, name, uid and version.
pub fn state(item: &[u8]) -> Option<[&str; 4]> {
    peek::peek_json(item).map(|id| [id.namespace, id.name, id.uid, id.resource_version])
}

/// What the head of a list says.
pub fn list_head(head: &[u8]) -> Result<ListMeta, RequestError> {
    read_head(head, None)
}

/// What the body of a watch that comes in these chunks splits into: its lines, and the rest or the error.
pub fn split_lines(chunks: &[&[u8]], line_len_max: usize) -> (Vec<Vec<u8>>, Result<Vec<u8>, String>) {
    let mut splitter = LineSplitter::new(line_len_max);
    let (lines, error) = pieces(chunks, &mut splitter, LineSplitter::push, |splitter| owned(splitter.next_line()));
    if let Some(error) = error {
        return (lines, Err(error));
    }
    (lines, Ok(splitter.rest().to_vec()))
}

fn of_things() -> DecodeOptions {
    let types = Types { api_version: "v1".to_owned(), kind: "Thing".to_owned(), metadata_only: false };
    DecodeOptions { types: Some(types), ..DecodeOptions::default() }
}

/// One line of a watch of `v1` things.
pub fn read_line<O: Decode<Json>>(line: &[u8]) -> Result<WatchEvent<O>, RequestError> {
    watch_line::read_line(line, &of_things())
}

/// What a list in protobuf that comes in these chunks splits into: its items, and its meta or the error.
pub fn split_message_list(chunks: &[&[u8]], item_len_max: usize) -> (Vec<Vec<u8>>, Result<ListMeta, String>) {
    let mut splitter = protobuf::list_splitter::ListSplitter::new(item_len_max, None);
    let (items, error) = pieces(chunks, &mut splitter, protobuf::list_splitter::ListSplitter::push, |splitter| {
        owned(splitter.next_item())
    });
    if let Some(error) = error {
        return (items, Err(error));
    }
    let head = splitter.finish().map_err(|error| error.to_string());
    (items, head.and_then(|head| protobuf::list_head::read_head(&head).map_err(|error| error.to_string())))
}

/// What the body of a watch in protobuf that comes in these chunks splits into: its frames, and whether it ends with
/// one or the error.
pub fn split_frames(chunks: &[&[u8]], frame_len_max: usize) -> (Vec<Vec<u8>>, Result<bool, String>) {
    let mut splitter = protobuf::frame_splitter::FrameSplitter::new(frame_len_max);
    let (frames, error) = pieces(chunks, &mut splitter, protobuf::frame_splitter::FrameSplitter::push, |splitter| {
        owned(splitter.next_frame())
    });
    if let Some(error) = error {
        return (frames, Err(error));
    }
    let whole = splitter.is_whole();
    (frames, Ok(whole))
}

/// One frame of a watch in protobuf of `v1` things.
pub fn read_frame<O: Decode<Protobuf>>(frame: &[u8]) -> Result<WatchEvent<O>, RequestError> {
    let mut options = of_things();
    options.drop.add(&["metadata", "managedFields"]);
    protobuf::watch_frame::read_frame(frame, &options)
}

/// The query strings of a list and of a watch with these texts.
pub fn queries(labels: &str, fields: &str, version: &str, token: &str, timeout: Duration) -> [String; 2] {
    let selectors = Selectors { labels: labels.to_owned(), fields: fields.to_owned() };
    let list = ListOptions {
        resource_version: Some(version.to_owned()),
        continue_token: Some(token.to_owned()),
        ..ListOptions::default()
    };
    [list_query(&selectors, &list), watch_query(&selectors, &WatchOptions::from_version(version, timeout))]
}

/// The path of a list of the resource with this group and plural, in its version `v1`.
pub fn path(group: &str, plural: &str, namespace: &str) -> Result<String, RequestError> {
    let own = str::to_owned;
    let (group, plural) = (own(group), own(plural));
    let resource = ApiResource { group, plural, version: own("v1"), api_version: own("v1"), kind: own("Thing") };
    query::path(&resource, Some(namespace))
}

/// The error that an answer of failure stands for.
pub fn error_of_answer(code: u16, body: &[u8]) -> RequestError {
    status::error_of_answer(code, body)
}

/// The error that the object of an `ERROR` event stands for.
pub fn error_of_event(object: &[u8]) -> RequestError {
    status::error_of_event(object)
}

/// What the headers `Retry-After` and `Date` say; bytes that no header can hold are left out.
pub fn retry_after(after: &[u8], date: &[u8]) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    for (name, value) in [(RETRY_AFTER, after), (DATE, date)] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    }
    retry_after::retry_after(&headers, SystemTime::UNIX_EPOCH)
}

#[cfg(feature = "zstd")]
mod zipped {
    use std::sync::LazyLock;

    use crate::client::zipped::frame::{self, Dictionary};

    static LEARNED: LazyLock<Dictionary> = LazyLock::new(|| {
        let thing = |n: usize| {
            format!(
                r#"{{"metadata":{{"namespace":"team-{}","name":"thing-{n}","uid":"{:x}","labels":{{"app":"web"}}}},"spec":{{"size":{n},"replicas":3}}}}"#,
                n % 7,
                n * 7919
            )
        };
        let things: Vec<_> = (0..500).map(thing).collect();
        let lens: Vec<_> = things.iter().map(String::len).collect();
        Dictionary::train(things.concat().as_bytes(), &lens).expect("there are enough things")
    });

    /// The zstd frame of some bytes, with a dictionary of things or without.
    pub fn zip(bytes: &[u8], learned: bool) -> Result<Vec<u8>, String> {
        let dictionary = learned.then(|| &*LEARNED);
        frame::zip(bytes, dictionary).map(Vec::from).map_err(|error| error.to_string())
    }

    /// The bytes of a frame, no more than so many.
    pub fn unzip(frame: &[u8], learned: bool, len_max: usize) -> Result<Vec<u8>, String> {
        frame::unzip(frame, learned.then(|| &*LEARNED), len_max).map_err(|error| error.to_string())
    }
}
#[cfg(feature = "zstd")]
pub use zipped::{unzip, zip};
