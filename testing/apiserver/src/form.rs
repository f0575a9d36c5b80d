//! PURE. In which form a client wants objects: whole, their metadata only, or as rows of a table.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::accept::Accepted;
use crate::list::Listed;
use crate::stored::Stored;
use crate::table::{IncludeObject, Printer};
use crate::watch_event::{self, EventKind};
use crate::{Resource, Status};

/// The form of the objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// Rows of a `Table`.
    Table(IncludeObject),
}

impl Form {
    /// The first form of an `Accept` header that the server can give. `include_object` is the query's parameter, which
    /// only tables read.
    pub(crate) fn negotiate(accept: &str, include_object: &str) -> Result<Self, Status> {
        let speaks = |kind: &str, group: &str, version: &str| {
            let is_known = ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"].contains(&kind);
            is_known && group == "meta.k8s.io" && ["v1", "v1beta1"].contains(&version)
        };
        let Some(accepted) = Accepted::first(accept, speaks) else {
            let message = "only the following media types are accepted: application/json";
            return Err(Status::new(406, "NotAcceptable", message));
        };
        match accepted.kind {
            None => Ok(Self::Whole),
            Some(("Table", _, _)) => IncludeObject::parse(include_object).map(Self::Table).map_err(Status::bad_request),
            Some(_) => Ok(Self::Metadata),
        }
    }

    /// Kind and version of a list in this form.
    pub(crate) fn list_type(self, resource: &Resource) -> (String, String) {
        match self {
            Self::Whole => (resource.list_kind(), resource.api_version()),
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), META.to_owned()),
            Self::Table(_) => ("Table".to_owned(), META.to_owned()),
        }
    }
}

const META: &str = "meta.k8s.io/v1";

/// Brings the objects of one answer into its form.
pub(crate) struct Renderer {
    resource: Arc<Resource>,
    how: How,
}

enum How {
    Whole,
    Metadata,
    Table {
        printer: Printer,
        include: IncludeObject,
        /// Only the first table of a watch tells its columns.
        columns_due: bool,
    },
}

impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer").finish_non_exhaustive()
    }
}

impl Renderer {
    pub(crate) fn new(form: Form, resource: Arc<Resource>) -> Self {
        let how = match form {
            Form::Whole => How::Whole,
            Form::Metadata => How::Metadata,
            Form::Table(include) => How::Table { printer: Printer::new(&resource), include, columns_due: true },
        };
        Self { resource, how }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Appends an item of a list that is no table.
    pub(crate) fn write_item(&mut self, object: &Stored, out: &mut Vec<u8>) {
        match self.how {
            How::Whole => object.list_item(self.resource.custom).iter().for_each(|part| out.extend_from_slice(part)),
            _ => out.extend_from_slice(&self.object(object.object())),
        }
    }

    /// A whole list as a table: its rows are few compared to the objects, so it is made at once.
    ///
    /// Cost: reads every object.
    pub(crate) fn table(&self, listed: &Listed) -> Option<Bytes> {
        let How::Table { printer, include, .. } = &self.how else { return None };
        let now = Timestamp::now();
        let mut table = printer.table(listed.metadata(), true);
        table["rows"] = listed.items.iter().map(|object| printer.row(object.to_value(), *include, now)).collect();
        Some(Bytes::from(table.to_string()))
    }

    /// One object.
    pub(crate) fn object(&mut self, object: Bytes) -> Bytes {
        match &mut self.how {
            How::Whole => object,
            How::Metadata => metadata_only(&object).map_or(object, Bytes::from),
            How::Table { printer, include, columns_due } => {
                // It was written by this server, so it can be read.
                let object: Value = serde_json::from_slice(&object).unwrap_or_default();
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let mut table = printer.table(metadata, std::mem::take(columns_due));
                table["rows"] = json!([printer.row(object, *include, Timestamp::now())]);
                Bytes::from(table.to_string())
            }
        }
    }

    /// The line of an event in one or two parts.
    pub(crate) fn event(&mut self, kind: EventKind, object: &Stored) -> (Bytes, Option<Bytes>) {
        match self.how {
            How::Whole => object.event(kind),
            _ => (watch_event::wrap(kind, &self.object(object.object())), None),
        }
    }

    /// The line of a `DELETED` event that holds the whole object, in this form.
    pub(crate) fn deletion(&mut self, line: Bytes) -> Bytes {
        if matches!(self.how, How::Whole) {
            return line;
        }
        let object = watch_event::object_of(EventKind::Deleted, &line);
        watch_event::wrap(EventKind::Deleted, &self.object(object))
    }

    /// A bookmark.
    pub(crate) fn bookmark(&self, version: u64, initial_events_end: bool) -> Bytes {
        let bookmark = |kind, api_version| watch_event::bookmark(kind, api_version, version, initial_events_end);
        match &self.how {
            How::Whole => bookmark(&self.resource.kind, &self.resource.api_version()),
            How::Metadata => bookmark("PartialObjectMetadata", META),
            How::Table { .. } => bookmark("Table", META),
        }
    }
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
            ("", Some(Form::Whole)),
            ("*/*", Some(Form::Whole)),
            ("application/vnd.kubernetes.protobuf, application/json", Some(Form::Whole)),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(Form::Metadata)),
            ("application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1,*/*", Some(Form::Metadata)),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Some(Form::Table(IncludeObject::Metadata)),
            ),
            ("application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json", Some(Form::Whole)),
        ] {
            assert_eq!(Form::negotiate(accept, "").ok(), expected, "{accept:?}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(Form::negotiate(table, "Object").unwrap(), Form::Table(IncludeObject::Object));
        assert_eq!(Form::negotiate(table, "Everything").unwrap_err().code, 400);
    }
}
