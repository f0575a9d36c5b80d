//! The delta FIFO between a source and a store: whatever is merged, the store comes to the state of the source, and
//! nobody is told of a deletion twice or of a change after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::Arbitrary;
use kubewire_indexer::{Deleted, Id, Indexer, Meta};
use kubewire_informer::{Delivery, Delta, DeltaFifo, DeltaFifoOptions, Popped};

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    name: String,
    version: String,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        Id::new("", &self.name).resource_version(&self.version)
    }
}

type Shared = Arc<Thing>;

/// What happens.
#[derive(Arbitrary, Debug)]
pub enum Op {
    /// Adds or updates.
    Put(u8),
    /// Deletes.
    Delete(u8),
    /// What happened meanwhile is seen by a list: these are changed, these are gone.
    Relist(Vec<u8>, Vec<u8>),
    /// A resync.
    Resync,
    /// So many entries are taken, if none are out.
    Take(u8),
    /// What is out is processed.
    Finish,
}

/// How deltas are delivered.
#[derive(Arbitrary, Debug)]
#[expect(missing_docs, reason = "they are those of `Delivery`")]
pub enum Policy {
    PerKey,
    Coalescing,
    InOrderItems,
}

/// How deltas are delivered, whether lists say so, and what happens.
pub type Input = (Policy, bool, Vec<Op>);

/// Panics where it does not hold.
pub fn check(input: Input) {
    let (policy, emit_replaced, ops) = input;
    let delivery = match policy {
        Policy::PerKey => Delivery::PerKey,
        Policy::Coalescing => Delivery::Coalescing,
        Policy::InOrderItems => Delivery::InOrderItems,
    };
    let store = Indexer::<Shared>::new();
    let known_objects = Some(Arc::new(store.clone()) as Arc<_>);
    let fifo = DeltaFifo::new(DeltaFifoOptions { delivery, known_objects, emit_replaced, transform: None });
    let mut source: BTreeMap<String, Shared> = BTreeMap::new();
    let mut out: Option<Popped<Shared>> = None;
    for (version, op) in (1u32..).zip(ops) {
        let thing = |name: u8| Arc::new(Thing { name: format!("t{}", name % 6), version: version.to_string() });
        match op {
            Op::Put(name) => {
                let thing = thing(name);
                let former = source.insert(thing.name.clone(), thing.clone());
                if former.is_none() { fifo.add(thing) } else { fifo.update(thing) }.expect("it has a name");
            }
            Op::Delete(name) => {
                let last = thing(name);
                if source.remove(&last.name).is_some() {
                    fifo.delete(Deleted::Known(last)).expect("it has a name");
                }
            }
            Op::Relist(changed, gone) => {
                for thing in changed.into_iter().map(thing) {
                    source.insert(thing.name.clone(), thing);
                }
                for thing in gone.into_iter().map(thing) {
                    source.remove(&thing.name);
                }
                fifo.replace(source.values().cloned(), &version.to_string()).expect("all have names");
            }
            Op::Resync => fifo.resync(),
            Op::Take(max) => {
                if out.is_none() {
                    out = fifo.try_pop(usize::from(max)).expect("it is open");
                }
            }
            Op::Finish => finish(&mut out, &store),
        }
    }
    finish(&mut out, &store);
    while let Some(popped) = fifo.try_pop(3).expect("it is open") {
        finish(&mut Some(popped), &store);
    }
    let stored: BTreeMap<String, Shared> = store.list().into_iter().map(|thing| (thing.name.clone(), thing)).collect();
    assert_eq!(stored, source);
    assert!(fifo.is_empty());
}

/// Writes what is out into the store, and checks that it makes sense there.
fn finish(out: &mut Option<Popped<Shared>>, store: &Indexer<Shared>) {
    let Some(mut popped) = out.take() else { return };
    for entry in popped.take_entries() {
        let key = entry.key().expect("no policy without keys is fuzzed").clone();
        for delta in entry {
            match delta {
                Delta::Added(_) | Delta::Updated(_) | Delta::Replaced(_) | Delta::Sync(_) => {
                    let object = delta.object().expect("it has one").clone();
                    let older = store.get_by_key(&key);
                    let newer = |old: &Shared| {
                        old.version.parse::<u32>().expect("a number") <= object.version.parse().expect("a number")
                    };
                    assert!(older.as_ref().is_none_or(newer), "{key} goes back");
                    store.add(object).expect("it has a name");
                }
                Delta::Deleted(deleted) => {
                    store.delete_deleted(&deleted).expect("it has a name");
                }
                other => panic!("{other:?} has no key"),
            }
        }
    }
}
