//! How the bytes of one item become an object, in a codec.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubewire_indexer::{KeyError, Meta, Object, ObjectKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::drop_fields::DropFields;
use crate::client::shaped::{Shaped, Types, read};
use crate::{ItemError, Json};

/// A representation that can be read from an item in the format `C`: [`Json`], or [`Protobuf`](crate::Protobuf).
///
/// The format is a parameter of the trait, so that a blanket implementation for each can stand beside the other:
/// `Arc<T>` has it in JSON for every `T` that serde can read, and in protobuf (feature `prost`) for every `T` that is
/// a `prost::Message`. [`Packed`](crate::Packed) has both.
///
/// A representation of one's own, here one that keeps nothing but the id:
///
/// ```
/// use kubewire_indexer::{Id, Object, ObjectId};
/// use kubewire_listwatch::{Decode, DecodeOptions, ItemError, Json};
/// use serde::Deserialize;
///
/// #[derive(Clone)]
/// struct Present(ObjectId);
///
/// impl Object for Present {
///     fn id(&self) -> Id<'_> {
///         self.0.id()
///     }
///     fn label(&self, _: &str) -> Option<&str> {
///         None
///     }
/// }
///
/// impl Decode<Json> for Present {
///     fn decode(item: &[u8], _: &DecodeOptions) -> Result<Self, ItemError> {
///         #[derive(Deserialize)]
///         struct Item {
///             metadata: ObjectId,
///         }
///         let item: Item = serde_json::from_slice(item).map_err(|error| ItemError::new(error.to_string()))?;
///         Ok(Self(item.metadata))
///     }
/// }
/// ```
pub trait Decode<C>: Object {
    /// Reads one object from its bytes, which hold nothing else. The bytes are lent: what must outlive the call
    /// is copied.
    ///
    /// In JSON they are a text, in protobuf the message of the object itself, without an envelope: what type it has
    /// was checked before.
    ///
    /// An object without a name need not be refused here: that is done for all representations alike.
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError>;
}

/// What a list-watch tells its codec.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    pub(crate) types: Option<Types>,
    pub(crate) drop: DropFields,
    /// The representation's own.
    #[cfg(feature = "zstd")]
    pub(crate) shared: crate::client::shared_state::SharedState,
}

impl DecodeOptions {
    /// The `apiVersion` and `kind` that objects are expected to have, where that is known.
    pub fn types(&self) -> Option<(&str, &str)> {
        self.types.as_ref().map(|types| (types.api_version.as_str(), types.kind.as_str()))
    }
}

/// Of two fields of one name the last one counts, in the typed and in the dynamic objects.
impl<T: Meta + DeserializeOwned + Send + Sync + 'static> Decode<Json> for Arc<T> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        decode_json(item, &options.drop, options.types.as_ref()).map(Self::new)
    }
}

/// Decodes, and refuses an object that has no name. A decoder that panics has failed, no more.
pub(crate) fn checked<O: Object>(
    decode: impl FnOnce() -> Result<O, ItemError>,
    error: impl FnOnce(String) -> ItemError,
) -> Result<O, ItemError> {
    match catch_unwind(AssertUnwindSafe(|| decode().map(|object| (object.id().name.is_empty(), object)))) {
        Ok(Ok((false, object))) => Ok(object),
        Ok(Ok((true, _))) => Err(error(KeyError::NoName.to_string())),
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(error(format!("the decoder panicked: {}", panic_text(&*panic)))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    text.unwrap_or("(no text)")
}

/// Reads one object of any representation, and refuses one that has no name.
pub(crate) fn read_item<O: Decode<Json>>(item: &[u8], options: &DecodeOptions) -> Result<O, ItemError> {
    checked(|| O::decode(item, options), |message| item_error(item, message))
}

/// Decodes an item; an error tells which object it was and where in it the fault lies.
pub(crate) fn decode_json<T: DeserializeOwned>(
    item: &[u8],
    drop: &DropFields,
    types: Option<&Types>,
) -> Result<T, ItemError> {
    if let Some(object) = read(item, drop, types) {
        return Ok(object);
    }
    match by_serde_json(item, drop, types) {
        Ok(object) => Ok(object),
        Err(fault) if fault.error.starts_with("duplicate field") => decode_value(item, drop, types),
        Err(fault) => Err(item_error(item, fault.in_place)),
    }
}

/// The slow way for objects with a field twice: derived implementations refuse them, k8s-openapi's take the last.
fn decode_value<T: DeserializeOwned>(item: &[u8], drop: &DropFields, types: Option<&Types>) -> Result<T, ItemError> {
    let value: Value = serde_json::from_slice(item).map_err(|error| item_error(item, error.to_string()))?;
    T::deserialize(Shaped::new(value, drop, types)).map_err(|error| item_error(item, error.to_string()))
}

/// Why serde_json cannot read an object.
struct Fault {
    error: String,
    /// With the path of the field.
    in_place: String,
}

/// Decodes by serde_json, which takes a little more (numbers as keys, raw values), and learns the path of the field that
/// is at fault.
fn by_serde_json<'de, T: Deserialize<'de>>(
    item: &'de [u8],
    drop: &DropFields,
    types: Option<&Types>,
) -> Result<T, Fault> {
    let mut parser = serde_json::Deserializer::from_slice(item);
    let nowhere = |error: String| Fault { in_place: error.clone(), error };
    match serde_path_to_error::deserialize(Shaped::new(&mut parser, drop, types)) {
        Ok(object) => parser.end().map(|()| object).map_err(|error| nowhere(error.to_string())),
        Err(error) if error.path().iter().next().is_none() => Err(nowhere(error.into_inner().to_string())),
        Err(error) => Err(Fault { in_place: error.to_string(), error: error.into_inner().to_string() }),
    }
}

/// Decodes again to learn the path of the field that is at fault.
pub(crate) fn explain<'de, T: Deserialize<'de>>(
    item: &'de [u8],
    drop: &DropFields,
    types: Option<&Types>,
) -> ItemError {
    let fault = by_serde_json::<T>(item, drop, types).err();
    item_error(item, fault.map_or("cannot be decoded".to_owned(), |fault| fault.in_place))
}

/// The error of an item, with its key and version as far as they can be read.
pub(crate) fn item_error(item: &[u8], message: String) -> ItemError {
    let object: LenientObject = serde_json::from_slice(item).unwrap_or_default();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    ItemError {
        key: text(&object.metadata.name)
            .map(|name| ObjectKey::new(&text(&object.metadata.namespace).unwrap_or_default(), &name)),
        resource_version: text(&object.metadata.resource_version),
        ..ItemError::new(message)
    }
}

/// What identifies an object, whatever the rest is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LenientObject {
    metadata: LenientMeta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LenientMeta {
    namespace: Value,
    name: Value,
    resource_version: Value,
}

#[cfg(test)]
mod tests {
    use kubewire_indexer::Id;

    use super::*;

    /// Panics over the letter p, and has no name over the letter n.
    #[derive(Clone, Debug)]
    struct Touchy(&'static str);

    impl Object for Touchy {
        fn id(&self) -> Id<'_> {
            Id::new("", self.0)
        }

        fn label(&self, _: &str) -> Option<&str> {
            None
        }
    }

    impl Decode<Json> for Touchy {
        fn decode(item: &[u8], _: &DecodeOptions) -> Result<Self, ItemError> {
            assert!(!item.ends_with(b"p}"), "not this one");
            Ok(Self(if item.ends_with(b"n}") { "" } else { "x" }))
        }
    }

    #[test]
    fn what_the_reader_leaves_to_serde_json_is_read_too() {
        #[derive(Debug, Deserialize)]
        struct Odd {
            #[serde(default)]
            by_number: std::collections::BTreeMap<u8, bool>,
            raw: Option<Box<serde_json::value::RawValue>>,
        }

        let odd: Odd = decode_json(br#"{"raw":[ 1],"by_number":{"7":true}}"#, &DropFields::default(), None).unwrap();
        assert_eq!((odd.raw.unwrap().get(), odd.by_number[&7]), ("[ 1]", true));
        let odd: Odd =
            decode_json(br#"{"by_number":{"7":true},"by_number":{}}"#, &DropFields::default(), None).unwrap();
        assert!(odd.by_number.is_empty() && odd.raw.is_none(), "the last one counts");
        let error = decode_json::<Odd>(br#"{"by_number":{"7":1}}"#, &DropFields::default(), None).unwrap_err();
        assert!(error.message.starts_with("by_number.7: invalid type"), "{error}");
    }

    #[test]
    fn a_decoder_that_panics_has_failed_for_this_item_alone() {
        let read = |item: &[u8]| read_item::<Touchy>(item, &DecodeOptions::default());
        let item = br#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"p}"#;
        let error = read(item).unwrap_err();
        assert_eq!(error.message, "the decoder panicked: not this one");
        let whole = br#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}"#;
        assert_eq!(read(whole).unwrap().0, "x");
        assert!(read(b"{n}").unwrap_err().message.contains("no name"));
    }
}
