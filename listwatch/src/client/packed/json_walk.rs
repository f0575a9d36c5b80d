//! PURE. Reads through the JSON text of an object once: checks its syntax, notes what identifies it, and finds what
//! is to be cut out. Into what is cut out it does not look beyond brackets and quotes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::parts::{Owner, Part, Parts};
use super::table::NUMBER_MAX;
use crate::client::decode::item_error;
use crate::client::drop_fields::{DropFields, Fate};
use crate::client::json::{Reader, Span};
use crate::client::shaped::Types;
use crate::client::text::Text;
use crate::{DecodeOptions, ItemError};

/// Reads a whole text.
pub(super) fn read<'a>(json: &'a [u8], options: &DecodeOptions) -> Result<Parts<'a>, ItemError> {
    let fail = |error: &dyn fmt::Display| item_error(json, error.to_string());
    let text = str::from_utf8(json).map_err(|error| fail(&error))?;
    // An escaped string is no longer without its escapes, so that the table stays within twice this.
    if text.len() > NUMBER_MAX / 2 {
        return Err(fail(&"the object is too long to be packed"));
    }
    let mut parts = Parts::of(json);
    let mut reader = Reader::strict(text);
    Walk::of_object(&mut parts, options)
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|error| fail(&error))?;
    Ok(parts)
}

impl Parts<'_> {
    /// Cuts a member of an object out, with the comma that parts it from its neighbour.
    fn cut_member(&mut self, key_start: usize, value_end: usize) {
        let bytes = self.wire;
        let blanks = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = value_end + blanks(&bytes[value_end..]);
        // What was cut out just before and what is now are one piece.
        let mut start = self.edits.take_cut_that_ends(key_start).map_or(key_start, |last| last.start);
        let mut end = value_end;
        if bytes.get(next) == Some(&b',') {
            // Up to the next key, so that its cut, if it comes, follows this one.
            end = next + 1 + blanks(&bytes[next + 1..]);
        } else {
            let before = bytes[..start].trim_ascii_end();
            if before.ends_with(b",") {
                start = before.len() - 1;
            }
        }
        self.edits.cut(start..end);
    }
}

/// Where in the object a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Labels,
    Owners,
    Owner,
    /// Of no interest but for what is cut out inside it.
    Elsewhere,
}

/// A walk through one value.
struct Walk<'w, 'a> {
    parts: &'w mut Parts<'a>,
    place: Place,
    /// What is cut out inside this value.
    drop: Option<&'w DropFields>,
    /// What the object must be.
    types: Option<&'w Types>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'w, 'de> Walk<'w, 'de> {
    fn of_object(parts: &'w mut Parts<'de>, options: &'w DecodeOptions) -> Self {
        Self { parts, place: Place::Object, drop: Some(&options.drop), types: options.types.as_ref() }
    }

    fn fate(&self, key: &Text<'de>) -> Fate<'w> {
        match &key.0 {
            // The place of an escaped key is not known; nobody writes one where something is to be cut out.
            Cow::Owned(_) => Fate::Keep,
            Cow::Borrowed("managedFields") if self.place == Place::Metadata => Fate::Drop,
            Cow::Borrowed(key) => self.drop.map_or(Fate::Keep, |drop| drop.fate(key)),
        }
    }

    /// Skips a member that is to be cut out.
    fn skip<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let Span(value) = map.next_value()?;
        let key_start = self.parts.offset(key.as_bytes()) - 1;
        let value_end = self.parts.offset(value.as_bytes()) + value.len();
        self.parts.cut_member(key_start, value_end);
        Ok(())
    }

    /// Walks into a member that is kept.
    fn enter<A: MapAccess<'de>>(
        &mut self,
        place: Place,
        drop: Option<&DropFields>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        map.next_value_seed(Walk { parts: self.parts, place, drop, types: None })
    }

    /// Takes a member that is kept.
    fn take<A: MapAccess<'de>>(
        &mut self,
        key: Text<'de>,
        inside: Option<&DropFields>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match (self.place, &*key.0) {
            (Place::Object, "metadata") => {
                // Of two metadata the last one counts, as a whole.
                let edits = std::mem::take(&mut self.parts.edits);
                *self.parts = Parts { edits, ..Parts::of(self.parts.wire) };
                self.enter(Place::Metadata, inside, map)
            }
            (Place::Object, name @ ("apiVersion" | "kind")) => {
                let Text(value) = map.next_value()?;
                match self.types.filter(|types| !types.admits(name, &value)) {
                    Some(types) => Err(types.unexpected(name, &value)),
                    None => Ok(()),
                }
            }
            (Place::Metadata, "namespace") => text_into(&mut self.parts.namespace, map),
            (Place::Metadata, "name") => text_into(&mut self.parts.name, map),
            (Place::Metadata, "uid") => text_into(&mut self.parts.uid, map),
            (Place::Metadata, "resourceVersion") => text_into(&mut self.parts.resource_version, map),
            (Place::Metadata, "generation") => {
                self.parts.generation = map.next_value()?;
                Ok(())
            }
            (Place::Metadata, "deletionTimestamp") => {
                self.parts.being_deleted = map.next_value::<Option<IgnoredAny>>()?.is_some();
                Ok(())
            }
            (Place::Metadata, "labels") => {
                self.parts.labels.clear();
                self.enter(Place::Labels, inside, map)
            }
            (Place::Metadata, "ownerReferences") => {
                self.parts.owners.clear();
                self.enter(Place::Owners, inside, map)
            }
            (Place::Labels, _) => {
                let mut value = Part::default();
                text_into(&mut value, map)?;
                self.parts.labels.push((part(key), value));
                Ok(())
            }
            (Place::Owner, key) => self.take_of_owner(key, inside, map),
            (_, _) if inside.is_some() => self.enter(Place::Elsewhere, inside, map),
            (_, _) => map.next_value::<IgnoredAny>().map(drop),
        }
    }

    /// Takes a member of the last owner.
    fn take_of_owner<A: MapAccess<'de>>(
        &mut self,
        key: &str,
        inside: Option<&DropFields>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let Some(owner) = self.parts.owners.last_mut() else { return Ok(()) };
        match key {
            "apiVersion" => text_into(&mut owner.api_version, map),
            "kind" => text_into(&mut owner.kind, map),
            "name" => text_into(&mut owner.name, map),
            "uid" => text_into(&mut owner.uid, map),
            "controller" => {
                owner.controller = map.next_value::<Option<bool>>()?.unwrap_or_default();
                Ok(())
            }
            _ => self.enter(Place::Elsewhere, inside, map),
        }
    }
}

/// A text, or none where it is null.
fn text_into<'de, A: MapAccess<'de>>(into: &mut Part<'de>, map: &mut A) -> Result<(), A::Error> {
    *into = map.next_value::<Option<_>>()?.map(part).unwrap_or_default();
    Ok(())
}

fn part(text: Text<'_>) -> Part<'_> {
    match text.0 {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A value that is neither object nor array (nor null) may stand elsewhere only.
macro_rules! scalar {
    ($($method:ident($type:ty) as $unexpected:expr;)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<(), E> {
            match self.place {
                Place::Elsewhere => Ok(()),
                _ => Err(E::invalid_type($unexpected(value), &self)),
            }
        }
    )*};
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Object => "an object",
            Place::Metadata => "the object's metadata",
            Place::Labels => "labels",
            Place::Owners => "an array of owner references",
            Place::Owner => "an owner reference",
            Place::Elsewhere => "a value",
        })
    }

    scalar! {
        visit_bool(bool) as serde::de::Unexpected::Bool;
        visit_i64(i64) as serde::de::Unexpected::Signed;
        visit_u64(u64) as serde::de::Unexpected::Unsigned;
        visit_f64(f64) as serde::de::Unexpected::Float;
        visit_str(&str) as serde::de::Unexpected::Str;
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        match self.place {
            Place::Object | Place::Owner => Err(E::invalid_type(serde::de::Unexpected::Unit, &self)),
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let place = match self.place {
            Place::Owners => Place::Owner,
            Place::Elsewhere => Place::Elsewhere,
            _ => return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self)),
        };
        loop {
            if place == Place::Owner {
                self.parts.owners.push(Owner::default());
            }
            if seq.next_element_seed(Walk { parts: self.parts, place, drop: self.drop, types: None })?.is_none() {
                if place == Place::Owner {
                    self.parts.owners.pop();
                }
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        if self.place == Place::Owners {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.fate(&key) {
                Fate::Drop => self.skip(&key.0, &mut map)?,
                Fate::Enter(inside) => self.take(key, Some(inside), &mut map)?,
                Fate::Keep => self.take(key, None, &mut map)?,
            }
        }
        Ok(())
    }
}
