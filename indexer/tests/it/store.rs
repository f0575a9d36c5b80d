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
    type Row = (&'static str, [&'static [&'static str]; 4]);
    let rows: [Row; 8] = [
        ("a", [&["foo"], &["a"], &[], &[]]),
        ("b", [&["bar"], &["a"], &["b"], &[]]),
        ("c", [&["foo", "bar"], &["a", "c"], &["b", "c"], &[]]),
        ("a", [&["baz"], &["c"], &["b", "c"], &["a"]]),
        ("c", [&["bar"], &[], &["b", "c"], &["a"]]),
        ("b", [&[], &[], &["c"], &["a"]]),
        ("a", [&["foo", "bar", "baz"], &["a"], &["a", "c"], &["a"]]),
        ("a", [&["foo", "bar"], &["a"], &["a", "c"], &[]]),
    ];
    for (key, [words, foo, bar, baz]) in rows {
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

#[test]
fn an_index_follows_an_updated_copy_and_a_delete() {
    let store = Store::with_indexers(words()).unwrap();
    store.add("a", Arc::new(vec!["foo"]));
    store.add("b", Arc::new(vec!["foo"]));
    let mut copy = (*store.get(&"a").unwrap()).clone();
    copy[0] = "bar";
    assert_eq!(store.count_by_index("word", "foo"), Ok(2), "a copy that is not stored changes nothing");
    store.update("a", Arc::new(copy));
    assert_eq!(store.index_keys("word", "foo").unwrap(), ["b"]);
    assert_eq!(store.delete(&"b").as_deref(), Some(&vec!["foo"]));
    assert_eq!(store.by_index("word", "foo").unwrap(), Vec::<Words>::new());
    assert_eq!(store.list_index_func_values("word").iter().map(|v| &**v).collect::<Vec<_>>(), ["bar"]);
}

#[test]
fn index_by_example_is_the_union_of_its_values_without_repeats() {
    let store = Store::with_indexers(words()).unwrap();
    store.add("a", Arc::new(vec!["foo", "bar"]));
    store.add("b", Arc::new(vec!["bar"]));
    store.add("c", Arc::new(vec!["baz"]));
    let mut found = store.index("word", &Arc::new(vec!["foo", "bar", "bar", "qux"])).unwrap();
    found.sort();
    assert_eq!(found, [Arc::new(vec!["bar"]), Arc::new(vec!["foo", "bar"])]);
}

#[test]
fn an_index_function_is_a_key_function_where_it_gives_exactly_one_value() {
    let function = IndexFunc::many(|words: &Words| words.to_vec());
    assert_eq!(function.key(&Arc::new(vec!["one"])).unwrap(), "one");
    for (words, says) in [(vec![], "gives 0 values"), (vec!["a", "b"], "gives 2 values")] {
        let error = function.key(&Arc::new(words)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let failing = IndexFunc::try_many(|_: &Words| Err::<Vec<String>, _>("no"));
    assert!(failing.key(&Arc::new(vec![])).is_err());
}

#[test]
fn a_store_can_be_cleared_and_filled_again() {
    let store = Store::with_indexers(words()).unwrap();
    for round in 0..3 {
        for n in 0..500 {
            store.add(n, Arc::new(vec!["x", "y"]));
        }
        store.validate().unwrap();
        for n in 0..500 {
            assert!(store.delete(&n).is_some(), "round {round}");
        }
        assert!(store.is_empty() && store.list_index_func_values("word").is_empty());
        store.validate().unwrap();
    }
}
