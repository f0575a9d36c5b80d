//! One behaviour of the store each.

use std::sync::Arc;

use kubewire_indexer::{IndexError, IndexFunc, Indexers, Store};

type Words = Arc<Vec<&'static str>>;

fn words() -> Indexers<Words> {
    Indexers::none().with("word", IndexFunc::many(|words: &Words| words.to_vec()))
}

#[test]
fn multi_valued_index_is_exact_through_eight_mutations() {
    let store = Store::with_indexers(words()).unwrap();
    // what | key | words | foo | bar | baz
    let rows: [(&str, &[&str], &[&str], &[&str], &[&str]); 8] = [
        ("a", &["foo"], &["a"], &[], &[]),
        ("b", &["bar"], &["a"], &["b"], &[]),
        ("c", &["foo", "bar"], &["a", "c"], &["b", "c"], &[]),
        ("a", &["baz"], &["c"], &["b", "c"], &["a"]),
        ("c", &["bar"], &[], &["b", "c"], &["a"]),
        ("b", &[], &[], &["c"], &["a"]),
        ("a", &["foo", "bar", "baz"], &["a"], &["a", "c"], &["a"]),
        ("a", &["foo", "bar"], &["a"], &["a", "c"], &[]),
    ];
    for (key, words, foo, bar, baz) in rows {
        store.add(key, Arc::new(words.to_vec()));
        for (value, keys) in [("foo", foo), ("bar", bar), ("baz", baz)] {
            assert_eq!(store.index_keys("word", value).unwrap(), keys, "{value} after {key} = {words:?}");
        }
        store.validate().unwrap();
    }
}

#[test]
fn an_unknown_value_is_empty_and_an_unknown_index_is_an_error_but_has_no_values() {
    let store = Store::with_indexers(words()).unwrap();
    store.add("a", Arc::new(vec!["foo"]));
    assert_eq!(store.by_index("word", "nope").unwrap(), Vec::<Words>::new());
    assert_eq!(store.index_keys("nope", "foo").unwrap_err().name.as_ref(), "nope");
    assert!(store.by_index("nope", "foo").is_err());
    assert!(matches!(store.index("nope", &Arc::new(vec![])), Err(IndexError::Unknown(_))));
    assert!(store.list_index_func_values("nope").is_empty());
}

#[test]
fn a_taken_index_name_is_a_conflict_and_nothing_is_added() {
    let store = Store::with_indexers(words()).unwrap();
    store.add("a", Arc::new(vec!["foo"]));
    let both = Indexers::none()
        .with("len", IndexFunc::many(|words: &Words| [words.len().to_string()]))
        .with("word", IndexFunc::many(|words: &Words| words.to_vec()));
    assert_eq!(store.add_indexers(both).unwrap_err().name.as_ref(), "word");
    assert_eq!(store.indexer_names().iter().map(|name| &**name).collect::<Vec<_>>(), ["word"]);
    assert!(store.index_keys("len", "1").is_err());

    let twice = words().with("word", IndexFunc::many(|words: &Words| words.to_vec()));
    assert!(Store::<&str, _>::with_indexers(twice).is_err());
}

#[test]
fn indices_added_to_a_filled_store_answer_at_once() {
    let store = Store::new();
    for n in 0..1000 {
        store.add(n, Arc::new(vec![if n % 2 == 0 { "even" } else { "odd" }]));
    }
    store.add_indexers(words()).unwrap();
    assert_eq!(store.count_by_index("word", "odd"), Ok(500));
    assert_eq!(store.index_keys("word", "even").unwrap()[..3], [0, 2, 4]);
    store.validate().unwrap();
}
