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
        /// The key under which the object was cached. Boxed, so that all that holds what is mostly another deletion or none
        /// is small.
        key: Box<ObjectKey>,
        /// The last state that was cached, maybe stale; `None` where even that is unknown.
        last: Option<O>,
    },
}

impl<O: Object> Deleted<O> {
    /// The key of the deleted object. A tombstone's own key counts, whatever its object says.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Known(object) => object.key(),
            Self::FinalStateUnknown { key, .. } => (**key).clone(),
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

    /// A tombstone. Cost: one allocation.
    pub fn final_state_unknown(key: ObjectKey, last: Option<O>) -> Self {
        Self::FinalStateUnknown { key: Box::new(key), last }
    }

    /// As [`last_known`](Self::last_known), taken out.
    pub fn into_last_known(self) -> Option<O> {
        match self {
            Self::Known(object) => Some(object),
            Self::FinalStateUnknown { last, .. } => last,
        }
    }

    /// Whether the deletion itself was missed, so that [`last_known`](Self::last_known) may be stale.
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Id, Meta};

    struct Pod(&'static str);

    impl Meta for Pod {
        fn id(&self) -> Id<'_> {
            Id::new("ns", self.0)
        }
    }

    #[test]
    fn the_key_of_a_tombstone_is_its_own_whatever_its_object_says() {
        let key = ObjectKey::new("ns", "cached");
        let known = Deleted::Known(Arc::new(Pod("seen")));
        assert_eq!((known.key().name(), known.is_final_state_unknown()), ("seen", false));
        let stale = Deleted::final_state_unknown(key.clone(), Some(Arc::new(Pod("other"))));
        assert_eq!((stale.key(), stale.is_final_state_unknown()), (key.clone(), true));
        assert_eq!(stale.last_known().map(|pod| pod.0), Some("other"));
        assert_eq!(stale.into_last_known().map(|pod| pod.0), Some("other"));
        let unknown = Deleted::<Arc<Pod>>::final_state_unknown(key.clone(), None);
        assert_eq!(unknown.key(), key);
        assert!(unknown.last_known().is_none() && unknown.into_last_known().is_none());
    }

    #[test]
    fn a_deleted_object_without_a_name_has_an_empty_key_and_no_panic() {
        assert_eq!(Deleted::Known(Arc::new(Pod(""))).key().name(), "");
    }
}
