//! PURE. What an answer is written in.

use bytes::Bytes;
use serde_json::Value;

use crate::accept::Accepted;
use crate::openapi::{self, Type};
use crate::watch_event;

/// The encoding of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Json,
    Protobuf,
}

impl Format {
    /// What a media type of an `Accept` header asks for, if it is spoken here.
    pub(crate) fn of(accepted: &Accepted<'_>) -> Option<Self> {
        match accepted.media_type {
            openapi::PROTOBUF => Some(Self::Protobuf),
            _ => accepted.is_json().then_some(Self::Json),
        }
    }

    /// What a failure is told in to a client that accepts this: JSON where there is nothing in common.
    pub(crate) fn of_failures(accept: &str) -> Self {
        Accepted::all(accept).find_map(|accepted| Self::of(&accepted)).unwrap_or_default()
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => openapi::PROTOBUF,
        }
    }

    /// The content type of a watch.
    pub(crate) fn watch_media_type(self) -> String {
        match self {
            Self::Json => self.media_type().to_owned(),
            Self::Protobuf => format!("{};stream=watch", self.media_type()),
        }
    }

    /// One answer: an object, or a list, of a type that is known.
    pub(crate) fn whole(self, object: &Value) -> Bytes {
        match self {
            Self::Json => Bytes::from(object.to_string()),
            // A type without protobuf was not negotiated.
            Self::Protobuf => Bytes::from(openapi::to_protobuf(object).unwrap_or_default()),
        }
    }

    /// An event of a watch whose object is of a type that is known.
    pub(crate) fn event(self, type_: &str, object: &Value) -> Bytes {
        match self {
            Self::Json => watch_event::line(type_, object),
            Self::Protobuf => Bytes::from(openapi::frame(type_, &self.whole(object))),
        }
    }

    /// A line that a fault puts into a watch of objects `of` this type, with its line feed: as the frame that comes
    /// closest to it, so that the same faults meet watches of both formats.
    pub(crate) fn foreign_line(self, line: &Bytes, of: Option<&Type>) -> Bytes {
        if self == Self::Json {
            return line.clone();
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let event: Value = serde_json::from_slice(text).unwrap_or_default();
        let Some(type_) = event["type"].as_str() else {
            return Bytes::from([&(text.len() as u32).to_be_bytes()[..], text].concat());
        };
        let object = &event["object"];
        let said = |name: &str| object[name].as_str().unwrap_or_default();
        let of = Type::of_object(said("apiVersion"), said("kind")).or(of);
        let message = match object {
            Value::Null => return Bytes::from(openapi::frame(type_, b"")),
            Value::Object(_) => of.map(|of| openapi::message(of, object)).unwrap_or_default(),
            other => other.to_string().into_bytes(),
        };
        Bytes::from(openapi::frame(type_, &openapi::envelope(said("apiVersion"), said("kind"), &message)))
    }
}
