//! What a packed object can be decoded to.

use serde::de::DeserializeOwned;

use crate::ItemError;
use crate::client::decode::decode_json;
use crate::client::drop_fields::DropFields;

/// What [`Packed::decode`](crate::Packed::decode) makes of the bytes of an object, by the format that they came in.
///
/// Whatever serde can read is made of JSON; a `Pb` (feature `k8s-pb`) of protobuf. Of the other format they are an
/// error, which says what to ask for instead.
pub trait Unpack: Sized {
    /// From a JSON text.
    ///
    /// # Errors
    /// The text does not fit; the error tells the key, and the path of the field.
    fn from_json(json: &str) -> Result<Self, ItemError>;

    /// From the message of an object in protobuf, without an envelope.
    ///
    /// # Errors
    /// The message does not fit; the error tells the key.
    fn from_protobuf(message: &[u8]) -> Result<Self, ItemError>;
}

impl<T: DeserializeOwned> Unpack for T {
    fn from_json(json: &str) -> Result<Self, ItemError> {
        decode_json(json.as_bytes(), &DropFields::default(), None)
    }

    fn from_protobuf(message: &[u8]) -> Result<Self, ItemError> {
        Err(super::came_as_protobuf(message))
    }
}
