use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMIT: usize = 1 << 20;

/// What a body splits into when it comes in chunks of these lengths (the last one repeated).
fn split(body: &[u8], chunks: &[usize], limit: usize) -> (Vec<String>, Result<String, ListError>) {
    let mut splitter = ListSplitter::new(limit);
    let mut items = Vec::new();
    let mut rest = body;
    let mut lens = chunks.iter().copied().chain(std::iter::repeat(*chunks.last().unwrap_or(&usize::MAX)));
    while !rest.is_empty() {
        let len = lens.next().unwrap_or(usize::MAX).clamp(1, rest.len());
        splitter.push(Bytes::copy_from_slice(&rest[..len]));
        rest = &rest[len..];
        loop {
            match splitter.next_item() {
                Ok(Some(item)) => items.push(String::from_utf8_lossy(item).into_owned()),
                Ok(None) => break,
                Err(error) => return (items, Err(error)),
            }
        }
    }
    let head = splitter.finish().map(|head| String::from_utf8_lossy(&head).into_owned());
    (items, head)
}

fn whole(body: &str) -> (Vec<String>, Result<String, ListError>) {
    split(body.as_bytes(), &[], LIMIT)
}

#[test]
fn items_come_out_whatever_the_order_of_the_members() {
    let table = [
        (
            r#"{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"a":1},{"b":[2]}]}"#,
            vec![r#"{"a":1}"#, r#"{"b":[2]}"#],
        ),
        (r#"{"items":[{"a":1}, {"b":[2]} ],"metadata":{"resourceVersion":"1"}}"#, vec![r#"{"a":1}"#, r#"{"b":[2]}"#]),
        (r#" { "items" : [ ] , "kind" : "x" } "#, vec![]),
        (r#"{"items":null}"#, vec![]),
        (r#"{"\u0069tems":[{}]}"#, vec!["{}"]),
        ("{}", vec![]),
        (r#"{"metadata":{"items":[1]},"other":[{}]}"#, vec![]),
        (r#"{"items":[null,1,"x",true]}"#, vec!["null", "1", "\"x\"", "true"]),
    ];
    for (body, expected) in table {
        let (items, head) = whole(body);
        assert_eq!(items, expected, "{body}");
        let mut list: Value = serde_json::from_str(body).unwrap();
        if list["items"].is_array() {
            list["items"] = json!([]);
        }
        assert_eq!(serde_json::from_str::<Value>(&head.unwrap()).unwrap(), list, "{body}");
    }
}

#[test]
fn what_is_no_list_is_an_error() {
    let table: &[(&str, &str)] = &[
        ("<html>", "byte 0 is '<'"),
        ("no", "byte 0 is 'n'"),
        ("[]", "byte 0 is '['"),
        (r#"{"items":[{}]}x"#, "byte 14 is 'x', where nothing more was expected"),
        (r#"{"items":[{}]}{"#, "nothing more"),
        (r#"{"items":[,{}]}"#, "an item"),
        (r#"{"items":[{},]}"#, "an item"),
        (r#"{"items":[{}{}]}"#, "a comma or the end of the items"),
        (r#"{"items":[{}}"#, "a comma or the end of the items"),
        (r#"{"items"[]}"#, "a colon"),
        (r#"{"items":}"#, "a value"),
        (r#"{"a":1,}"#, "a key"),
        (r#"{a:1}"#, "a key"),
        (r#"{"items":[],"items":[]}"#, "twice"),
        (r#"{"kind":"Table","rows":[]}"#, "Table"),
    ];
    for (body, message) in table {
        let error = whole(body).1.unwrap_err().to_string();
        assert!(error.contains(message), "{body}: {error}");
    }
}

#[test]
fn an_end_at_any_byte_but_the_last_is_noticed() {
    let body =
        r#" {"kind":"PodList","items":[{"a":"}]\"é"}, {"b":{"c":[1,2,{}]}}],"metadata":{"resourceVersion":"7"}}"#;
    for end in 0..body.len() {
        let (_, head) = split(&body.as_bytes()[..end], &[3], LIMIT);
        assert_eq!(head, Err(ListError::Truncated), "{:?}", String::from_utf8_lossy(&body.as_bytes()[..end]));
    }
    assert!(whole(body).1.is_ok());
}

#[test]
fn an_item_over_the_limit_is_refused_in_one_chunk_and_in_many() {
    let body = format!(r#"{{"items":[{{}},"{}"]}}"#, "x".repeat(98));
    for chunks in [vec![], vec![1], vec![64]] {
        assert!(split(body.as_bytes(), &chunks, 100).1.is_ok());
        let (items, head) = split(body.as_bytes(), &chunks, 99);
        assert_eq!((items.len(), head), (1, Err(ListError::ItemTooLong { limit: 99 })));
    }
}

#[test]
fn an_endless_member_beside_the_items_is_refused() {
    let body = format!(r#"{{"a":"{}"}}"#, "x".repeat(HEAD_LEN_MAX));
    assert_eq!(split(body.as_bytes(), &[4096], LIMIT).1, Err(ListError::HeadTooLong));
}

#[test]
fn deep_nesting_does_not_recurse() {
    let deep = "[".repeat(500_000);
    let body = format!(r#"{{"items":[{deep}"#);
    assert_eq!(split(body.as_bytes(), &[65_536], LIMIT).1, Err(ListError::Truncated));
}

#[test]
fn at_most_one_item_is_held_beside_the_chunk() {
    let item = format!(r#"{{"a":"{}"}}"#, "x".repeat(10_000));
    let body = format!(r#"{{"items":[{}]}}"#, vec![item.as_str(); 50].join(","));
    let mut splitter = ListSplitter::new(LIMIT);
    let mut items = 0;
    for chunk in body.as_bytes().chunks(1_000) {
        splitter.push(Bytes::copy_from_slice(chunk));
        while splitter.next_item().unwrap().is_some() {
            items += 1;
        }
        assert!(splitter.held() < 2 * item.len() + 1_000, "{}", splitter.held());
    }
    assert_eq!(items, 50);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\\\\\"{}\\[\\],: é\u{1f600}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z\"\\\\]{1,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_list_splits_into_its_items_in_any_chunks(
        items in proptest::collection::vec(json_value(), 0..6),
        metadata in json_value(),
        first in any::<bool>(),
        pretty in any::<bool>(),
        chunks in proptest::collection::vec(1usize..40, 1..8),
    ) {
        let print = |value: &Value| if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let (all, meta) = (print(&json!(items)).unwrap(), print(&metadata).unwrap());
        let body = if first {
            format!(r#"{{"metadata":{meta},"items":{all}}}"#)
        } else {
            format!(r#"{{"items":{all},"metadata":{meta}}}"#)
        };
        let (found, head) = split(body.as_bytes(), &chunks, LIMIT);
        let found: Vec<Value> = found.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        prop_assert_eq!(found, items);
        let head: Value = serde_json::from_str(&head.unwrap()).unwrap();
        prop_assert_eq!(head, json!({"metadata": metadata, "items": []}));
    }

    #[test]
    fn hostile_bytes_never_panic_and_never_depend_on_the_chunks(
        body in proptest::collection::vec(proptest::sample::select(br#"{}[]",:\ ai1tems"#.to_vec()), 0..80),
        chunks in proptest::collection::vec(1usize..9, 1..6),
    ) {
        let mut list = br#"{"items":["#.to_vec();
        list.extend_from_slice(&body);
        for body in [&body, &list] {
            prop_assert_eq!(split(body, &chunks, 40), split(body, &[], 40));
        }
    }
}
