//! What has changed between two forms of an object. PURE: values in, a patch out.

use json_patch::{Patch, diff};
use serde_json::{Map, Value};

/// The patch that makes of `sent` what a change from `before` to `after` means.
///
/// `sent` is the object as the API server has it, `before` the same as a type wrote it again, and `after` that with changes. The
/// type may not know all fields, and may write some that were not there: neither is a change. So the change is brought over to
/// `sent`, and the patch is the difference that this makes.
///
/// Items of a list that only moved keep the fields that the type does not know: an item is the one before that is equal, else
/// the one of the same `name`, else, where the length is the same, the one at its place.
///
/// Cost: O(size), and for a list whose length has changed O(n·m).
///
/// ```
/// use kubewire_webhook::patch_between;
/// use serde_json::json;
///
/// let sent = json!({ "spec": { "size": 1, "unknown": true } });
/// let before = json!({ "spec": { "size": 1 }, "status": {} });
/// let after = json!({ "spec": { "size": 2 }, "status": {} });
/// let patch = patch_between(&sent, &before, &after);
/// assert_eq!(serde_json::to_value(&patch)?, json!([{ "op": "replace", "path": "/spec/size", "value": 2 }]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn patch_between(sent: &Value, before: &Value, after: &Value) -> Patch {
    diff(sent, &carried_over(sent, before, after))
}

/// What `sent` becomes by the change from `before` to `after`.
fn carried_over(sent: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(object(sent, before, after))
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after)) if sent.len() == before.len() => {
            Value::Array(array(sent, before, after))
        }
        _ => after.clone(),
    }
}

fn object(sent: &Map<String, Value>, before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut result = sent.clone();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        result.remove(key);
    }
    for (key, after) in after {
        match (sent.get(key), before.get(key)) {
            // Written by the type alone, and not changed.
            (None, Some(before)) if before == after => {}
            (Some(sent), Some(before)) => {
                result.insert(key.clone(), carried_over(sent, before, after));
            }
            _ => {
                result.insert(key.clone(), after.clone());
            }
        }
    }
    result
}

/// `sent` and `before` have the same length: they are the same items.
fn array(sent: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let mut is_taken = vec![false; before.len()];
    let mut origins: Vec<Option<usize>> = vec![None; after.len()];
    let same_length = before.len() == after.len();
    // The item at its place first: most lists change in place.
    for (index, item) in after.iter().enumerate() {
        if before.get(index) == Some(item) {
            (origins[index], is_taken[index]) = (Some(index), true);
        }
    }
    let equal = |a: &Value, b: &Value| a == b;
    let same_name = |a: &Value, b: &Value| a.get("name").is_some_and(|name| b.get("name") == Some(name));
    for fits in [&equal as &dyn Fn(&Value, &Value) -> bool, &same_name] {
        for (origin, item) in origins.iter_mut().zip(after).filter(|(origin, _)| origin.is_none()) {
            *origin = (0..before.len()).find(|index| !is_taken[*index] && fits(item, &before[*index]));
            if let Some(index) = *origin {
                is_taken[index] = true;
            }
        }
    }
    let place = |index: usize| (same_length && !is_taken[index]).then_some(index);
    let origins: Vec<Option<usize>> =
        origins.iter().enumerate().map(|(at, origin)| origin.or_else(|| place(at))).collect();
    let of = |(item, origin): (&Value, Option<usize>)| match origin {
        Some(index) => carried_over(&sent[index], &before[index], item),
        None => item.clone(),
    };
    after.iter().zip(origins).map(of).collect()
}

#[cfg(test)]
mod tests {
    use json_patch::patch;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What comes of `sent` by the patch, which must be possible.
    fn result(sent: &Value, before: &Value, after: &Value) -> Value {
        let mut value = sent.clone();
        patch(&mut value, &patch_between(sent, before, after)).unwrap();
        assert_eq!(value, carried_over(sent, before, after));
        value
    }

    #[test]
    fn fields_that_the_type_does_not_know_stay_and_those_it_adds_by_itself_do_not_come() {
        // sent | before | after | result
        let table = [
            (json!({"x": 1}), json!({}), json!({}), json!({"x": 1})),
            (json!({"x": 1}), json!({"d": 0}), json!({"d": 0}), json!({"x": 1})),
            (json!({"x": 1}), json!({"d": 0}), json!({"d": 5}), json!({"x": 1, "d": 5})),
            (json!({"a": 1, "x": 1}), json!({"a": 1}), json!({}), json!({"x": 1})),
            // A parent that only the type has written.
            (json!({}), json!({"labels": {}}), json!({"labels": {"a": "b"}}), json!({"labels": {"a": "b"}})),
            (json!({"a": {"x": 1}}), json!({"a": {}}), json!({"a": {"b": 2}}), json!({"a": {"x": 1, "b": 2}})),
            (json!({"a": null}), json!({}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
        ];
        for (sent, before, after, expected) in table {
            assert_eq!(result(&sent, &before, &after), expected, "{sent} {before} {after}");
        }
    }

    #[test]
    fn items_of_lists_keep_what_the_type_does_not_know_when_they_change_move_or_others_come_and_go() {
        let item = |name: &str, value: i64, unknown: bool| {
            let mut item = json!({"name": name, "v": value});
            if unknown {
                item["x"] = json!(name);
            }
            item
        };
        let sent = json!([item("a", 1, true), item("b", 2, true)]);
        let before = json!([item("a", 1, false), item("b", 2, false)]);
        let table = [
            (json!([item("a", 9, false), item("b", 2, false)]), json!([item("a", 9, true), item("b", 2, true)])),
            (json!([item("b", 2, false), item("a", 1, false)]), json!([item("b", 2, true), item("a", 1, true)])),
            (json!([item("b", 7, false)]), json!([item("b", 7, true)])),
            (
                json!([item("c", 3, false), item("a", 1, false), item("b", 2, false)]),
                json!([item("c", 3, false), item("a", 1, true), item("b", 2, true)]),
            ),
            (json!([]), json!([])),
            // At its place, under a new name.
            (
                json!([item("z", 1, false), item("b", 2, false)]),
                json!([{"name": "z", "v": 1, "x": "a"}, item("b", 2, true)]),
            ),
        ];
        for (after, expected) in table {
            assert_eq!(result(&sent, &before, &after), expected, "{after}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), (0..3_i64).prop_map(Value::from), "[ab~/]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::btree_map("[ab~/x]{1,2}|name", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Where the type knows everything, the object becomes what it was changed to, whatever that is.
        #[test]
        fn a_type_that_knows_all_fields_gets_exactly_what_it_wrote(before in value(), after in value()) {
            prop_assert_eq!(result(&before, &before, &after), after);
        }

        /// Without a change there is no patch, whatever the type does not know or adds.
        #[test]
        fn no_change_is_no_patch(sent in value(), typed in value()) {
            prop_assert!(patch_between(&sent, &typed, &typed).0.is_empty());
        }
    }
}
