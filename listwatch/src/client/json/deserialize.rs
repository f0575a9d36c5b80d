//! What serde sees of a reader.

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::JsonError;
use super::key::Key;
use super::reader::{Found, Reader};
use super::span;
use super::token::Word;

/// What serde_json's own types ask for, as which they are read by itself: `RawValue`.
const OF_SERDE_JSON: &str = "$serde_json::";

/// A whole number that may be longer than 64 bits.
macro_rules! wide {
    ($($method:ident: $type:ty, $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            match self.wide_number().map(str::parse::<$type>) {
                Some(Ok(number)) => visitor.$visit(number),
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'"') => match self.string()? {
                Found::Plain(text) => visitor.visit_borrowed_str(text),
                Found::Escaped(_) => visitor.visit_str(self.unescaped()),
            },
            Some(b'{') => {
                self.enter()?;
                let mut members = Members::of(self);
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
            }
            Some(b'[') => {
                let left = self.enter_array()?;
                let mut elements = Elements { reader: self, left, taken: 0, place: Place::First };
                let value = visitor.visit_seq(&mut elements)?;
                elements.end()?;
                Ok(value)
            }
            Some(b'-' | b'0'..=b'9') => {
                let (text, is_whole) = self.number()?;
                if is_whole && let Ok(number) = text.parse::<u64>() {
                    visitor.visit_u64(number)
                } else if is_whole
                    && text != "-0"
                    && let Ok(number) = text.parse::<i64>()
                {
                    visitor.visit_i64(number)
                } else {
                    match text.parse::<f64>() {
                        Ok(number) if number.is_finite() => visitor.visit_f64(number),
                        _ => Err(self.error("number out of range")),
                    }
                }
            }
            _ => match self.word()? {
                Word::Null => visitor.visit_unit(),
                Word::True => visitor.visit_bool(true),
                Word::False => visitor.visit_bool(false),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'n') => {
                self.word()?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        if name == span::NAME {
            return visitor.visit_borrowed_str(self.span()?);
        }
        if !name.starts_with(OF_SERDE_JSON) {
            return visitor.visit_newtype_struct(self);
        }
        let mut inner = serde_json::Deserializer::from_str(self.span()?);
        inner.deserialize_newtype_struct(name, visitor).map_err(|error| self.error(&error.to_string()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'{') => {
                self.enter()?;
                let mut members = Members::of(self);
                let value = visitor.visit_enum(MapAccessDeserializer::new(&mut members))?;
                members.end()?;
                Ok(value)
            }
            _ => match self.string()? {
                Found::Plain(text) => Key::Plain(text).deserialize_enum("", &[], visitor),
                Found::Escaped(_) => Key::Unescaped(self.unescaped()).deserialize_enum("", &[], visitor),
            },
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.skip()?;
        visitor.visit_unit()
    }

    wide! {
        deserialize_i128: i128, visit_i128;
        deserialize_u128: u128, visit_u128;
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct
        map struct identifier
    }
}

/// Where in a container a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Next,
    Ended,
}

impl Place {
    /// Goes to the next member or element; false at the end.
    #[inline]
    fn goes_on(&mut self, reader: &mut Reader<'_>, end: u8) -> Result<bool, JsonError> {
        if *self == Self::Ended {
            return Ok(false);
        }
        let goes_on = reader.goes_on(*self == Self::First, end)?;
        *self = if goes_on { Self::Next } else { Self::Ended };
        Ok(goes_on)
    }
}

/// The members of an object.
struct Members<'r, 'de> {
    reader: &'r mut Reader<'de>,
    /// The last key, as it stands.
    key: &'de str,
    place: Place,
}

impl<'r, 'de> Members<'r, 'de> {
    fn of(reader: &'r mut Reader<'de>) -> Self {
        Self { reader, key: "", place: Place::First }
    }

    /// Leaves the object, whose end is here.
    fn end(mut self) -> Result<(), JsonError> {
        if self.place.goes_on(self.reader, b'}')? {
            return Err(self.reader.error("a member too many"));
        }
        self.reader.leave();
        Ok(())
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = JsonError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        if !self.place.goes_on(self.reader, b'}')? {
            return Ok(None);
        }
        let key = match self.reader.string()? {
            Found::Plain(key) => {
                self.key = key;
                Key::Plain(key)
            }
            Found::Escaped(key) => {
                self.key = key;
                Key::Unescaped(self.reader.unescaped())
            }
        };
        seed.deserialize(key).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        self.reader.take(b':', "a colon")?;
        seed.deserialize(&mut *self.reader).map_err(|error| error.in_member(self.key, self.reader.at()))
    }
}

/// The elements of an array.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    /// How many are left, where that is known.
    left: Option<usize>,
    /// How many were begun.
    taken: usize,
    place: Place,
}

impl Elements<'_, '_> {
    /// Leaves the array, whose end is here.
    fn end(mut self) -> Result<(), JsonError> {
        if self.place.goes_on(self.reader, b']')? {
            return Err(self.reader.error("an element too many"));
        }
        self.reader.leave_array();
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = JsonError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        if !self.place.goes_on(self.reader, b']')? {
            return Ok(None);
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.taken += 1;
        let element = seed.deserialize(&mut *self.reader);
        element.map(Some).map_err(|error| error.in_element(self.taken - 1, self.reader.at()))
    }

    fn size_hint(&self) -> Option<usize> {
        self.left
    }
}
