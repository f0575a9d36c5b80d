//! PURE. What happened to one key since the handler was last told of it.

use kubewire_indexer::{Deleted, ObjectKey};

use crate::Notification;

/// The sum of the notifications of one key that wait: first old state, last new one.
///
/// N1: of an object that came and went untold nothing is left. N2: what is told is, at most, the deletion of
/// the object that the handler knows and then the addition of the present one, or one update. N3: an object that was made
/// anew behind the handler's back and is gone too was never told: what is told is the deletion of the known one, whose
/// own last state nobody knows.
#[derive(Debug)]
pub(crate) struct NetChange<O> {
    /// The state that the handler was last told.
    old: Option<O>,
    /// The deletion of it.
    deleted: Option<Deleted<O>>,
    /// The present state, where it differs from what the handler was told.
    new: Option<O>,
    /// Whether the present state comes as an addition of the initial list.
    initial: bool,
}

impl<O> NetChange<O> {
    pub(crate) fn none() -> Self {
        Self { old: None, deleted: None, new: None, initial: false }
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_none(&self) -> bool {
        self.deleted.is_none() && self.new.is_none()
    }

    /// Adds what happened next under the key. `is_same` says whether two states are of the same object. Says whether an
    /// initial addition has vanished by it; what is lost goes to `garbage`.
    pub(crate) fn join(
        &mut self,
        key: &ObjectKey,
        next: Notification<O>,
        is_same: fn(&O, &O) -> bool,
        garbage: &mut Vec<O>,
    ) -> bool {
        let fresh = self.is_none();
        match next {
            Notification::Added { object, is_in_initial_list } => {
                garbage.extend(self.new.replace(object));
                if fresh {
                    self.initial = is_in_initial_list;
                }
                is_in_initial_list && !fresh
            }
            Notification::Updated { old, new } => {
                if fresh {
                    self.old = Some(old);
                } else {
                    garbage.push(old);
                }
                garbage.extend(self.new.replace(new));
                false
            }
            Notification::Deleted(deleted) => {
                let untold = !fresh && self.old.is_none() && self.deleted.is_none();
                let known = self.old.take();
                garbage.extend(self.new.take());
                if untold || self.deleted.is_some() {
                    garbage.extend(known);
                    garbage.extend(into_last_known(deleted));
                } else if let (Some(before), Some(last)) = (&known, deleted.last_known())
                    && !is_same(before, last)
                {
                    garbage.extend(into_last_known(deleted));
                    self.deleted = Some(Deleted::final_state_unknown(key.clone(), known));
                } else {
                    garbage.extend(known);
                    self.deleted = Some(deleted);
                }
                std::mem::take(&mut self.initial) && untold
            }
        }
    }

    /// The next notification. Call it until [`is_none`](Self::is_none).
    pub(crate) fn take(&mut self) -> Option<Notification<O>> {
        if let Some(deleted) = self.deleted.take() {
            return Some(Notification::Deleted(deleted));
        }
        let new = self.new.take()?;
        Some(match self.old.take() {
            Some(old) => Notification::Updated { old, new },
            None => Notification::Added { object: new, is_in_initial_list: std::mem::take(&mut self.initial) },
        })
    }
}

fn into_last_known<O>(deleted: Deleted<O>) -> Option<O> {
    match deleted {
        Deleted::Known(object) => Some(object),
        Deleted::FinalStateUnknown { last, .. } => last,
    }
}
