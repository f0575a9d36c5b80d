//! What serde sees of a reader.

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::reader::{Found, JsonError, Reader};
use super::span;
use super::token::Word;

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'"') => match self.string()? {
                Found::Plain(text) => visitor.visit_borrowed_str(text),
                Found::Escaped => visitor.visit_str(self.unescaped()),
            },
            Some(b'{') => {
                self.enter()?;
                let mut members = Members { reader: self, place: Place::First };
                let value = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(value)
            }
            Some(b'[') => {
                let left = self.enter_array()?;
                let mut elements = Elements { reader: self, left, place: Place::First };
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
                    by_serde_json(text, visitor)
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
        if name == span::NAME { visitor.visit_borrowed_str(self.span()?) } else { visitor.visit_newtype_struct(self) }
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
                let mut members = Members { reader: self, place: Place::First };
                let value = visitor.visit_enum(MapAccessDeserializer::new(&mut members))?;
                members.end()?;
                Ok(value)
            }
            _ => match self.string()? {
                Found::Plain(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
                Found::Escaped => Err(self.error("a variant with escapes")),
            },
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// What is rare, and no container.
fn by_serde_json<'de, V: Visitor<'de>>(token: &'de str, visitor: V) -> Result<V::Value, JsonError> {
    serde_json::Deserializer::from_str(token).deserialize_any(visitor).map_err(JsonError::custom)
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
    place: Place,
}

impl Members<'_, '_> {
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
        match self.reader.string()? {
            Found::Plain(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            Found::Escaped => seed.deserialize(StrDeserializer::new(self.reader.unescaped())).map(Some),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        self.reader.take(b':', "a colon")?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The elements of an array.
struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    /// How many are left, where that is known.
    left: Option<usize>,
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
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.left
    }
}
