//! The state of an item without decoding it: what serde_json reads, or nothing.

use std::fmt;

use kubewire_listwatch::fuzzing::state;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Where the text is cut off, and an item of a list.
pub type Input<'a> = (u16, &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (cut, item) = input;
    let whole = state(item);
    if serde_json::from_slice::<&RawValue>(item).is_ok() {
        assert_eq!(whole, by_serde_json(item));
    }
    let part = state(&item[..item.len().min(cut.into())]);
    assert!(part.is_none() || part == whole, "{part:?} where it is cut off");
}

/// The state of an item that is JSON: of the first `metadata`, read member by member until all four are there.
fn by_serde_json(item: &[u8]) -> Option<[&str; 4]> {
    let Members(members) = serde_json::from_slice(item).ok()?;
    let metadata = members.into_iter().find(|(key, _)| matches!(key, Key::Escaped | Key::Plain("metadata")))?;
    let (Key::Plain(_), metadata) = metadata else { return None };
    let Members(members) = serde_json::from_str(metadata.get()).ok()?;
    let mut found = [""; 4];
    for (key, value) in members {
        let Key::Plain(key) = key else { return None };
        if let Some(part) = ["namespace", "name", "uid", "resourceVersion"].iter().position(|part| *part == key) {
            // A text with escapes cannot be borrowed.
            found[part] = serde_json::from_str(value.get()).ok()?;
        }
        if !found.contains(&"") {
            break;
        }
    }
    (!found[1..].contains(&"")).then_some(found)
}

/// The members of an object, in order, each as often as it stands there.
struct Members<'a>(Vec<(Key<'a>, &'a RawValue)>);

enum Key<'a> {
    Plain(&'a str),
    Escaped,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key::Plain(key))
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Key::Escaped)
            }
        }

        deserializer.deserialize_str(Text)
    }
}
