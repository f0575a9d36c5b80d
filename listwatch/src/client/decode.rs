//! How the bytes of one item become an object, in a codec.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubewire_indexer::{KeyError, Meta, Object, ObjectKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::drop_fields::DropFields;
use crate::client::shaped::{Types, read};
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

/// Decodes an item; an error tells which object it was and where in it the fault lies. Derived implementations refuse an
/// object with a field twice, k8s-openapi's take the last one; here the last one counts for all of them.
pub(crate) fn decode_json<T: DeserializeOwned>(
    item: &[u8],
    drop: &DropFields,
    types: Option<&Types>,
) -> Result<T, ItemError> {
    match read(item, drop, types) {
        Err(error) if error.what().starts_with("duplicate field") => read_once(item, drop, types),
        outcome => outcome.map_err(|error| item_error(item, error.to_string())),
    }
}

/// Decodes an item in which every field is once, the last one.
fn read_once<T: DeserializeOwned>(item: &[u8], drop: &DropFields, types: Option<&Types>) -> Result<T, ItemError> {
    let value: Value = serde_json::from_slice(item).map_err(|error| item_error(item, error.to_string()))?;
    read(value.to_string().as_bytes(), drop, types).map_err(|error| item_error(item, error.to_string()))
}

/// Decodes what may borrow from the item.
pub(crate) fn borrow_json<'a, T: Deserialize<'a>>(item: &'a [u8]) -> Result<T, ItemError> {
    read(item, &DropFields::default(), None).map_err(|error| item_error(item, error.to_string()))
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
