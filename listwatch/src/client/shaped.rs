//! PURE. A serde deserializer around another one, that leaves fields out, checks the kind, and fills the type in.
//!
//! API servers leave `apiVersion` and `kind` out of the items of typed lists and put them into watch events; with
//! this an object looks the same from both. What is dropped is skipped by the inner parser.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::client::drop_fields::{DropFields, Fate};
use crate::client::json::{JsonError, Reader};
use crate::client::text::Text;

/// What objects are expected to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The server was asked for `PartialObjectMetadata`; one that does not know it sends the whole object.
    pub(crate) metadata_only: bool,
}

impl Types {
    /// What is filled in for an object that does not say what it is.
    fn filled_in(&self) -> [(&'static str, &str); 2] {
        match self.metadata_only {
            true => [("apiVersion", "meta.k8s.io/v1"), ("kind", "PartialObjectMetadata")],
            false => [("apiVersion", &self.api_version), ("kind", &self.kind)],
        }
    }

    /// Whether an object that says this of itself was asked for. (A resource may be named by its plural alone.)
    pub(crate) fn admits(&self, name: &str, value: &str) -> bool {
        let (wanted, metadata) = match name {
            "kind" => (&self.kind, value == "PartialObjectMetadata"),
            "apiVersion" => (&self.api_version, value.starts_with("meta.k8s.io/")),
            _ => return true,
        };
        wanted.is_empty() || value == wanted || self.metadata_only && metadata
    }

    /// The error of an object that is not what was asked for.
    pub(crate) fn unexpected<E: Error>(&self, name: &str, value: &str) -> E {
        E::custom(self.unexpected_text(name, value))
    }

    /// The text of that error.
    pub(crate) fn unexpected_text(&self, name: &str, value: &str) -> String {
        let [api_version, kind] = self.filled_in().map(|(_, value)| value);
        format!("{name} is {value:?}, wanted is {api_version} {kind}")
    }
}

/// A deserializer of a whole object.
pub(crate) struct Shaped<'a, D> {
    inner: D,
    drop: &'a DropFields,
    /// Only for the object itself, not for what lies inside.
    types: Option<&'a Types>,
}

impl<'a, D> Shaped<'a, D> {
    pub(crate) fn new(inner: D, drop: &'a DropFields, types: Option<&'a Types>) -> Self {
        Self { inner, drop, types }
    }
}

/// Methods whose values can hold fields: the visitor goes along.
macro_rules! enter {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($arg,)* ShapedVisitor { inner: visitor, drop: self.drop, types: self.types })
        }
    )*};
}

/// Methods whose values cannot.
macro_rules! pass {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($arg,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Shaped<'_, D> {
    type Error = D::Error;

    enter! {
        deserialize_any()
        deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_option()
        deserialize_seq()
        deserialize_newtype_struct(name: &'static str)
    }

    pass! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
        deserialize_bytes() deserialize_byte_buf() deserialize_unit() deserialize_identifier()
        deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

struct ShapedVisitor<'a, V> {
    inner: V,
    drop: &'a DropFields,
    types: Option<&'a Types>,
}

macro_rules! visit {
    ($($method:ident($($arg:ident: $type:ty)?))*) => {$(
        fn $method<E: Error>(self, $($arg: $type)?) -> Result<V::Value, E> {
            self.inner.$method($($arg)?)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ShapedVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(value: bool) visit_i64(value: i64) visit_i128(value: i128) visit_u64(value: u64)
        visit_u128(value: u128) visit_f64(value: f64) visit_str(value: &str) visit_borrowed_str(value: &'de str)
        visit_string(value: String) visit_unit() visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Shaped { inner, drop: self.drop, types: self.types })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Shaped { inner, drop: self.drop, types: self.types })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(ShapedSeq { inner, drop: self.drop })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let missing = self.types.map_or([None, None], |types| types.filled_in().map(Some));
        self.inner.visit_map(ShapedMap { inner, drop: self.drop, types: self.types, missing, next: Next::Kept })
    }
}

struct ShapedSeq<'a, A> {
    inner: A,
    drop: &'a DropFields,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for ShapedSeq<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.inner.next_element_seed(ShapedSeed { inner: seed, drop: self.drop })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

struct ShapedMap<'a, A> {
    inner: A,
    drop: &'a DropFields,
    types: Option<&'a Types>,
    /// What was not seen yet of `apiVersion` and `kind`, to be filled in at the end.
    missing: [Option<(&'static str, &'a str)>; 2],
    /// What the next value is.
    next: Next<'a>,
}

enum Next<'a> {
    Kept,
    Entered(&'a DropFields),
    /// Of a type field, that must be what was asked for.
    Checked(&'static str),
    FilledIn(&'a str),
}

impl<'a, 'de, A: MapAccess<'de>> MapAccess<'de> for ShapedMap<'a, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(Text(key)) = self.inner.next_key()? {
            self.next = match self.drop.fate(&key) {
                Fate::Drop => {
                    self.inner.next_value::<IgnoredAny>()?;
                    continue;
                }
                Fate::Enter(inside) => Next::Entered(inside),
                Fate::Keep => self.check(&key),
            };
            return match key {
                Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
                Cow::Owned(_) => seed.deserialize(CowStrDeserializer::new(key)).map(Some),
            };
        }
        let Some((name, value)) = self.missing.iter_mut().find_map(Option::take) else { return Ok(None) };
        self.next = Next::FilledIn(value);
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        match std::mem::replace(&mut self.next, Next::Kept) {
            Next::Kept => self.inner.next_value_seed(seed),
            Next::Entered(drop) => self.inner.next_value_seed(ShapedSeed { inner: seed, drop }),
            Next::FilledIn(value) => seed.deserialize(CowStrDeserializer::new(Cow::Borrowed(value))),
            Next::Checked(name) => {
                let Text(value) = self.inner.next_value()?;
                if let Some(types) = self.types.filter(|types| !types.admits(name, &value)) {
                    return Err(types.unexpected(name, &value));
                }
                seed.deserialize(CowStrDeserializer::new(value))
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, A> ShapedMap<'a, A> {
    /// What the value of this key is, which is kept.
    fn check(&mut self, key: &str) -> Next<'a> {
        if self.types.is_none() {
            return Next::Kept;
        }
        let (slot, name) = match key {
            "apiVersion" => (0, "apiVersion"),
            "kind" => (1, "kind"),
            _ => return Next::Kept,
        };
        self.missing[slot] = None;
        Next::Checked(name)
    }
}

struct ShapedSeed<'a, T> {
    inner: T,
    drop: &'a DropFields,
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for ShapedSeed<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T::Value, D::Error> {
        self.inner.deserialize(Shaped { inner, drop: self.drop, types: None })
    }
}

/// Decodes one whole JSON text. Of what is skipped, because it is dropped or because `T` does not name it, nothing but
/// brackets and quotes is looked at.
pub(crate) fn read<'de, T: Deserialize<'de>>(
    json: &'de [u8],
    drop: &DropFields,
    types: Option<&Types>,
) -> Result<T, JsonError> {
    let mut reader = Reader::of_bytes(json)?;
    let value = T::deserialize(Shaped::new(&mut reader, drop, types))?;
    reader.end().map(|()| value)
}
