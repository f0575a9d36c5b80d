//! Random operations on a store and on a naive oracle that recomputes everything by linear scans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewire_indexer::{IndexFunc, Indexers, Store, Write};
use proptest::prelude::*;

/// A value with the tags of two indices. `broken`: its second index function fails (1) or panics (2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    number: u32,
    colors: Vec<u8>,
    zone: Option<u8>,
    broken: u8,
}

type Shared = Arc<Item>;

#[derive(Clone, Debug)]
enum Op {
    Put(u8, Item),
    Delete(u8),
    Transaction(Vec<(u8, Option<Item>)>),
    Replace(Vec<(u8, Item)>),
    AddZoneIndex,
    Bookmark(u16),
}

fn item() -> impl Strategy<Value = Item> {
    let broken = prop_oneof![8 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    (0u32..1000, prop::collection::vec(0u8..5, 0..5), prop::option::of(0u8..3), broken)
        .prop_map(|(number, colors, zone, broken)| Item { number, colors, zone, broken })
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0u8..12;
    prop_oneof![
        8 => (key.clone(), item()).prop_map(|(key, item)| Op::Put(key, item)),
        4 => key.clone().prop_map(Op::Delete),
        2 => prop::collection::vec((key.clone(), prop::option::of(item())), 0..5).prop_map(Op::Transaction),
        1 => prop::collection::vec((key, item()), 0..90).prop_map(Op::Replace),
        1 => Just(Op::AddZoneIndex),
        1 => any::<u16>().prop_map(Op::Bookmark),
    ]
}

fn colors(item: &Item) -> BTreeSet<String> {
    item.colors.iter().map(|color| format!("c{color}")).collect()
}

fn zones(item: &Item) -> BTreeSet<String> {
    if item.broken > 0 { BTreeSet::new() } else { item.zone.iter().map(|zone| format!("z{zone}")).collect() }
}

fn by_color() -> Indexers<Shared> {
    Indexers::none()
        .with("color", IndexFunc::many(|item: &Shared| item.colors.iter().map(|c| format!("c{c}")).collect::<Vec<_>>()))
}

fn by_zone() -> Indexers<Shared> {
    Indexers::none().with(
        "zone",
        IndexFunc::try_many(|item: &Shared| match item.broken {
            0 => Ok(item.zone.map(|zone| format!("z{zone}"))),
            1 => Err("broken"),
            _ => std::panic::resume_unwind(Box::new("broken")),
        }),
    )
}

type Values = fn(&Item) -> BTreeSet<String>;

#[derive(Default)]
struct Oracle {
    items: BTreeMap<u8, Item>,
    zone_index: bool,
    version: String,
}

impl Oracle {
    fn under(&self, value: &str, values: Values) -> Vec<u8> {
        self.items.iter().filter(|(_, item)| values(item).contains(value)).map(|(&key, _)| key).collect()
    }

    fn values(&self, values: Values) -> BTreeSet<String> {
        self.items.values().flat_map(values).collect()
    }

    fn write(&mut self, key: u8, item: Option<&Item>) -> Option<Item> {
        match item {
            Some(item) => self.items.insert(key, item.clone()),
            None => self.items.remove(&key),
        }
    }
}

fn apply(store: &Store<u8, Shared>, oracle: &mut Oracle, op: Op) -> Result<(), TestCaseError> {
    let plain = |old: Option<Shared>| old.map(|old| (*old).clone());
    match op {
        Op::Put(key, item) => {
            let old = oracle.write(key, Some(&item));
            prop_assert_eq!(plain(store.add(key, Arc::new(item))), old);
        }
        Op::Delete(key) => prop_assert_eq!(plain(store.delete(&key)), oracle.write(key, None)),
        Op::Transaction(writes) => {
            let expected: Vec<_> = writes.iter().map(|(key, item)| oracle.write(*key, item.as_ref())).collect();
            let writes = writes.into_iter().map(|(key, item)| match item {
                Some(item) => Write::Put(key, Arc::new(item)),
                None => Write::Delete(key),
            });
            let old: Vec<_> = store.transaction(writes).into_iter().map(plain).collect();
            prop_assert_eq!(old, expected);
        }
        Op::Replace(entries) => {
            oracle.items = entries.iter().cloned().collect();
            oracle.version = "list".into();
            store.replace_at(entries.into_iter().map(|(key, item)| (key, Arc::new(item))), "list");
        }
        Op::AddZoneIndex => {
            prop_assert_eq!(store.add_indexers(by_zone()).is_ok(), !oracle.zone_index);
            oracle.zone_index = true;
        }
        Op::Bookmark(version) => {
            oracle.version = version.to_string();
            store.bookmark(&oracle.version);
        }
    }
    Ok(())
}

fn compare(store: &Store<u8, Shared>, oracle: &Oracle) -> Result<(), TestCaseError> {
    prop_assert_eq!(store.validate(), Ok(()));
    prop_assert_eq!(store.len(), oracle.items.len());
    prop_assert_eq!(store.last_version(), oracle.version.clone());
    let mut entries: Vec<_> = store.entries().into_iter().map(|(key, item)| (key, (*item).clone())).collect();
    entries.sort();
    prop_assert_eq!(entries, oracle.items.clone().into_iter().collect::<Vec<_>>());
    for key in 0..12 {
        prop_assert_eq!(store.get(&key).map(|item| (*item).clone()), oracle.items.get(&key).cloned());
    }
    let indices = [("color", "c", colors as Values, true), ("zone", "z", zones, oracle.zone_index)];
    for (name, letter, values, there) in indices {
        let listed: BTreeSet<String> = store.list_index_func_values(name).iter().map(|v| v.to_string()).collect();
        prop_assert_eq!(listed, if there { oracle.values(values) } else { BTreeSet::new() });
        for n in 0..5 {
            let value = format!("{letter}{n}");
            let keys = store.index_keys(name, &value);
            prop_assert_eq!(keys.ok(), there.then(|| oracle.under(&value, values)));
        }
    }
    for example in oracle.items.values() {
        let wanted = colors(example);
        let sharing = |item: &&Item| colors(item).iter().any(|color| wanted.contains(color));
        let mut expected: Vec<Item> = oracle.items.values().filter(sharing).cloned().collect();
        expected.sort();
        let mut found: Vec<Item> =
            store.index("color", &Arc::new(example.clone())).unwrap().iter().map(|item| (**item).clone()).collect();
        found.sort();
        prop_assert_eq!(found, expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_store_answers_as_a_naive_map_does(ops in prop::collection::vec(op(), 1..40)) {
        let store = Store::with_indexers(by_color()).unwrap();
        let mut oracle = Oracle::default();
        for op in ops {
            apply(&store, &mut oracle, op)?;
            compare(&store, &oracle)?;
        }
    }
}
