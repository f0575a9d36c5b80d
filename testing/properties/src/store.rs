//! The store against a map: the same entries and the same index, at every step.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use kubewire_indexer::{IndexFunc, Indexers, Store, Write};

/// Index values, some of which repeat.
pub type Value = Vec<u8>;

/// What happens.
#[derive(Arbitrary, Debug)]
#[expect(missing_docs, reason = "they are the methods of the store")]
pub enum Op {
    Put(u8, Value),
    Delete(u8),
    Transaction(Vec<(u8, Option<Value>)>),
    Replace(Vec<(u8, Value)>),
    AddIndex,
    Look(u8),
}

fn indexers(name: &str) -> Indexers<Value> {
    let values = |value: &Value| value.iter().map(|byte| (byte % 8).to_string()).collect::<Vec<_>>();
    Indexers::none().with(name, IndexFunc::many(values))
}

/// What happens.
pub type Input = Vec<Op>;

/// Panics where it does not hold.
pub fn check(ops: Input) {
    let store = Store::with_indexers(indexers("first")).expect("one index");
    let mut map: BTreeMap<u8, Value> = BTreeMap::new();
    let mut late = false;
    for op in ops {
        match op {
            Op::Put(key, value) => assert_eq!(store.add(key, value.clone()), map.insert(key, value)),
            Op::Delete(key) => assert_eq!(store.delete(&key), map.remove(&key)),
            Op::Transaction(writes) => {
                let mut expected = Vec::new();
                for (key, value) in &writes {
                    expected.push(match value {
                        Some(value) => map.insert(*key, value.clone()),
                        None => map.remove(key),
                    });
                }
                let writes = writes.into_iter().map(|(key, value)| match value {
                    Some(value) => Write::Put(key, value),
                    None => Write::Delete(key),
                });
                assert_eq!(store.transaction(writes), expected);
            }
            Op::Replace(entries) => {
                map = entries.iter().cloned().collect();
                store.replace(entries);
            }
            Op::AddIndex => {
                assert_eq!(store.add_indexers(indexers("late")).is_err(), late);
                late = true;
            }
            Op::Look(value) => {
                let wanted = |entry: &&u8| map[entry].iter().any(|byte| byte % 8 == value % 8);
                let expected: Vec<u8> = map.keys().filter(wanted).copied().collect();
                let value = (value % 8).to_string();
                assert_eq!(store.index_keys("first", &value).as_ref(), Ok(&expected));
                assert_eq!(store.index_keys("late", &value).ok(), late.then_some(expected));
            }
        }
        store.validate().expect("its invariants hold");
    }
    assert_eq!(store.entries().into_iter().collect::<BTreeMap<_, _>>(), map);
}
