//! An object as the bytes it came in.

mod parts;
mod table;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubewire_indexer::{Id, Object, Represents};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::parts::Parts;
use self::table::Table;
use crate::client::decode::{decode_json, explain};
use crate::client::drop_fields::DropFields;
use crate::{Decode, DecodeOptions, ItemError, Json, Represented};

/// An object kept as its JSON text, without `metadata.managedFields`, and decoded only by who asks for it.
///
/// On its way through a list or a watch it is not decoded at all: its text is cut out of the stream, and what a
/// cache needs to know (id, labels, owners, generation) is noted while that is done. A pod of 9 kB on the wire takes
/// about 5 kB this way, against 70 kB as a `Pod`.
///
/// A handle of two words to one allocation; cloning counts a reference. What is asked of it most (id, labels) costs
/// no parsing; [`peek`](Self::peek) parses the text once and keeps what `T` names, [`decode`](Self::decode) parses
/// it to a whole `K`. Neither result is kept.
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
    /// The JSON text of the object, then a table of what was noted.
    text: Arc<str>,
    kind: PhantomData<fn() -> K>,
}

/// One entry of `metadata.ownerReferences`. Absent parts are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OwnerReference<'a> {
    /// `apps/v1`
    pub api_version: &'a str,
    /// `ReplicaSet`
    pub kind: &'a str,
    /// The owner's name; its namespace is the object's, or none.
    pub name: &'a str,
    /// The owner's uid.
    pub uid: &'a str,
    /// Whether this is the one that controls the object.
    pub controller: bool,
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

    fn pack(json: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        let text = Parts::read(json, options)?.into_text().into();
        Ok(Self { text, kind: PhantomData })
    }

    /// The object's JSON text, as the server wrote it but for what was cut out. In a list API servers leave
    /// `apiVersion` and `kind` out.
    pub fn json(&self) -> &str {
        self.table().json()
    }

    /// All labels, sorted by name.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        let table = self.table();
        (0..table.label_count()).map(move |index| table.label(index))
    }

    /// The owners, in the order in which they stand.
    pub fn owner_references(&self) -> impl ExactSizeIterator<Item = OwnerReference<'_>> {
        let table = self.table();
        (0..table.owner_count()).map(move |index| table.owner(index))
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

    /// How many bytes the object takes, without what the allocator adds.
    pub fn size(&self) -> usize {
        self.text.len() + 2 * size_of::<usize>()
    }

    /// Decodes the whole object. Cost: that of parsing it, each time.
    ///
    /// # Errors
    /// The text does not fit `K`; the error tells the key, and the path of the field.
    pub fn decode(&self) -> Result<K, ItemError>
    where
        K: DeserializeOwned,
    {
        let json = self.json();
        serde_json::from_str(json).or_else(|_| decode_json(json.as_bytes(), &DropFields::default(), None))
    }

    /// Decodes what `T` names of the object, and skips the rest; strings without escapes can be borrowed.
    ///
    /// # Errors
    /// The text does not fit `T`; the error tells the key, and the path of the field.
    pub fn peek<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ItemError> {
        let json = self.json();
        serde_json::from_str(json).map_err(|_| explain::<T>(json.as_bytes(), &DropFields::default(), None))
    }

    fn table(&self) -> Table<'_> {
        Table::of(&self.text)
    }
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
}

/// An object of another kind than asked for, or with metadata that cannot be read, is an error. Of two fields of
/// one name the last one counts.
impl<K: 'static> Decode<Json> for Packed<K> {
    fn decode(item: &[u8], options: &DecodeOptions) -> Result<Self, ItemError> {
        Self::pack(item, options)
    }
}

impl<K: Represents + 'static> Represented for Packed<K> {
    type Resource = K::Resource;
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), kind: PhantomData }
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
