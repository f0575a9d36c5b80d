//! Index functions that fail or panic: the object is kept, and nobody else is harmed.

use kubewire_indexer::{IndexError, IndexFunc, Indexers, Store};

/// Gives the number itself, fails for odd ones, panics for those above 100.
fn picky() -> Indexers<u32> {
    Indexers::none()
        .with(
            "picky",
            IndexFunc::emit(|n: &u32, values| {
                values.push("before the failure");
                match n {
                    101.. => panic!("{n} is too much"),
                    n if n % 2 == 1 => Err(format!("{n} is odd").into()),
                    n => {
                        values.push(&n.to_string());
                        Ok(())
                    }
                }
            }),
        )
        .with("all", IndexFunc::many(|_: &u32| ["x"]))
}

/// Panics print nothing while this runs.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    // The hook is the process's, and the test's code may panic without poisoning this lock.
    static HOOK: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _one_at_a_time = HOOK.lock();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let result = run();
    std::panic::set_hook(hook);
    result
}

#[test]
fn an_object_whose_index_function_fails_or_panics_is_kept_and_reported() {
    let store = Store::with_indexers(picky()).unwrap();
    quietly(|| {
        store.add("even", 2);
        store.add("odd", 3);
        store.add("panics", 200);
        store.validate().unwrap();
    });
    assert_eq!(store.get(&"odd"), Some(3));
    assert_eq!(store.get(&"panics"), Some(200));
    assert_eq!(store.index_keys("picky", "before the failure").unwrap(), ["even"]);
    assert_eq!(store.count_by_index("all", "x"), Ok(3), "other indices are not harmed");

    let failures = store.index_failures();
    assert_eq!(failures.len(), 1);
    let failure = &failures[0];
    assert_eq!((&*failure.index, failure.count, failure.key), ("picky", 2, "panics"));
    assert_eq!(failure.message, "panicked: 200 is too much");
}

#[test]
fn a_function_that_begins_to_fail_takes_the_object_out_of_its_index_and_back() {
    let store = Store::with_indexers(picky()).unwrap();
    quietly(|| {
        for (value, keys) in [(2, 1), (3, 0), (2, 1), (300, 0), (2, 1)] {
            store.add("a", value);
            assert_eq!(store.count_by_index("picky", "2"), Ok(keys), "after {value}");
            store.validate().unwrap();
        }
        store.replace([("a", 2), ("b", 5), ("c", 500)]);
        assert_eq!(store.index_keys("picky", "2").unwrap(), ["a"]);
        store.transaction([kubewire_indexer::Write::Put("a", 7), kubewire_indexer::Write::Put("d", 8)]);
        assert_eq!(store.index_keys("picky", "8").unwrap(), ["d"]);
        store.validate().unwrap();
    });
    assert_eq!(store.len(), 4);
    assert_eq!(store.index_failures()[0].count, 5);
}

#[test]
fn a_failing_function_that_is_added_later_leaves_the_others_in_its_index() {
    let store = Store::new();
    store.replace((0..10).map(|n| (n, n)));
    quietly(|| {
        store.add_indexers(picky()).unwrap();
        store.validate().unwrap();
    });
    assert_eq!(store.count_by_index("picky", "before the failure"), Ok(5));
    assert_eq!(store.index_failures()[0].count, 5);
}

#[test]
fn an_example_for_which_the_function_fails_is_an_error_of_the_question() {
    let store = Store::with_indexers(picky()).unwrap();
    store.add("a", 2);
    let error = quietly(|| store.index("picky", &101).unwrap_err());
    assert!(matches!(&error, IndexError::Function { name, .. } if &**name == "picky"));
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "panicked: 101 is too much");
    assert!(store.index_failures().is_empty());
}

#[test]
fn an_index_function_may_use_the_store_that_calls_it() {
    let store: Store<u32, u32> = Store::new();
    let other = store.clone();
    let function = IndexFunc::many(move |n: &u32| [(other.len() as u32 + n).to_string()]);
    store.add(1, 1);
    store.add_indexers(Indexers::none().with("with-len", function)).unwrap();
    store.add(2, 2);
    assert_eq!(store.index_keys("with-len", "2").unwrap(), [1]);
    assert_eq!(store.index_keys("with-len", "3").unwrap(), [2]);
}
