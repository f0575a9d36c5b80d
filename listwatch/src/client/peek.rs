//! PURE. Which state of which object an item is, from its bytes, without decoding it.

use std::fmt;

use kubewire_indexer::Id;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};

/// Key, uid and version of an object in JSON. `None` where they are not there, or written with escapes: then it is to be
/// decoded.
///
/// Nothing is read beyond what is asked for. As API servers write built-in objects, these are the first few hundred
/// bytes; what follows is not even checked to be JSON.
pub(crate) fn peek_json(object: &[u8]) -> Option<Id<'_>> {
    let mut found = Found::default();
    // An error says no more than that the reading ended early.
    let _ = ObjectSeed(&mut found).deserialize(&mut serde_json::Deserializer::from_slice(object));
    found.id()
}

/// What was found of a state, in whatever order.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

impl<'a> Found<'a> {
    /// Whether nothing is left to look for.
    pub(crate) fn is_complete(&self) -> bool {
        ![self.namespace, self.name, self.uid, self.resource_version].contains(&"")
    }

    /// The state, where enough was found; the namespace may be missing, for cluster scope.
    pub(crate) fn id(self) -> Option<Id<'a>> {
        let named = ![self.name, self.uid, self.resource_version].contains(&"");
        named.then(|| Id::new(self.namespace, self.name).uid(self.uid).resource_version(self.resource_version))
    }
}

/// The object: what lies behind its metadata is not read.
struct ObjectSeed<'s, 'de>(&'s mut Found<'de>);

/// Its metadata, until all is found.
struct MetadataSeed<'s, 'de>(&'s mut Found<'de>);

/// Ends the reading.
fn enough<E: Error>() -> E {
    E::custom("")
}

macro_rules! seed_of_map {
    ($seed:ident) => {
        impl<'de> DeserializeSeed<'de> for $seed<'_, 'de> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_map(self)
            }
        }
    };
}

seed_of_map!(ObjectSeed);
seed_of_map!(MetadataSeed);

impl<'de> Visitor<'de> for ObjectSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            if key == "metadata" {
                map.next_value_seed(MetadataSeed(self.0))?;
                return Err(enough());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            let part = match key {
                "namespace" => &mut self.0.namespace,
                "name" => &mut self.0.name,
                "uid" => &mut self.0.uid,
                "resourceVersion" => &mut self.0.resource_version,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *part = map.next_value()?;
            if self.0.is_complete() {
                return Err(enough());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_uid_and_version_are_found_in_any_order_whatever_stands_around_them() {
        let id = Id::new("n", "x").uid("u").resource_version("7");
        for object in [
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7" this is no JSON"#,
            r#"{"apiVersion":"v1","spec":{"a":[1,"\""]},"metadata":{"labels":{"uid":"no"},"uid":"u","resourceVersion":"7",
                "managedFields":[{"name":"no"}],"namespace":"n","name":"x"},"status":null}"#,
        ] {
            assert_eq!(peek_json(object.as_bytes()), Some(id), "{object}");
        }
        let of_cluster = r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7","labels":{"a":"b"}}}"#;
        let id = Id::new("", "x").uid("u").resource_version("7");
        assert_eq!(peek_json(of_cluster.as_bytes()), Some(id));
    }

    #[test]
    fn what_does_not_say_its_state_plainly_is_left_to_the_decoder() {
        for object in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"metadata":null}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u"}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","resourceVersion":"7"}}"#,
            r#"{"metadata":{"namespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"\u0078","namespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":7,"resourceVersion":"7"}}"#,
            r#"{"spec":{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"}}}"#,
        ] {
            assert_eq!(peek_json(object.as_bytes()), None, "{object}");
        }
    }
}
