//! PURE. How the bytes of one item in protobuf become an object.

use kubewire_indexer::{Id, ObjectKey};

use crate::client::codec::Protobuf;
use crate::client::decode::checked;
use crate::client::peek::Found;
use crate::client::protobuf::metadata::{NAME, NAMESPACE, RESOURCE_VERSION, UID, lenient_metadata};
use crate::{Decode, DecodeOptions, ItemError};

/// Reads one object of any representation, and refuses one that has no name.
pub(crate) fn read_item<O: Decode<Protobuf>>(item: &[u8], options: &DecodeOptions) -> Result<O, ItemError> {
    checked(|| O::decode(item, options), |message| item_error(item, message))
}

/// Key, uid and version of an object, without decoding it. `None` where they are not there.
pub(crate) fn peek(item: &[u8]) -> Option<Id<'_>> {
    let mut found = Found::default();
    for field in lenient_metadata(item) {
        let part = match field.tag {
            NAMESPACE => &mut found.namespace,
            NAME => &mut found.name,
            UID => &mut found.uid,
            RESOURCE_VERSION => &mut found.resource_version,
            _ => continue,
        };
        *part = field.text().ok()?;
        if found.is_complete() {
            break;
        }
    }
    found.id()
}

/// The error of an item, with its key and version as far as they can be read.
pub(crate) fn item_error(item: &[u8], message: String) -> ItemError {
    let (mut namespace, mut name, mut version) = ("", "", "");
    for field in lenient_metadata(item) {
        let part = match field.tag {
            NAMESPACE => &mut namespace,
            NAME => &mut name,
            RESOURCE_VERSION => &mut version,
            _ => continue,
        };
        *part = field.text().unwrap_or_default();
    }
    ItemError {
        key: (!name.is_empty()).then(|| ObjectKey::new(namespace, name)),
        resource_version: (!version.is_empty()).then(|| version.to_owned()),
        ..ItemError::new(message)
    }
}

/// Messages: of k8s-pb (in a `Pb`), or structs of one's own that derive `prost::Message` and name the few fields
/// that they read.
///
/// What `drop_managed_fields` leaves out is cut before the message is decoded; a message that does not name it
/// skips it anyway.
#[cfg(feature = "prost")]
impl<T: kubewire_indexer::Meta + prost::Message + Default + 'static> Decode<Protobuf> for std::sync::Arc<T> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        use crate::client::protobuf::edits::cut_metadata;

        let read = |bytes: &[u8]| T::decode(bytes).map(Self::new).map_err(|error| item_error(item, error.to_string()));
        let tags = options.drop.metadata_tags();
        if tags == 0 {
            return read(item);
        }
        let edits = cut_metadata(item, tags).map_err(|error| item_error(item, error.to_string()))?;
        if edits.is_empty() {
            return read(item);
        }
        let mut cut = Vec::with_capacity(edits.len_of(item.len()));
        edits.pieces(item).for_each(|piece| cut.extend_from_slice(piece));
        read(&cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_object_as_far_as_it_can_be_read() {
        let error = item_error(b"\x0a\x09\x0a\x01x\x1a\x01n\x32\x017\x12\x05", "wrong".into());
        assert_eq!((error.key.unwrap().as_str(), error.resource_version.as_deref()), ("n/x", Some("7")));
        let error = item_error(b"\x0a\x03\x0a\x01\xff", "wrong".into());
        assert_eq!((error.key, error.resource_version), (None, None));
        assert_eq!(item_error(b"\xff", "wrong".into()).to_string(), "wrong");
    }

    #[test]
    fn the_state_is_found_without_decoding_and_not_where_it_is_not_said() {
        let whole = b"\x0a\x0c\x0a\x01x\x1a\x01n\x2a\x01u\x32\x017\x12\x05";
        assert_eq!(peek(&whole[..]), Some(Id::new("n", "x").uid("u").resource_version("7")));
        let of_cluster = b"\x0a\x09\x0a\x01x\x2a\x01u\x32\x017\x12\x00";
        assert_eq!(peek(&of_cluster[..]), Some(Id::new("", "x").uid("u").resource_version("7")));
        for item in [&b""[..], b"\xff", b"\x0a\x06\x0a\x01x\x32\x017", b"\x0a\x09\x0a\x01\xff\x2a\x01u\x32\x017"] {
            assert_eq!(peek(item), None, "{item:?}");
        }
    }
}
