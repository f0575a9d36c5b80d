//! What is told of an object.

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;

/// Whether something went as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// As it should.
    Normal,
    /// As it should not.
    Warning,
}

impl EventType {
    /// As the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that has happened to an object.
///
/// Texts of any length and any characters are taken; what the API server would refuse is shortened, between characters.
///
/// ```
/// use kubewire_events::Event;
///
/// let event = Event::warning("FailedScaling", "Scale", "want 3 replicas, the quota allows 2");
/// # let _ = event;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an event does nothing until it is recorded"]
pub struct Event {
    pub(crate) type_: EventType,
    pub(crate) reason: String,
    pub(crate) action: String,
    pub(crate) note: String,
    pub(crate) related: Option<ObjectReference>,
}

impl Event {
    /// Something that went as it should. `reason`: why, one word in CamelCase, 128 bytes at most. `action`: what was
    /// done, the same. `note`: for people, 1024 bytes at most.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            type_: EventType::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
            related: None,
        }
    }

    /// Something that went as it should not; the rest as [`normal`](Self::normal).
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { type_: EventType::Warning, ..Self::normal(reason, action, note) }
    }

    /// Another object that it has to do with.
    pub fn related(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }
}
