//! The list splitter: the same whatever the chunks, and what serde reads where serde reads a list.

use kubewire_listwatch::fuzzing::{list_head, split_list};
use serde_json::Value;

use crate::pieces;

const LIMIT: usize = 1 << 20;

/// Where the text is cut (see [`pieces`]), and the body of a list.
pub type Input<'a> = (Vec<u8>, &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (cuts, text) = input;
    let whole = split_list(&[text], LIMIT);
    assert_eq!(split_list(&pieces(text, &cuts), LIMIT), whole, "in pieces");
    let (items, head) = whole;
    if let Ok(head) = &head {
        let _ = list_head(head);
    }
    // A small limit refuses, and never lets through something else.
    let (few, limited) = split_list(&pieces(text, &cuts), 8);
    assert!(items.starts_with(&few));
    assert!(few.iter().all(|item| item.len() <= 8));
    if limited.is_ok() {
        assert_eq!((few, limited), (items.clone(), head.clone()));
    }
    if let Ok(Value::Object(list)) = serde_json::from_slice::<Value>(text) {
        compare(list, &items, &head);
    }
}

/// What is JSON to serde is split into the same items, or refused for a reason that serde does not know.
fn compare(list: serde_json::Map<String, Value>, items: &[Vec<u8>], head: &Result<Vec<u8>, String>) {
    let head = match head {
        Ok(head) => head,
        Err(error) => {
            assert!(["twice", "Table", "bytes"].iter().any(|reason| error.contains(reason)), "{error}");
            return;
        }
    };
    let read: Vec<Value> = items.iter().map(|item| serde_json::from_slice(item).expect("an item is JSON")).collect();
    let mut head: Value = serde_json::from_slice(head).expect("the head is JSON");
    // Of an array and something else under one name serde keeps the later, the splitter hands out the array.
    if let Some(Value::Array(array)) = list.get("items") {
        assert_eq!(&read, array);
    }
    if let Some(items) = head.get_mut("items").filter(|items| items.is_array()) {
        *items = Value::Array(read);
    }
    assert_eq!(head, Value::Object(list));
}
