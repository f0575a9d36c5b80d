//! What a source tells.

use std::borrow::Cow;

use kubewire_indexer::{Id, Object, ObjectKey, OwnerReference};

/// What event handlers and predicates are told, borrowed from whoever tells it.
///
/// An object is of type `O` (`Arc<Pod>`, `Packed<Pod>`, …), or [`dyn AnyObject`](AnyObject) for who wants to hear of all.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a, O: ?Sized> {
    /// There is a new object.
    Created {
        /// The object.
        object: &'a O,
        /// Whether it was there already when the controller began.
        is_in_initial_list: bool,
    },
    /// An object has changed, or is told again by a resync; see [`is_resync`](Self::is_resync).
    Updated {
        /// The state before.
        old: &'a O,
        /// The state now.
        new: &'a O,
    },
    /// An object is gone.
    Deleted {
        /// Its key.
        key: &'a ObjectKey,
        /// Its last state, if any is known.
        object: Option<&'a O>,
        /// Whether the deletion itself was missed, so that the last state may be stale.
        is_final_state_unknown: bool,
    },
    /// Something else than a change of the object: what a [channel](crate::Channel) or a stream brings.
    Generic {
        /// The object.
        object: &'a O,
    },
}

/// The priority of what need not be done soon: of what was there when the controller began, and of resyncs. As
/// controller-runtime's `LowPriority`.
pub const LOW_PRIORITY: i32 = -100;

impl<'a, O: ?Sized> Event<'a, O> {
    /// The object, in its state now, or its last.
    pub fn object(&self) -> Option<&'a O> {
        match *self {
            Self::Created { object, .. } | Self::Updated { new: object, .. } | Self::Generic { object } => Some(object),
            Self::Deleted { object, .. } => object,
        }
    }

    /// The state before, of a change.
    pub fn old(&self) -> Option<&'a O> {
        match *self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        }
    }
}

impl<'a, O: AnyObject + ?Sized> Event<'a, O> {
    /// The object's key. Cost: one allocation, or none where the object holds its key.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Created { object, .. } | Self::Updated { new: object, .. } | Self::Generic { object } => object.key(),
            Self::Deleted { key, .. } => (*key).clone(),
        }
    }

    /// Whether nothing has changed: the object is told again, by a resync or a new list.
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.id().resource_version == new.id().resource_version)
    }

    /// The priority at which it is added unless a handler says otherwise: [`LOW_PRIORITY`] for what was there when the
    /// controller began and for resyncs, 0 for all else.
    pub fn priority(&self) -> i32 {
        match self {
            Self::Created { is_in_initial_list: true, .. } => LOW_PRIORITY,
            event if event.is_resync() => LOW_PRIORITY,
            _ => 0,
        }
    }
}

impl<'a, O: AnyObject> Event<'a, O> {
    /// The same without the type.
    pub fn erase(&self) -> Event<'a, dyn AnyObject> {
        let any = |object: &'a O| -> &'a (dyn AnyObject + 'static) { object };
        match *self {
            Self::Created { object, is_in_initial_list } => Event::Created { object: any(object), is_in_initial_list },
            Self::Updated { old, new } => Event::Updated { old: any(old), new: any(new) },
            Self::Deleted { key, object, is_final_state_unknown } => {
                Event::Deleted { key, object: object.map(any), is_final_state_unknown }
            }
            Self::Generic { object } => Event::Generic { object: any(object) },
        }
    }
}

/// An object of any type: the part of [`Object`] that can be asked without knowing it. Every `Object` has it.
pub trait AnyObject: Send + Sync + 'static {
    /// See [`Object::id`].
    fn id(&self) -> Id<'_>;
    /// See [`Object::key`].
    fn key(&self) -> ObjectKey;
    /// See [`Object::label`].
    fn label(&self, name: &str) -> Option<&str>;
    /// See [`Object::generation`].
    fn generation(&self) -> Option<i64>;
    /// See [`Object::is_being_deleted`].
    fn is_being_deleted(&self) -> bool;
    /// See [`Object::owners`].
    fn owners(&self) -> Vec<OwnerReference<'_>>;
    /// See [`Object::all_labels`].
    fn all_labels(&self) -> Vec<(&str, &str)>;
    /// See [`Object::all_annotations`].
    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)>;
}

impl<O: Object> AnyObject for O {
    fn id(&self) -> Id<'_> {
        Object::id(self)
    }

    fn key(&self) -> ObjectKey {
        Object::key(self)
    }

    fn label(&self, name: &str) -> Option<&str> {
        Object::label(self, name)
    }

    fn generation(&self) -> Option<i64> {
        Object::generation(self)
    }

    fn is_being_deleted(&self) -> bool {
        Object::is_being_deleted(self)
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        Object::owners(self)
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        Object::all_labels(self)
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        Object::all_annotations(self)
    }
}
