//! How items get into what has been gathered of a list.

use kubewire_indexer::Object;
use kubewire_listwatch::ItemError;

use super::gathering::Gathering;
use super::reporter::Reporter;
use crate::{Admitted, ReflectorStore};

/// Admits an object and does something with it; where it is not taken, what is cached under its key stays.
pub(super) fn admit<O: Object>(
    store: &(impl ReflectorStore<O> + ?Sized),
    object: O,
    gathering: &mut Gathering<O>,
    reporter: &Reporter,
    then: impl FnOnce(&mut Gathering<O>, Admitted<O>),
) {
    match store.admit(object) {
        Ok(admitted) => then(gathering, admitted),
        Err(error) => {
            // An object without a name is nobody's newer state.
            if let Some(key) = error.key() {
                gathering.keep(Some(key.clone()));
            }
            reporter.not_taken(error);
        }
    }
}

/// Takes a handle of the store itself, as it is: it must not be transformed a second time, though the store may have gone on
/// since.
pub(super) fn reuse<O: Object>(
    held: O,
    gathering: &mut Gathering<O>,
    reporter: &Reporter,
    then: impl FnOnce(&mut Gathering<O>, Admitted<O>),
) {
    match Admitted::new(held) {
        Ok(admitted) => then(gathering, admitted),
        Err(error) => reporter.not_taken(error),
    }
}

pub(super) fn keep_undecodable<O: Object>(error: ItemError, gathering: &mut Gathering<O>, reporter: &Reporter) {
    gathering.keep(error.key.clone());
    reporter.undecodable(error);
}
