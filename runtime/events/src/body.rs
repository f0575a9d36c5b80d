//! PURE: an event within all limits, and what makes two of them the same.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;

use crate::limits::{FIELD_LEN_MAX, NOTE_LEN_MAX, shortened};
use crate::{Event, EventType};

/// An object, as far as it makes events different: its version does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// A part of the object, such as a container; it makes events different, but not dissimilar.
    pub(crate) field_path: String,
}

impl Identity {
    fn new(object: &ObjectReference) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            api_version: text(&object.api_version),
            kind: text(&object.kind),
            namespace: text(&object.namespace),
            name: text(&object.name),
            uid: text(&object.uid),
            field_path: text(&object.field_path),
        }
    }

    fn whole(&self) -> Self {
        Self { field_path: String::new(), ..self.clone() }
    }

    /// Where events about it are kept.
    pub(crate) fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }
}

/// An event that the API server takes. Two that are equal are one series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) regarding: Identity,
    pub(crate) related: Option<Identity>,
    pub(crate) type_: EventType,
    pub(crate) reason: String,
    pub(crate) action: String,
    pub(crate) note: String,
}

/// What similar events have in common: all but note, action and part of the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Likeness {
    regarding: Identity,
    type_: EventType,
    reason: String,
}

/// What floods are kept small by: an object, and a type of event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    regarding: Identity,
    type_: EventType,
}

/// Which events are counted as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SeriesKey {
    Exact(Arc<Body>),
    /// Many similar ones.
    Combined(Arc<Likeness>),
}

impl Body {
    pub(crate) fn new(regarding: &ObjectReference, event: Event) -> Self {
        let field = |text: String, default: &str| {
            if text.is_empty() { default.to_owned() } else { shortened(text, FIELD_LEN_MAX) }
        };
        let reason = field(event.reason, "Unknown");
        Self {
            regarding: Identity::new(regarding),
            related: event.related.as_ref().map(Identity::new),
            type_: event.type_,
            action: field(event.action, &reason),
            reason,
            note: shortened(event.note, NOTE_LEN_MAX),
        }
    }

    pub(crate) fn likeness(&self) -> Likeness {
        Likeness { regarding: self.regarding.whole(), type_: self.type_, reason: self.reason.clone() }
    }

    pub(crate) fn source(&self) -> Source {
        Source { regarding: self.regarding.whole(), type_: self.type_ }
    }

    /// The event that stands for many.
    pub(crate) fn combined(&self) -> Self {
        let note = format!("(combined from similar events): {}", self.note);
        Self { note: shortened(note, NOTE_LEN_MAX), ..self.clone() }
    }
}
