//! The text of a value, as it stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The name under which a reader is asked for it.
pub(super) const NAME: &str = "$kubewire::Span";

/// Where a value stands: its text, of which nothing but brackets and quotes was looked at. Of a
/// [`Reader`](super::Reader) only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'de>(pub(crate) &'de str);

impl<'de> Deserialize<'de> for Span<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpanVisitor;

        impl<'de> Visitor<'de> for SpanVisitor {
            type Value = Span<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Span(text))
            }
        }

        deserializer.deserialize_newtype_struct(NAME, SpanVisitor)
    }
}
