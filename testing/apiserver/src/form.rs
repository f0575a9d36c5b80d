//! PURE. In which form a client wants objects: whole, or their metadata only.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::stored::Stored;
use crate::watch_event::{self, EventKind};
use crate::{Resource, Status};

/// The form of the objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

impl Form {
    /// The first form of an `Accept` header that the server can give.
    pub(crate) fn negotiate(accept: Option<&str>) -> Result<Self, Status> {
        let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else { return Ok(Self::Whole) };
        accept.split(',').find_map(Self::of_media_range).ok_or_else(|| {
            let message = "only the following media types are accepted: application/json";
            Status::new(406, "NotAcceptable", message)
        })
    }

    fn of_media_range(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        if !["application/json", "application/*", "*/*"].contains(&parts.next()?) {
            return None;
        }
        let (mut as_, mut group) = ("", "");
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => as_ = value,
                "g" => group = value,
                _ => {}
            }
        }
        match (as_, group) {
            ("", _) => Some(Self::Whole),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io") => Some(Self::Metadata),
            _ => None,
        }
    }

    /// Kind and version of a list in this form.
    pub(crate) fn list_type(self, resource: &Resource) -> (String, String) {
        match self {
            Self::Whole => (resource.list_kind(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        }
    }

    /// Appends an item of a list.
    pub(crate) fn write_item(self, resource: &Resource, object: &Stored, out: &mut Vec<u8>) {
        match self {
            Self::Whole => object.list_item(resource.custom).iter().for_each(|part| out.extend_from_slice(part)),
            Self::Metadata => out.extend_from_slice(&self.convert(object.object())),
        }
    }

    /// One object.
    pub(crate) fn convert(self, object: Bytes) -> Bytes {
        match self {
            Self::Whole => object,
            Self::Metadata => metadata_only(&object).map_or(object, Bytes::from),
        }
    }

    /// The line of an event in one or two parts.
    pub(crate) fn event(self, resource: &Resource, kind: EventKind, object: &Stored) -> (Bytes, Option<Bytes>) {
        match self {
            Self::Whole => object.event(kind),
            Self::Metadata => {
                let _ = resource;
                (wrap(kind.prefix(), &self.convert(object.object())), None)
            }
        }
    }

    /// The line of an event whose object is whole, in this form.
    pub(crate) fn convert_line(self, resource: &Resource, line: Bytes) -> Bytes {
        let _ = resource;
        let Self::Metadata = self else { return line };
        let prefix = EventKind::Deleted.prefix();
        let Some(object) = line.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(b"}\n")) else { return line };
        wrap(prefix, &self.convert(Bytes::copy_from_slice(object)))
    }

    /// A bookmark.
    pub(crate) fn bookmark(self, resource: &Resource, version: u64, initial_events_end: bool) -> Bytes {
        match self {
            Self::Whole => watch_event::bookmark(resource, version, initial_events_end),
            Self::Metadata => {
                let kind = "PartialObjectMetadata";
                let object = watch_event::bookmark_object(kind, "meta.k8s.io/v1", version, initial_events_end);
                watch_event::line("BOOKMARK", &object)
            }
        }
    }
}

fn wrap(prefix: &[u8], object: &[u8]) -> Bytes {
    Bytes::from([prefix, object, b"}\n"].concat())
}

fn metadata_only(object: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Partial<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let partial: Partial<'_> = serde_json::from_slice(object).ok()?;
    let head = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;
    Some([&head[..], partial.metadata.get().as_bytes(), b"}"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_can_be_given_is_taken() {
        for (accept, expected) in [
            (None, Some(Form::Whole)),
            (Some(""), Some(Form::Whole)),
            (Some("*/*"), Some(Form::Whole)),
            (Some("application/vnd.kubernetes.protobuf, application/json"), Some(Form::Whole)),
            (Some("application/vnd.kubernetes.protobuf"), None),
            (Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), Some(Form::Metadata)),
            (
                Some("application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1,application/json"),
                Some(Form::Metadata),
            ),
            (Some("application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json"), Some(Form::Whole)),
        ] {
            assert_eq!(Form::negotiate(accept).ok(), expected, "{accept:?}");
        }
    }
}
