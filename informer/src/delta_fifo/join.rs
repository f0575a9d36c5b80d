//! PURE. How deltas of one key become one.

use crate::Delta;
use crate::delta::DeltaList;

/// Puts a delta behind those of its key that wait.
///
/// Of two deletions one behind the other the older stays, unless it is a tombstone and so knows less than the
/// newer. Where updates `coalesce`, the newer state takes the place of the older, and a deletion takes away
/// what came since the deletion before it.
pub(super) fn join<O>(list: &mut DeltaList<O>, delta: Delta<O>, coalesce: bool, garbage: &mut Vec<Delta<O>>) {
    if coalesce && delta.is_deleted() && list.iter().rev().nth(1).is_some_and(Delta::is_deleted) {
        garbage.extend(list.pop());
    }
    match (list.last_mut(), delta) {
        (Some(Delta::Deleted(older)), Delta::Deleted(newer)) => {
            let lost = if older.is_final_state_unknown() { std::mem::replace(older, newer) } else { newer };
            garbage.push(Delta::Deleted(lost));
        }
        (Some(last), delta) if coalesce && !last.is_deleted() && !delta.is_deleted() => {
            garbage.push(supersede(last, delta));
        }
        (_, delta) => list.push(delta),
    }
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
