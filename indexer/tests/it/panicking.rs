//! Keys and values whose own code panics, at each of its calls in turn: a write is made as a whole or not at all, and a
//! list that is held keeps what it saw.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use kubewire_indexer::{IndexFunc, Indexers, Store, Write};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Clone,
    Eq,
    Hash,
    Drop,
}

thread_local! {
    /// Which call panics: so many of its kind go well before it. Once.
    static FUSE: Cell<Option<(Step, u32)>> = const { Cell::new(None) };
}

fn burn(step: Step) {
    match FUSE.get() {
        Some((kind, 0)) if kind == step => {
            FUSE.set(None);
            resume_unwind(Box::new("burnt"));
        }
        Some((kind, left)) if kind == step => FUSE.set(Some((kind, left - 1))),
        _ => {}
    }
}

/// Counts all that it is asked.
#[derive(Debug)]
struct Touchy(u8);

impl Clone for Touchy {
    fn clone(&self) -> Self {
        burn(Step::Clone);
        Self(self.0)
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        burn(Step::Eq);
        self.0 == other.0
    }
}

impl Eq for Touchy {}

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn(Step::Hash);
        // Of three hashes, so that keys are compared often.
        (self.0 % 3).hash(state);
    }
}

impl Drop for Touchy {
    fn drop(&mut self) {
        burn(Step::Drop);
    }
}

type Content = BTreeMap<u8, u8>;

#[derive(Clone, Debug)]
enum Op {
    Put(u8, u8),
    Delete(u8),
    Transaction(Vec<(u8, Option<u8>)>),
    Replace(Vec<(u8, u8)>),
    AddParity,
    Hold,
    LetGo,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, value) = (0u8..10, any::<u8>());
    prop_oneof![
        6 => (key.clone(), value).prop_map(|(key, value)| Op::Put(key, value)),
        4 => key.clone().prop_map(Op::Delete),
        4 => prop::collection::vec((key.clone(), prop::option::of(value)), 0..6).prop_map(Op::Transaction),
        1 => prop::collection::vec((key, value), 0..80).prop_map(Op::Replace),
        1 => Just(Op::AddParity),
        4 => Just(Op::Hold),
        1 => Just(Op::LetGo),
    ]
}

fn fuse() -> impl Strategy<Value = Option<(Step, u32)>> {
    let step = prop_oneof![Just(Step::Clone), Just(Step::Eq), Just(Step::Hash), Just(Step::Drop)];
    prop::option::weighted(0.8, (step, 0u32..12))
}

fn by_digit() -> Indexers<Touchy> {
    // Fails for some, so that keys are cloned for its record.
    Indexers::none().with(
        "digit",
        IndexFunc::try_many(|value: &Touchy| match value.0 % 10 {
            7 => Err("seven"),
            8 => resume_unwind(Box::new("eight")),
            digit => Ok([digit.to_string()]),
        }),
    )
}

fn by_parity() -> Indexers<Touchy> {
    Indexers::none().with("parity", IndexFunc::many(|value: &Touchy| [(value.0 % 2).to_string(), "any".to_owned()]))
}

/// What there is after the operation, where it is made.
fn after(content: &Content, op: &Op) -> Content {
    let mut content = content.clone();
    let mut write = |key: u8, value: Option<u8>| match value {
        Some(value) => content.insert(key, value),
        None => content.remove(&key),
    };
    match op {
        Op::Put(key, value) => _ = write(*key, Some(*value)),
        Op::Delete(key) => _ = write(*key, None),
        Op::Transaction(writes) => writes.iter().for_each(|&(key, value)| _ = write(key, value)),
        Op::Replace(entries) => content = entries.iter().copied().collect(),
        Op::AddParity | Op::Hold | Op::LetGo => {}
    }
    content
}

type Held = Vec<(kubewire_indexer::List<Touchy, Touchy>, Content)>;

fn make(store: &Store<Touchy, Touchy>, held: &mut Held, content: &Content, op: &Op) {
    match op {
        Op::Put(key, value) => drop(store.add(Touchy(*key), Touchy(*value))),
        Op::Delete(key) => drop(store.delete(&Touchy(*key))),
        Op::Transaction(writes) => {
            let writes = writes.iter().map(|&(key, value)| match value {
                Some(value) => Write::Put(Touchy(key), Touchy(value)),
                None => Write::Delete(Touchy(key)),
            });
            drop(store.transaction(writes));
        }
        Op::Replace(entries) => store.replace(entries.iter().map(|&(key, value)| (Touchy(key), Touchy(value)))),
        Op::AddParity => drop(store.add_indexers(by_parity())),
        Op::Hold => held.push((store.list(), content.clone())),
        Op::LetGo => held.clear(),
    }
}

fn content_of<'a>(entries: impl IntoIterator<Item = (&'a Touchy, &'a Touchy)>) -> Content {
    entries.into_iter().map(|(key, value)| (key.0, value.0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_write_whose_user_code_panics_is_made_as_a_whole_or_not_at_all(
        steps in prop::collection::vec((op(), fuse()), 1..50)
    ) {
        let store = Store::with_indexers(by_digit()).unwrap();
        let mut content = Content::new();
        let mut held = Held::new();
        for (op, fuse) in steps {
            let made = after(&content, &op);
            FUSE.set(fuse);
            let ended = catch_unwind(AssertUnwindSafe(|| make(&store, &mut held, &content, &op)));
            FUSE.set(None);

            prop_assert_eq!(store.validate(), Ok(()), "{:?} {:?}", op, fuse);
            let there = content_of(store.list().entries());
            prop_assert_eq!(store.len(), there.len());
            match ended {
                Ok(()) => prop_assert_eq!(&there, &made, "{:?} {:?}", op, fuse),
                Err(_) => prop_assert!(there == made || there == content, "{:?} {:?}: {:?}", op, fuse, there),
            }
            for (key, value) in &there {
                prop_assert_eq!(store.get(&Touchy(*key)).map(|found| found.0), Some(*value));
            }
            for (list, seen) in &held {
                prop_assert_eq!(&content_of(list.entries()), seen);
            }
            if matches!(op, Op::AddParity) {
                let odd = there.values().filter(|value| **value % 2 == 1).count();
                prop_assert_eq!(store.count_by_index("parity", "1"), Ok(odd));
            }
            content = there;
        }
    }
}
