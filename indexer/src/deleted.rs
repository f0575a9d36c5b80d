//! A deleted object, or what is known of it.

use crate::{Object, ObjectKey};

/// A deletion, as a handler gets it. The caller must look which kind it is before it can take the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted<O> {
    /// The deletion was seen; this is the object's last state.
    Known(O),
    /// The deletion itself was missed, a later list showed it: a tombstone, client-go's
    /// `DeletedFinalStateUnknown`.
    FinalStateUnknown {
        /// The key under which the object was cached.
        key: ObjectKey,
        /// The last state that was cached, maybe stale; `None` where even that is unknown.
        last: Option<O>,
    },
}

impl<O: Object> Deleted<O> {
    /// The key of the deleted object. A tombstone's own key counts, whatever its object says.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Known(object) => object.key(),
            Self::FinalStateUnknown { key, .. } => key.clone(),
        }
    }
}

impl<O> Deleted<O> {
    /// The last known state, stale or not.
    pub fn last_known(&self) -> Option<&O> {
        match self {
            Self::Known(object) => Some(object),
            Self::FinalStateUnknown { last, .. } => last.as_ref(),
        }
    }

    /// Whether the deletion itself was missed, so that [`last_known`](Self::last_known) may be stale.
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }
}
