//! Messages, written by hand: for tests.

use crate::client::protobuf::wire::varint_bytes;

/// A field of bytes, a text or a message.
pub(crate) fn bytes(tag: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [&number(tag, 2)[..], &varint(value.len() as u64), value].concat()
}

/// A field of a number.
pub(crate) fn varint_field(tag: u32, value: u64) -> Vec<u8> {
    [number(tag, 0), varint(value)].concat()
}

fn number(tag: u32, wire_type: u64) -> Vec<u8> {
    varint(u64::from(tag) << 3 | wire_type)
}

fn varint(value: u64) -> Vec<u8> {
    let (bytes, len) = varint_bytes(value);
    bytes[..len].to_vec()
}

/// An object in its envelope, as API servers write it.
pub(crate) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version), bytes(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, type_meta), bytes(2, raw), bytes(3, ""), bytes(4, "")].concat()
}

/// A list of these items.
pub(crate) fn list(kind: &str, version: &str, items: &[&[u8]]) -> Vec<u8> {
    let meta = bytes(1, [bytes(1, ""), bytes(2, version), bytes(3, "")].concat());
    let items: Vec<u8> = items.iter().flat_map(|item| bytes(2, item)).collect();
    envelope("v1", kind, &[meta, items].concat())
}

/// An object of which there is nothing but its metadata.
pub(crate) fn object(metadata: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, metadata.concat())
}

/// An event of a watch, without the length before it.
pub(crate) fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    [bytes(1, kind), bytes(2, bytes(1, object))].concat()
}
