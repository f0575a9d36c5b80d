//! The key of a member as serde sees it: a text, of which numbers and booleans are made where they are wanted.

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::JsonError;

#[derive(Clone, Copy)]
pub(super) enum Key<'r, 'de> {
    Plain(&'de str),
    /// It held escapes.
    Unescaped(&'r str),
}

impl Key<'_, '_> {
    fn text(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Unescaped(text) => text,
        }
    }
}

/// What a key says, where it says such a thing.
macro_rules! parsed {
    ($($method:ident: $type:ty, $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            match self.text().parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = JsonError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self {
            Self::Plain(text) => visitor.visit_borrowed_str(text),
            Self::Unescaped(text) => visitor.visit_str(text),
        }
    }

    parsed! {
        deserialize_bool: bool, visit_bool;
        deserialize_i8: i8, visit_i8;
        deserialize_i16: i16, visit_i16;
        deserialize_i32: i32, visit_i32;
        deserialize_i64: i64, visit_i64;
        deserialize_i128: i128, visit_i128;
        deserialize_u8: u8, visit_u8;
        deserialize_u16: u16, visit_u16;
        deserialize_u32: u32, visit_u32;
        deserialize_u64: u64, visit_u64;
        deserialize_u128: u128, visit_u128;
        deserialize_f32: f32, visit_f32;
        deserialize_f64: f64, visit_f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self {
            Self::Plain(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Self::Unescaped(text) => visitor.visit_enum(StrDeserializer::new(text)),
        }
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
