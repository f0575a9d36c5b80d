//! An object as the bytes it came in.

mod annotations;
mod json_walk;
mod message_walk;
mod parts;
pub(crate) mod table;
mod unpack;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubewire_indexer::{Id, Object, OwnerReference, Represents};
use serde::{Deserialize, Serialize};

pub use self::unpack::Unpack;

use self::annotations::Annotated;
use self::table::Table;
use crate::client::codec::Format;
use crate::client::decode::borrow_json;
use crate::client::protobuf::item::item_error;
use crate::{Decode, DecodeOptions, ItemError, Json, Protobuf, Represented};

/// An object kept as the bytes it came in, without `metadata.managedFields`, and decoded only by who asks for it.
///
/// On its way through a list or a watch it is not decoded at all: its bytes are cut out of the stream, and what a
/// cache needs to know (id, labels, owners, generation) is noted while that is done. A pod of 9 kB of JSON takes
/// about 5 kB this way, against 70 kB as a `Pod`; in protobuf, with [`ListWatch::codec`](crate::ListWatch::codec), 3 kB.
///
/// A handle of two words to one allocation; cloning counts a reference. What is asked of it most (id, labels) costs
/// no parsing, whatever the bytes are. Of JSON, [`peek`](Self::peek) keeps what `T` names; of protobuf,
/// `message` (feature `prost`) does; [`decode`](Self::decode) makes a whole `K` of either, where `K` can be made of it.
/// No result is kept.
///
/// With the time of [`decode`](Self::decode) into a `Pod` as 100, making one from its JSON takes 50, a `peek` at one field 25, `id` 0.3 and
/// a label 0.15 (`cargo bench -p kubewire-benches --bench objects`; DESIGN.md has the figures).
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_indexer::Object;
/// use kubewire_listwatch::Packed;
/// use serde::Deserialize;
///
/// let json = br#"{"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"nodeName":"n1","containers":[]}}"#;
/// let pod: Packed<Pod> = Packed::from_json(json)?;
/// assert_eq!((pod.id().name, pod.label("app")), ("a", Some("web")));
///
/// #[derive(Deserialize)]
/// struct OnNode<'a> {
///     #[serde(borrow)]
///     spec: Spec<'a>,
/// }
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec<'a> {
///     node_name: &'a str,
/// }
/// assert_eq!(pod.peek::<OnNode>()?.spec.node_name, "n1");
/// assert_eq!(pod.decode()?.spec.unwrap().node_name.as_deref(), Some("n1"));
/// # Ok::<(), kubewire_listwatch::ItemError>(())
/// ```
pub struct Packed<K> {
    /// The bytes of the object, then a table of what was noted, and of what the bytes are.
    bytes: Arc<[u8]>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Packed<K> {
    /// An object from its JSON text.
    ///
    /// # Errors
    /// The text is no JSON object, or its metadata are not what they should be. The rest is not looked at beyond
    /// its syntax.
    pub fn from_json(json: &[u8]) -> Result<Self, ItemError> {
        Self::pack(json, &DecodeOptions::default())
    }

    /// An object from its message in protobuf, without an envelope.
    ///
    /// # Errors
    /// The bytes are no message, or its metadata are not what they should be. Messages beside them are not looked at.
    pub fn from_protobuf(message: &[u8]) -> Result<Self, ItemError> {
        Self::pack_message(message, &DecodeOptions::default())
    }

    fn pack(json: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        Ok(Self { bytes: json_walk::read(json, options)?.pack(Format::Json), kind: PhantomData })
    }

    fn pack_message(message: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        Ok(Self { bytes: message_walk::read(message, options)?.pack(Format::Protobuf), kind: PhantomData })
    }

    /// The object of these bytes, which were a packed one's.
    #[cfg(feature = "zstd")]
    pub(crate) fn of_bytes(bytes: Arc<[u8]>) -> Self {
        Self { bytes, kind: PhantomData }
    }

    #[cfg(feature = "zstd")]
    pub(crate) fn into_bytes(self) -> Arc<[u8]> {
        self.bytes
    }

    /// The object's JSON text, as the server wrote it but for what was cut out, if it came as JSON. In a list API
    /// servers leave `apiVersion` and `kind` out.
    pub fn json(&self) -> Option<&str> {
        let table = self.table();
        // It was checked to be text when it was packed.
        (table.format() == Format::Json).then(|| str::from_utf8(table.object()).unwrap_or_default())
    }

    /// The object's message, as the server wrote it but for what was cut out, if it came as protobuf. It says nothing
    /// of its type.
    pub fn protobuf(&self) -> Option<&[u8]> {
        let table = self.table();
        (table.format() == Format::Protobuf).then(|| table.object())
    }

    /// All labels, sorted by name.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.table().labels()
    }

    /// The owners, in the order in which they stand.
    pub fn owner_references(&self) -> impl ExactSizeIterator<Item = OwnerReference<'_>> {
        self.table().owners()
    }

    /// The owner that controls the object, if one does.
    pub fn controller(&self) -> Option<OwnerReference<'_>> {
        self.owner_references().find(|owner| owner.controller)
    }

    /// `metadata.generation`: the number of the present desired state.
    pub fn generation(&self) -> Option<i64> {
        self.table().generation()
    }

    /// All annotations, in no order. Cost: reads the metadata again.
    pub fn annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        match self.protobuf() {
            // They were read before, and cannot be malformed now.
            Some(message) => message_walk::annotations(message).unwrap_or_default(),
            None => self.peek::<Annotated<'_>>().unwrap_or_default().metadata.annotations.0,
        }
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_being_deleted(&self) -> bool {
        self.table().is_being_deleted()
    }

    /// How many bytes the object takes, without what the allocator adds.
    pub fn size(&self) -> usize {
        self.bytes.len() + 2 * size_of::<usize>()
    }

    /// Decodes the whole object. Cost: that of parsing it, each time.
    ///
    /// # Errors
    /// The bytes do not fit `K`, or `K` is not made of what they came as; the error tells the key.
    pub fn decode(&self) -> Result<K, ItemError>
    where
        K: Unpack,
    {
        match (self.json(), self.protobuf()) {
            (Some(json), _) => K::from_json(json),
            (None, message) => K::from_protobuf(message.unwrap_or_default()),
        }
    }

    /// Decodes what `T` names of an object that came as JSON, and skips the rest; strings without escapes can be
    /// borrowed.
    ///
    /// # Errors
    /// The text does not fit `T`, or the object came as protobuf; the error tells the key, and the path of the field.
    pub fn peek<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ItemError> {
        let Some(json) = self.json() else {
            return Err(came_as_protobuf(self.table().object()));
        };
        borrow_json(json.as_bytes())
    }

    /// Decodes what `M` names of an object that came as protobuf, and skips the rest: a struct of one's own with a few
    /// tags, or a whole message of k8s-pb.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewire_listwatch::Packed;
    ///
    /// #[derive(Clone, PartialEq, prost::Message)]
    /// struct OnNode {
    ///     #[prost(message, optional, tag = "2")]
    ///     spec: Option<Spec>,
    /// }
    /// #[derive(Clone, PartialEq, prost::Message)]
    /// struct Spec {
    ///     #[prost(string, tag = "10")]
    ///     node_name: String,
    /// }
    ///
    /// let message = b"\x0a\x03\x0a\x01a\x12\x04\x52\x02n1"; // of a list or watch
    /// let pod: Packed<Pod> = Packed::from_protobuf(message)?;
    /// assert_eq!(pod.message::<OnNode>()?.spec.unwrap().node_name, "n1");
    /// # Ok::<(), kubewire_listwatch::ItemError>(())
    /// ```
    ///
    /// # Errors
    /// The message does not fit `M`, or the object came as JSON; the error tells the key.
    #[cfg(feature = "prost")]
    pub fn message<M: prost::Message + Default>(&self) -> Result<M, ItemError> {
        match (self.protobuf(), self.json()) {
            (Some(message), _) => M::decode(message).map_err(|error| item_error(message, error.to_string())),
            (None, json) => {
                let message = "it came as JSON: `decode` it or `peek` into it, or list in `Protobuf`".to_owned();
                Err(crate::client::decode::item_error(json.unwrap_or_default().as_bytes(), message))
            }
        }
    }

    fn table(&self) -> Table<'_> {
        Table::of(&self.bytes)
    }
}

/// What is said of an object that shall be read as JSON and is none.
pub(crate) fn came_as_protobuf(message: &[u8]) -> ItemError {
    const ADVICE: &str = "it came as protobuf: decode a `Packed<Pb<_>>`, ask for a `message`, or list in `Json`";
    item_error(message, ADVICE.to_owned())
}

impl<K: Serialize> Packed<K> {
    /// An object, packed; for tests, and for objects of one's own making.
    ///
    /// # Errors
    /// The object does not serialize to a JSON object with metadata.
    pub fn of(object: &K) -> Result<Self, ItemError> {
        let json = serde_json::to_vec(object).map_err(|error| ItemError::new(error.to_string()))?;
        Self::from_json(&json)
    }
}

impl<K: 'static> Object for Packed<K> {
    fn id(&self) -> Id<'_> {
        self.table().id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.table().find_label(name)
    }

    fn generation(&self) -> Option<i64> {
        self.generation()
    }

    fn is_being_deleted(&self) -> bool {
        self.is_being_deleted()
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        self.owner_references().collect()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.labels().collect()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.annotations()
    }
}

/// An object of another kind than asked for, or with metadata that cannot be read, is an error. Of two fields of
/// one name the last one counts.
impl<K: 'static> Decode<Json> for Packed<K> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        Self::pack(item, options)
    }
}

/// Bytes that are no message, or metadata that cannot be read, are an error. Of two metadata the parts come together,
/// as protobuf has it.
impl<K: 'static> Decode<Protobuf> for Packed<K> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        Self::pack_message(item, options)
    }
}

impl<K: Represents + 'static> Represented for Packed<K> {
    type Resource = K::Resource;
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self { bytes: Arc::clone(&self.bytes), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.table().id();
        f.debug_struct("Packed").field("id", &id).field("size", &self.size()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
