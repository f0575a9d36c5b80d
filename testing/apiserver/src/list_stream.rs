//! The body of a list, made in chunks from the stored bytes while it is read.

use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use serde_json::json;

use crate::Resource;
use crate::body::BoxError;
use crate::form::{Form, Renderer};
use crate::list::Listed;
use crate::openapi::{self, ListHead};

/// How large a chunk gets before it is sent; one object more may be in it.
const CHUNK_LEN: usize = 64 * 1024;

/// The body of a list in JSON in a form that is no table. Holds references to the objects, never a second copy of them all.
pub(crate) fn list_body(
    resource: Arc<Resource>,
    form: Form,
    listed: Listed,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let mut head = head(&resource, form, &listed);
    head.extend(listed.foreign.join(&b','));
    let mut renderer = Renderer::new(form, resource);
    let mut items = listed.items.into_iter();
    let mut begun = Some(head);
    let mut is_first = listed.foreign.is_empty();
    futures::stream::iter(std::iter::from_fn(move || {
        let mut chunk = match begun.take() {
            Some(head) => head,
            None if items.len() == 0 => return None,
            None => Vec::with_capacity(CHUNK_LEN + CHUNK_LEN / 4),
        };
        while chunk.len() < CHUNK_LEN {
            let Some(object) = items.next() else { break };
            if !std::mem::take(&mut is_first) {
                chunk.push(b',');
            }
            renderer.write_item(&object, &mut chunk);
        }
        if items.len() == 0 {
            chunk.extend_from_slice(b"]}\n");
        }
        Some(Ok(Bytes::from(chunk)))
    }))
}

/// The body of a list in protobuf. Lengths come first there, so that all messages must be made before the first is sent.
pub(crate) fn protobuf_list_body(
    resource: Arc<Resource>,
    form: Form,
    listed: Listed,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    let (kind, api_version) = form.list_type(&resource);
    let renderer = Renderer::new(form, resource);
    let foreign = listed.foreign.iter().map(|item| {
        let value = serde_json::from_slice(item).unwrap_or_default();
        Bytes::from(renderer.message_type().map(|of| openapi::message(of, &value)).unwrap_or_default())
    });
    let messages: Vec<Bytes> = foreign.chain(listed.items.iter().map(|object| renderer.message(object))).collect();
    let items_len = messages.iter().map(|message| openapi::item_len(message)).sum();
    let ListHead { head, end } = ListHead::new(&api_version, &kind, &listed.metadata(), items_len);
    let mut messages = messages.into_iter();
    let mut begun = Some(head);
    futures::stream::iter(std::iter::from_fn(move || {
        let mut chunk = match begun.take() {
            Some(head) => head,
            None if messages.len() == 0 => return None,
            None => Vec::with_capacity(CHUNK_LEN + CHUNK_LEN / 4),
        };
        while chunk.len() < CHUNK_LEN {
            let Some(message) = messages.next() else { break };
            openapi::put_item(&message, &mut chunk);
        }
        if messages.len() == 0 {
            chunk.extend_from_slice(end);
        }
        Some(Ok(Bytes::from(chunk)))
    }))
}

/// Everything up to the first item.
fn head(resource: &Resource, form: Form, listed: &Listed) -> Vec<u8> {
    let (kind, api_version) = form.list_type(resource);
    let list = json!({"kind": kind, "apiVersion": api_version, "metadata": listed.metadata(), "items": []});
    let mut head = list.to_string();
    head.truncate(head.len() - "]}".len());
    head.into_bytes()
}
