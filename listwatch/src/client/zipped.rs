//! An object as the bytes it came in, zipped.

mod first_objects;
pub(crate) mod frame;
mod stored;
mod zipper;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubewire_indexer::{Id, Object, Represents};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::frame::FrameError;
use self::stored::{Stored, Unzipped};
use self::zipper::Zipper;
use crate::client::codec::Format;
use crate::client::packed::came_as_protobuf;
use crate::client::packed::table::Table;
use crate::client::shared_state::SharedState;
use crate::{Decode, DecodeOptions, ItemError, Json, OwnerReference, Packed, Protobuf, Represented, Unpack};

/// A [`Packed`] object whose bytes are zipped with a dictionary, which is learned from the first objects: about a kilobyte
/// for a pod of 9 kB of JSON, at full fidelity (without `metadata.managedFields`). Feature `zstd`.
///
/// Id, labels, owners and generation stay as they are: asking for them unzips nothing. [`decode`](Self::decode) and
/// [`peek`](Self::peek) unzip first, which takes less than a tenth of the time of decoding.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_listwatch::{ListWatch, Zipped};
///
/// # fn pods(client: kube_client::Client) -> ListWatch<Zipped<Pod>> {
/// ListWatch::<Zipped<Pod>>::all(client)
/// # }
/// ```
///
/// # The dictionary
///
/// A list-watch and its clones have one, as has each set of [`DecodeOptions`]. It goes with the last object and the last
/// list-watch.
///
/// - The first objects are kept packed, until 512 of them or 1 MiB are there at once. From these the dictionary is
///   learned, on a thread of its own, in about a fifth of a second. What comes meanwhile is packed too. Then the
///   thread zips whatever waits, in its place: handles, caches and ids stay what they are.
/// - From then on each object is zipped as it is read. A relist reads none that has not changed.
/// - So kinds with fewer objects stay packed: they take less than 1 MiB. An object of more than 64 KiB is
///   zipped at once, without the dictionary; one of more than 32 MiB stays packed. Where nothing can be learned, objects are
///   zipped without a dictionary, and the log says so.
/// - It takes 0.14 MB, and zipping and unzipping 0.2 MB for each thread that does so at one time (at most 8 are
///   kept, for the whole process).
///
/// It is learned once: objects that differ much from the first ones take more, never more than packed ones by much.
///
/// # Costs
///
/// Handles are one word; cloning counts a reference. An object is read, cut and noted as a packed one, and then zipped:
/// 7 us more for a pod. Unzipping takes 3 us. No result is kept: [`HotCache`](crate::HotCache) does that.
pub struct Zipped<K> {
    stored: Arc<Stored>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Zipped<K> {
    /// An object from its JSON text; it has no others beside it, and so stays packed unless it is long.
    ///
    /// # Errors
    /// As [`Packed::from_json`].
    pub fn from_json(json: &[u8]) -> Result<Self, ItemError> {
        Packed::from_json(json).map(Self::from)
    }

    /// An object from its message in protobuf, without an envelope; it stays packed as above.
    ///
    /// # Errors
    /// As [`Packed::from_protobuf`].
    pub fn from_protobuf(message: &[u8]) -> Result<Self, ItemError> {
        Packed::from_protobuf(message).map(Self::from)
    }

    fn new(packed: Packed<K>, shared: &SharedState) -> Self {
        Self { stored: Stored::new(packed.into_bytes(), shared.get(Zipper::new)), kind: PhantomData }
    }

    /// The object packed: for what [`Packed`] has beside, such as a `peek` that borrows, or `message` (feature `prost`).
    /// Cost: unzipping, and two allocations of the length of the object.
    ///
    /// # Errors
    /// The zip is damaged, or there is no memory to unzip it.
    pub fn unzip(&self) -> Result<Packed<K>, ItemError> {
        Ok(Packed::of_bytes(match self.bytes()? {
            Unzipped::Packed(packed) => packed,
            Unzipped::Object(object) => self.table().behind(object).into(),
        }))
    }

    /// The object's JSON text, as [`Packed::json`]. Cost: unzipping.
    ///
    /// # Errors
    /// As [`unzip`](Self::unzip).
    pub fn json(&self) -> Result<Option<String>, ItemError> {
        if self.table().format() == Format::Protobuf {
            return Ok(None);
        }
        let bytes = self.bytes()?;
        self.text(bytes.bytes()).map(|json| Some(json.to_owned()))
    }

    /// The object's message, as [`Packed::protobuf`]. Cost: unzipping.
    ///
    /// # Errors
    /// As [`unzip`](Self::unzip).
    pub fn protobuf(&self) -> Result<Option<Vec<u8>>, ItemError> {
        if self.table().format() == Format::Json {
            return Ok(None);
        }
        Ok(Some(match self.bytes()? {
            Unzipped::Object(object) => object,
            packed => packed.bytes().to_owned(),
        }))
    }

    /// All labels, sorted by name. Unzips nothing.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.table().labels()
    }

    /// The owners, in the order in which they stand. Unzips nothing.
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

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_being_deleted(&self) -> bool {
        self.table().is_being_deleted()
    }

    /// Whether it is zipped by now.
    pub fn is_zipped(&self) -> bool {
        self.stored.is_zipped()
    }

    /// How many bytes the object takes by now, without what the allocator adds, nor its part of the dictionary.
    pub fn size(&self) -> usize {
        self.stored.size()
    }

    /// Blocks until no dictionary is being learned for this object and those beside it, and all of them that waited are
    /// zipped: for tests and measurements. Not to be called on a task: it may take a second. Returns at once where
    /// nothing is being learned, as with too few objects.
    pub fn settle(&self) {
        self.stored.zipper().settle();
    }

    /// Unzips and decodes the whole object. Cost: that of both, each time.
    ///
    /// # Errors
    /// As [`Packed::decode`], or as [`unzip`](Self::unzip).
    pub fn decode(&self) -> Result<K, ItemError>
    where
        K: Unpack,
    {
        let bytes = self.bytes()?;
        match self.table().format() {
            Format::Json => K::from_json(self.text(bytes.bytes())?),
            Format::Protobuf => K::from_protobuf(bytes.bytes()),
        }
    }

    /// Unzips, decodes what `T` names of an object that came as JSON, and skips the rest. To borrow strings, `peek`
    /// into what [`unzip`](Self::unzip) gives.
    ///
    /// # Errors
    /// As [`Packed::peek`], or as [`unzip`](Self::unzip).
    pub fn peek<T: DeserializeOwned>(&self) -> Result<T, ItemError> {
        let bytes = self.bytes()?;
        match self.table().format() {
            Format::Json => T::from_json(self.text(bytes.bytes())?),
            Format::Protobuf => Err(came_as_protobuf(bytes.bytes())),
        }
    }

    fn table(&self) -> Table<'_> {
        self.stored.head()
    }

    fn bytes(&self) -> Result<Unzipped, ItemError> {
        self.stored.unzip().map_err(|error: FrameError| self.error(&error))
    }

    fn text<'a>(&self, json: &'a [u8]) -> Result<&'a str, ItemError> {
        str::from_utf8(json).map_err(|error| self.error(&error))
    }

    fn error(&self, error: &dyn fmt::Display) -> ItemError {
        let id = self.table().id();
        let resource_version = Some(id.resource_version).filter(|version| !version.is_empty()).map(str::to_owned);
        let key = (!id.name.is_empty()).then(|| id.key());
        ItemError { key, resource_version, ..ItemError::new(error.to_string()) }
    }
}

impl<K: Serialize> Zipped<K> {
    /// An object, as [`Packed::of`] packs it; for tests, and for objects of one's own making.
    ///
    /// # Errors
    /// The object does not serialize to a JSON object with metadata.
    pub fn of(object: &K) -> Result<Self, ItemError> {
        Packed::of(object).map(Self::from)
    }
}

/// An object by itself.
impl<K> From<Packed<K>> for Zipped<K> {
    fn from(packed: Packed<K>) -> Self {
        Self::new(packed, &SharedState::default())
    }
}

impl<K: 'static> Object for Zipped<K> {
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

    /// Unzips; of an object that cannot be unzipped there are none.
    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        let Ok(packed) = self.unzip() else { return Vec::new() };
        let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned().into(), value.into_owned().into());
        packed.annotations().into_iter().map(owned).collect()
    }
}

/// As with [`Packed`]. All that is read with the same options, or clones of them, has one dictionary.
impl<K: 'static> Decode<Json> for Zipped<K> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        let packed = <Packed<K> as Decode<Json>>::decode(item, options)?;
        Ok(Self::new(packed, &options.shared))
    }
}

/// As with [`Packed`]. All that is read with the same options, or clones of them, has one dictionary.
impl<K: 'static> Decode<Protobuf> for Zipped<K> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        let packed = <Packed<K> as Decode<Protobuf>>::decode(item, options)?;
        Ok(Self::new(packed, &options.shared))
    }
}

impl<K: Represents + 'static> Represented for Zipped<K> {
    type Resource = K::Resource;
}

impl<K> Clone for Zipped<K> {
    fn clone(&self) -> Self {
        Self { stored: Arc::clone(&self.stored), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Zipped<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.table().id();
        f.debug_struct("Zipped")
            .field("id", &id)
            .field("is_zipped", &self.is_zipped())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
