//! The body of a list, made in chunks from the stored bytes while it is read.

use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use serde_json::json;

use crate::Resource;
use crate::body::BoxError;
use crate::form::{Form, Renderer};
use crate::list::Listed;

/// How large a chunk gets before it is sent; one object more may be in it.
const CHUNK_LEN: usize = 64 * 1024;

/// The body of a list in a form that is no table. Holds references to the objects, never a second copy of them all.
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

/// Everything up to the first item.
fn head(resource: &Resource, form: Form, listed: &Listed) -> Vec<u8> {
    let (kind, api_version) = form.list_type(resource);
    let list = json!({"kind": kind, "apiVersion": api_version, "metadata": listed.metadata(), "items": []});
    let mut head = list.to_string();
    head.truncate(head.len() - "]}".len());
    head.into_bytes()
}
