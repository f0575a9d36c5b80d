//! The annotations of an object's JSON text, borrowed where they stand without escapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::client::text::Text;

/// What is read of an object.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Annotated<'a> {
    #[serde(borrow)]
    pub(super) metadata: Metadata<'a>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) annotations: Pairs<'a>,
}

#[derive(Default)]
pub(super) struct Pairs<'a>(pub(super) Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;

        impl<'de> Visitor<'de> for Map {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_unit<E>(self) -> Result<Pairs<'de>, E> {
                Ok(Pairs::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some((Text(name), value)) = map.next_entry::<_, Option<Text<'de>>>()? {
                    pairs.push((name, value.unwrap_or_default().0));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_any(Map)
    }
}
