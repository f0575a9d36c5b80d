//! PURE. How deltas of one key become one.

use kubewire_indexer::{Deleted, Object};

use crate::Delta;
use crate::delta::DeltaList;

/// Puts a delta behind those of its key that wait.
///
/// Of two deletions one behind the other the older stays, unless it is a tombstone and so knows less than the
/// newer of the same object. Where updates `coalesce`, the newer state takes the place of the older, and a
/// deletion takes away what came since the deletion before it.
pub(super) fn join<O: Object>(list: &mut DeltaList<O>, delta: Delta<O>, coalesce: bool, garbage: &mut Vec<Delta<O>>) {
    if coalesce && delta.is_deleted() && list.iter().rev().nth(1).is_some_and(Delta::is_deleted) {
        garbage.extend(list.pop());
    }
    match (list.last_mut(), delta) {
        (Some(Delta::Deleted(older)), Delta::Deleted(newer)) => {
            let knows_less = older.is_final_state_unknown() && !are_of_two(older, &newer);
            let lost = if knows_less { std::mem::replace(older, newer) } else { newer };
            garbage.push(Delta::Deleted(lost));
        }
        (Some(last), delta) if coalesce && !last.is_deleted() && !delta.is_deleted() => {
            garbage.push(supersede(last, delta));
        }
        (_, delta) => {
            if !list.spilled() {
                // A key that has two deltas soon has a third: one allocation for all.
                list.grow(4);
            }
            list.push(delta);
        }
    }
}

/// Whether these are the deletions of two objects. The second was made anew under the key and came and went without a trace:
/// what came in between was taken away, or could not be read.
fn are_of_two<O: Object>(older: &Deleted<O>, newer: &Deleted<O>) -> bool {
    matches!((older.last_known(), newer.last_known()), (Some(one), Some(other)) if one.id().uid != other.id().uid)
}

/// Puts a newer state in the place of an older one, under the older one's kind; only a `Sync`, which has
/// nothing of its own to tell, takes the newer kind. Gives back what is lost.
fn supersede<O>(older: &mut Delta<O>, newer: Delta<O>) -> Delta<O> {
    match (older, newer) {
        (
            Delta::Added(old) | Delta::Updated(old) | Delta::Replaced(old),
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new),
        ) => Delta::Updated(std::mem::replace(old, new)),
        (older, newer) => std::mem::replace(older, newer),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubewire_indexer::{Id, Meta};

    use super::*;
    use crate::Received;

    /// Its uid.
    struct Thing(&'static str);

    impl Meta for Thing {
        fn id(&self) -> Id<'_> {
            Id::new("ns", "a").uid(self.0)
        }
    }

    fn gone(uid: &'static str) -> Delta<Arc<Thing>> {
        let thing = Arc::new(Thing(uid));
        Delta::Deleted(Deleted::final_state_unknown(thing.key(), Some(thing)))
    }

    fn deleted(uid: &'static str) -> Delta<Arc<Thing>> {
        Delta::Deleted(Deleted::Known(Arc::new(Thing(uid))))
    }

    fn added(uid: &'static str) -> Delta<Arc<Thing>> {
        Delta::Added(Received::new(Arc::new(Thing(uid))))
    }

    fn joined(deltas: Vec<Delta<Arc<Thing>>>, coalesce: bool) -> Vec<String> {
        let (mut list, mut garbage) = (DeltaList::new(), Vec::new());
        deltas.into_iter().for_each(|delta| join(&mut list, delta, coalesce, &mut garbage));
        let show = |delta: &Delta<Arc<Thing>>| {
            let is_tombstone = matches!(delta, Delta::Deleted(deleted) if deleted.is_final_state_unknown());
            let kind = if is_tombstone { "Gone" } else { delta.kind() };
            format!("{kind} {}", delta.object().map_or("", |thing| thing.0))
        };
        list.iter().map(show).collect()
    }

    #[test]
    fn a_tombstone_yields_to_the_final_state_of_its_own_object_only() {
        for coalesce in [false, true] {
            assert_eq!(joined(vec![gone("1"), deleted("1")], coalesce), ["Deleted 1"]);
            assert_eq!(joined(vec![gone("1"), deleted("2")], coalesce), ["Gone 1"], "2 was never told");
            assert_eq!(joined(vec![deleted("1"), deleted("2")], coalesce), ["Deleted 1"]);
        }
        assert_eq!(joined(vec![gone("1"), added("2"), deleted("2")], true), ["Gone 1"]);
        assert_eq!(joined(vec![gone("1"), added("2"), deleted("2")], false), ["Gone 1", "Added 2", "Deleted 2"]);
    }
}
