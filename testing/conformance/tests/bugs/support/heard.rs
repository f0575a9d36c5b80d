//! What a handler heard.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use kubewire_conformance::wire::Thing;
use kubewire_indexer::{Deleted, Object};
use kubewire_informer::ResourceEventHandler;
use parking_lot::Mutex;

/// A handler that writes down what it hears. Cloning gives another handle to the same list.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Told>>>);

#[derive(Clone, Debug)]
enum Told {
    Added(Thing, bool),
    Updated(Thing, Thing),
    Deleted(Thing, bool),
}

impl Heard {
    /// In short: `+x@10!` (initial), `+x@11`, `~x@10>11`, `-x@11`, `-x@11?` (final state unknown). Updates to the
    /// version that was there before, as a new list brings them, are left out.
    pub(crate) fn log(&self) -> Vec<String> {
        self.changes().iter().map(ToString::to_string).collect()
    }

    fn changes(&self) -> Vec<Told> {
        let all = self.0.lock().clone();
        all.into_iter().filter(|told| !matches!(told, Told::Updated(old, new) if old == new)).collect()
    }

    /// What there is for one who knows nothing but this list; and each change came once, in order (A-once).
    pub(crate) fn replayed(&self) -> Vec<String> {
        let mut present: BTreeMap<(String, String), Thing> = BTreeMap::new();
        let mut states: HashSet<(String, String)> = HashSet::new();
        let mut deleted: HashMap<String, usize> = HashMap::new();
        let key = |thing: &Thing| (thing.namespace.clone(), thing.name.clone());
        for told in self.changes() {
            if let Told::Added(thing, _) | Told::Updated(_, thing) = &told {
                assert!(states.insert((thing.uid.clone(), thing.version.clone())), "{told} twice: {:?}", self.log());
                assert!(!deleted.contains_key(&thing.uid), "{told} after its deletion: {:?}", self.log());
            }
            match &told {
                Told::Added(thing, _) => {
                    let before = present.insert(key(thing), thing.clone());
                    assert!(before.is_none(), "{told}, which was there: {:?}", self.log());
                }
                Told::Updated(old, new) => {
                    let before = present.insert(key(new), new.clone());
                    assert_eq!(before.as_ref(), Some(old), "{told}: {:?}", self.log());
                }
                Told::Deleted(thing, _) => {
                    assert!(present.remove(&key(thing)).is_some(), "{told}, which was not there: {:?}", self.log());
                    let times = deleted.entry(thing.uid.clone()).or_default();
                    *times += 1;
                    assert_eq!(*times, 1, "{told} again: {:?}", self.log());
                }
            }
        }
        let mut present: Vec<String> = present.values().map(Thing::to_string).collect();
        present.sort();
        present
    }
}

/// The notation of an object.
pub(crate) fn thing<O: Object>(object: &O) -> Thing {
    let id = object.id();
    let own = str::to_owned;
    Thing { namespace: own(id.namespace), name: own(id.name), uid: own(id.uid), version: own(id.resource_version) }
}

impl<O: Object> ResourceEventHandler<O> for Heard {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        self.0.lock().push(Told::Added(thing(&object), is_in_initial_list));
    }

    fn on_update(&mut self, old: O, new: O) {
        self.0.lock().push(Told::Updated(thing(&old), thing(&new)));
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        let unknown = deleted.is_final_state_unknown();
        let last = deleted.into_last_known().expect("an informer knows what it had");
        self.0.lock().push(Told::Deleted(thing(&last), unknown));
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(thing, initial) => write!(f, "+{thing}{}", if *initial { "!" } else { "" }),
            Self::Updated(old, new) if old.uid == new.uid => write!(f, "~{old}>{}", new.version),
            Self::Updated(old, new) => write!(f, "~{old}>{new}"),
            Self::Deleted(thing, unknown) => write!(f, "-{thing}{}", if *unknown { "?" } else { "" }),
        }
    }
}
