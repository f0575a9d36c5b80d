//! Reading keys, ids and labels from JSON and the like; writing keys.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use ::serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use ::serde::ser::{Serialize, Serializer};

use crate::{DetailedId, Id, LabeledId, Labels, ObjectId, ObjectKey, Owner};

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer)?.0.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts: Parts<'de, IgnoredAny> = deserializer.deserialize_any(OrNull(PhantomData))?;
        Ok(parts.id())
    }
}

impl<'de> Deserialize<'de> for LabeledId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts: Parts<'de, Labels> = deserializer.deserialize_any(OrNull(PhantomData))?;
        Ok(Self { id: parts.id(), labels: parts.labels })
    }
}

impl<'de> Deserialize<'de> for DetailedId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrNull(PhantomData))
    }
}

impl<'de> FromMap<'de> for DetailedId {
    const WHAT: &'static str = "the metadata of an object";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut parts, mut details) = (Parts::<IgnoredAny>::default(), Self::default());
        while let Some(Text(field)) = map.next_key()? {
            match &*field {
                "labels" => details.labels = map.next_value()?,
                "annotations" => details.annotations = map.next_value()?,
                "generation" => details.generation = map.next_value()?,
                "deletionTimestamp" => details.being_deleted = map.next_value::<Option<IgnoredAny>>()?.is_some(),
                "ownerReferences" => {
                    details.owners = map.next_value::<Option<Vec<Owner>>>()?.unwrap_or_default().into_boxed_slice();
                }
                field => parts.take(field, &mut map)?,
            }
        }
        details.id = parts.id();
        Ok(details)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrNull(PhantomData))
    }
}

/// The parts of a `metadata` that an id is made of, borrowed from the text where that can be.
#[derive(Default)]
struct Parts<'de, L> {
    namespace: Cow<'de, str>,
    name: Cow<'de, str>,
    uid: Cow<'de, str>,
    resource_version: Cow<'de, str>,
    labels: L,
}

impl<'de, L> Parts<'de, L> {
    /// Takes a field that belongs to the id, passes over any other.
    fn take<A: MapAccess<'de>>(&mut self, field: &str, map: &mut A) -> Result<(), A::Error> {
        match field {
            "namespace" => self.namespace = map.next_value::<Text<'de>>()?.0,
            "name" => self.name = map.next_value::<Text<'de>>()?.0,
            "uid" => self.uid = map.next_value::<Text<'de>>()?.0,
            "resourceVersion" => self.resource_version = map.next_value::<Text<'de>>()?.0,
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }

    fn id(&self) -> ObjectId {
        ObjectId::new(Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.resource_version))
    }
}

/// What can be read from a JSON object, and is empty where there is `null`.
trait FromMap<'de>: Default {
    const WHAT: &'static str;

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de, L: Default + Deserialize<'de>> FromMap<'de> for Parts<'de, L> {
    const WHAT: &'static str = "the metadata of an object";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut parts = Self::default();
        while let Some(Text(field)) = map.next_key()? {
            match &*field {
                "labels" => parts.labels = map.next_value()?,
                field => parts.take(field, &mut map)?,
            }
        }
        Ok(parts)
    }
}

impl<'de> FromMap<'de> for Labels {
    const WHAT: &'static str = "labels";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut labels = Vec::new();
        while let Some(Text(name)) = map.next_key()? {
            labels.push((name, map.next_value::<Text<'de>>()?.0));
        }
        Ok(labels.into_iter().collect())
    }
}

struct OrNull<T>(PhantomData<T>);

impl<'de, T: FromMap<'de>> Visitor<'de> for OrNull<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A text, borrowed where it stands without escapes; `null` is the empty text.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed("")))
    }

    fn visit_none<E: de::Error>(self) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed("")))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metadata, OwnerReference};

    fn id(json: &str) -> Result<ObjectId, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn an_id_is_read_from_any_metadata() {
        let full = r#"{"name":"web","namespace":"a\u0062","uid":"u-1","resourceVersion":"12","labels":{"a":"b"},
            "managedFields":[{"x":[1,{}]}],"generation":3}"#;
        // metadata | namespace | name | uid | version
        let rows = [
            (full, "ab", "web", "u-1", "12"),
            (r#"{"name":"n"}"#, "", "n", "", ""),
            (r#"{"name":"n","namespace":null,"uid":null,"resourceVersion":null}"#, "", "n", "", ""),
            (r#"{"name":"n","name":"m"}"#, "", "m", "", ""),
            ("{}", "", "", "", ""),
            ("null", "", "", "", ""),
        ];
        for (json, namespace, name, uid, version) in rows {
            let read = id(json).unwrap();
            assert_eq!(read.id(), Id::new(namespace, name).uid(uid).resource_version(version), "{json}");
        }
        for wrong in [r#"{"name":7}"#, "[]", "7", r#"{"name":{}}"#] {
            assert!(id(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_are_read_with_the_id_that_wants_them() {
        let read: LabeledId = serde_json::from_str(r#"{"name":"n","labels":{"b":"1","a":"2","b":"3"}}"#).unwrap();
        assert_eq!(read.labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        let none: LabeledId = serde_json::from_str(r#"{"name":"n","labels":null}"#).unwrap();
        assert!(none.labels.is_empty());
    }

    #[test]
    fn what_a_controller_asks_is_read_with_the_id_that_wants_it() {
        let read: DetailedId = serde_json::from_str(
            r#"{"name":"n","namespace":"a","generation":4,"deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"l":"1"},
            "annotations":{"x":"a\"b"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",
            "name":"web","uid":"u","controller":true,"blockOwnerDeletion":true},{"apiVersion":"v1","kind":"Node","name":"m"}]}"#,
        )
        .unwrap();
        assert_eq!(read.id.key().to_string(), "a/n");
        assert_eq!((read.generation(), read.is_being_deleted()), (Some(4), true));
        assert_eq!(read.all_labels(), [("l", "1")]);
        assert_eq!(read.all_annotations(), [("x".into(), "a\"b".into())]);
        let owners = [
            OwnerReference::new("apps/v1", "ReplicaSet", "web").uid("u").controller(true),
            OwnerReference::new("v1", "Node", "m"),
        ];
        assert_eq!(read.owners(), owners);
        let bare: DetailedId =
            serde_json::from_str(r#"{"name":"n","generation":null,"deletionTimestamp":null,"ownerReferences":null}"#)
                .unwrap();
        assert_eq!(bare, DetailedId { id: bare.id.clone(), ..DetailedId::default() });
    }

    #[test]
    fn a_key_is_written_and_read_as_text() {
        let key = ObjectKey::new("default", "web");
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json, r#""default/web""#);
        assert_eq!(serde_json::from_str::<ObjectKey>(&json).unwrap(), key);
        let error = serde_json::from_str::<ObjectKey>(r#""a/b/c""#).unwrap_err();
        assert!(error.to_string().contains("unexpected key format"), "{error}");
    }
}
