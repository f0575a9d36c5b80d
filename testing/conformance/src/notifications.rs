//! Comparing what handlers were told, where part of the order is open.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// An entry among the notifications of a step: one of them, or several whose order is open.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Told<N> {
    /// Several in any order.
    AnyOrder {
        /// The several.
        any_order: Vec<N>,
        /// When, in steps in which time passes.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_ns: Option<u64>,
    },
    /// Lists that may be merged in any way, each of them in exact order.
    Interleaved {
        /// The lists, one for each key.
        interleaved: Vec<Vec<N>>,
        /// When, in steps in which time passes.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_ns: Option<u64>,
    },
    /// One.
    One {
        /// The notification.
        #[serde(flatten)]
        one: N,
        /// When, in steps in which time passes.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_ns: Option<u64>,
    },
}

impl<'de, N: DeserializeOwned> Deserialize<'de> for Told<N> {
    /// By hand: the forms tell themselves apart by a field, and what is left over must be known to `N`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn take<T: DeserializeOwned, E: Error>(fields: &mut Map<String, Value>, name: &str) -> Result<Option<T>, E> {
            fields.remove(name).map(serde_json::from_value).transpose().map_err(E::custom)
        }
        let mut fields = Map::deserialize(deserializer)?;
        let at_ns = take(&mut fields, "at_ns")?;
        let told = if let Some(any_order) = take(&mut fields, "any_order")? {
            Self::AnyOrder { any_order, at_ns }
        } else if let Some(interleaved) = take(&mut fields, "interleaved")? {
            Self::Interleaved { interleaved, at_ns }
        } else {
            let one = serde_json::from_value(Value::Object(std::mem::take(&mut fields))).map_err(Error::custom)?;
            Self::One { one, at_ns }
        };
        match fields.keys().next() {
            Some(name) => Err(Error::custom(format!("unknown field `{name}` beside notifications in an open order"))),
            None => Ok(told),
        }
    }
}

/// Whether `got` is one of the orders that `expected` leaves open. In `got` there are single ones only.
pub fn matches_told<N: PartialEq>(expected: &[Told<N>], got: &[Told<N>]) -> bool {
    let mut rest = got;
    for entry in expected {
        let (len, at) = match entry {
            Told::AnyOrder { any_order, at_ns } => (any_order.len(), at_ns),
            Told::Interleaved { interleaved, at_ns } => (interleaved.iter().map(Vec::len).sum(), at_ns),
            Told::One { at_ns, .. } => (1, at_ns),
        };
        let Some((these, others)) = rest.split_at_checked(len) else { return false };
        rest = others;
        let mut ones = Vec::with_capacity(len);
        for told in these {
            match told {
                Told::One { one, at_ns } if at_ns == at => ones.push(one),
                _ => return false,
            }
        }
        let agree = match entry {
            Told::One { one, .. } => ones == [one],
            Told::AnyOrder { any_order, .. } => same_set(any_order, ones),
            Told::Interleaved { interleaved, .. } => is_merge(interleaved, &ones),
        };
        if !agree {
            return false;
        }
    }
    rest.is_empty()
}

fn same_set<N: PartialEq>(expected: &[N], mut got: Vec<&N>) -> bool {
    expected.iter().all(|one| match got.iter().position(|other| *other == one) {
        Some(at) => {
            got.swap_remove(at);
            true
        }
        None => false,
    }) && got.is_empty()
}

/// Whether `got` is a merge of the lists. The lists tell of different keys, so no notification is in two of
/// them, and the first list that can take one is the right one.
fn is_merge<N: PartialEq>(lists: &[Vec<N>], got: &[&N]) -> bool {
    let mut rests: Vec<&[N]> = lists.iter().map(Vec::as_slice).collect();
    got.iter().all(|one| match rests.iter_mut().find(|rest| rest.first() == Some(*one)) {
        Some(rest) => {
            *rest = &rest[1..];
            true
        }
        None => false,
    }) && rests.iter().all(|rest| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Note {
        n: u32,
    }

    fn read(json: &str) -> Vec<Told<Note>> {
        serde_json::from_str(json).expect("well-formed")
    }

    #[test]
    fn an_open_order_is_open_and_a_closed_one_is_not() {
        // expected | got | match
        #[rustfmt::skip]
        let table = [
            (r#"[]"#,                                       r#"[]"#,                              true),
            (r#"[{"n":1},{"n":2}]"#,                        r#"[{"n":1},{"n":2}]"#,               true),
            (r#"[{"n":1},{"n":2}]"#,                        r#"[{"n":2},{"n":1}]"#,               false),
            (r#"[{"n":1}]"#,                                r#"[{"n":1},{"n":1}]"#,               false),
            (r#"[{"n":1},{"n":1}]"#,                        r#"[{"n":1}]"#,                       false),
            (r#"[{"any_order":[{"n":1},{"n":2}]},{"n":3}]"#, r#"[{"n":2},{"n":1},{"n":3}]"#,      true),
            (r#"[{"any_order":[{"n":1},{"n":2}]},{"n":3}]"#, r#"[{"n":3},{"n":1},{"n":2}]"#,      false),
            (r#"[{"any_order":[{"n":1},{"n":1}]}]"#,        r#"[{"n":1},{"n":2}]"#,               false),
            (r#"[{"any_order":[{"n":1}],"at_ns":5}]"#,      r#"[{"n":1,"at_ns":5}]"#,             true),
            (r#"[{"any_order":[{"n":1}],"at_ns":5}]"#,      r#"[{"n":1,"at_ns":6}]"#,             false),
            (r#"[{"n":1,"at_ns":5}]"#,                      r#"[{"n":1}]"#,                       false),
            (r#"[{"n":1}]"#,                                r#"[{"n":1,"at_ns":5}]"#,             false),
            (r#"[{"interleaved":[[{"n":1},{"n":2}],[{"n":3}]]}]"#, r#"[{"n":1},{"n":3},{"n":2}]"#, true),
            (r#"[{"interleaved":[[{"n":1},{"n":2}],[{"n":3}]]}]"#, r#"[{"n":3},{"n":1},{"n":2}]"#, true),
            (r#"[{"interleaved":[[{"n":1},{"n":2}],[{"n":3}]]}]"#, r#"[{"n":2},{"n":1},{"n":3}]"#, false),
            (r#"[{"interleaved":[[{"n":1},{"n":2}],[{"n":3}]]}]"#, r#"[{"n":1},{"n":2}]"#,         false),
        ];
        for (expected, got, matches) in table {
            assert_eq!(matches_told(&read(expected), &read(got)), matches, "{expected} against {got}");
        }
    }

    #[test]
    fn a_field_that_nobody_knows_is_refused() {
        assert!(serde_json::from_str::<Told<Note>>(r#"{"n":1,"colour":"red"}"#).is_err());
        assert!(serde_json::from_str::<Told<Note>>(r#"{"any_order":[],"colour":"red"}"#).is_err());
    }
}
