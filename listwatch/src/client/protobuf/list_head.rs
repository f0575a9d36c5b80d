//! PURE. What a list in protobuf says of itself.

use crate::client::list_head::error_of_list_status;
use crate::client::protobuf::list_splitter::Head;
use crate::client::protobuf::status::value_of_status;
use crate::client::protobuf::wire::{Fields, Malformed};
use crate::{ErrorClass, ListMeta, RequestError};

/// Reads what remained of a list. A `Status` is an error.
///
/// A list without a version is none here: the meta says so by an empty one, and the reflector decides.
pub(crate) fn read_head(head: &Head) -> Result<ListMeta, RequestError> {
    match head {
        Head::Status(message) => Err(error_of_list_status(&value_of_status(message))),
        Head::ListMeta(message) => read_list_meta(message).map_err(|error| {
            RequestError::new(ErrorClass::Decode, format!("the metadata of the list cannot be read: {error}"))
        }),
    }
}

fn read_list_meta(message: &[u8]) -> Result<ListMeta, Malformed> {
    let mut meta = ListMeta::default();
    for field in Fields::new(message) {
        let field = field?;
        match field.tag {
            2 => field.text()?.clone_into(&mut meta.resource_version),
            3 => meta.continue_token = Some(field.text()?).filter(|token| !token.is_empty()).map(str::to_owned),
            4 => meta.remaining_item_count = i64::try_from(field.number()?).ok().map(i64::cast_unsigned),
            _ => {}
        }
    }
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Result<ListMeta, RequestError> {
        read_head(&Head::ListMeta(message.to_vec()))
    }

    #[test]
    fn version_token_and_count_are_read_and_an_empty_token_is_none() {
        let meta = read(b"\x0a\x00\x12\x017\x1a\x01t\x20\x03").unwrap();
        assert_eq!((meta.resource_version.as_str(), meta.remaining_item_count), ("7", Some(3)));
        assert_eq!(meta.continue_token.as_deref(), Some("t"));
        assert_eq!(read(b"\x12\x018\x1a\x00\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").unwrap(), ListMeta::new("8"));
        assert_eq!(read(b"").unwrap(), ListMeta::default());
    }

    #[test]
    fn metadata_that_cannot_be_read_are_an_error() {
        for message in [&b"\x12\x02x"[..], b"\x12\x01\xff", b"\x10\x01", b"\x22\x00"] {
            assert_eq!(read(message).unwrap_err().class(), ErrorClass::Decode, "{message:?}");
        }
    }

    #[test]
    fn a_status_is_an_error_of_its_class() {
        let status = |message: &[u8]| read_head(&Head::Status(message.to_vec())).unwrap_err().class();
        assert_eq!(status(b"\x12\x07Failure\x22\x07Expired\x30\x9a\x03"), ErrorClass::Expired);
        assert_eq!(status(b"\x12\x07Success"), ErrorClass::Decode);
    }
}
