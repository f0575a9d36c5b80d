//! PURE. In which form a client wants objects: whole, their metadata only, or as rows of a table.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::accept::Accepted;
use crate::format::Format;
use crate::list::Listed;
use crate::openapi::{self, Type};
use crate::stored::Stored;
use crate::table::{IncludeObject, Printer};
use crate::watch_event::{self, EventKind};
use crate::{Resource, Status};

/// The form of the objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) view: View,
    pub(crate) format: Format,
}

/// What of the objects is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// They, as they are.
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// Rows of a `Table`.
    Table(IncludeObject),
}

impl Form {
    /// The first form of an `Accept` header that the server can give of this resource. `include_object` is the query's
    /// parameter, which only tables read.
    pub(crate) fn negotiate(accept: &str, include_object: &str, resource: &Resource) -> Result<Self, Status> {
        let speaks = |(kind, group, version): (&str, &str, &str)| {
            let is_known = ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"].contains(&kind);
            is_known && group == "meta.k8s.io" && ["v1", "v1beta1"].contains(&version)
        };
        let has_protobuf = type_of(resource).is_some();
        let has = |format, kind: Option<&str>| match (format, kind) {
            (Format::Json, _) => true,
            (Format::Protobuf, None) => has_protobuf,
            (Format::Protobuf, Some(kind)) => kind != "Table",
        };
        let known = Accepted::all(accept).filter(|accepted| accepted.kind.is_none_or(speaks));
        let chosen = known.filter_map(|accepted| Some((Format::of(&accepted)?, accepted.kind.map(|kind| kind.0))));
        let Some((format, kind)) = chosen.into_iter().find(|(format, kind)| has(*format, *kind)) else {
            let protobuf = if has_protobuf { ", application/vnd.kubernetes.protobuf" } else { "" };
            let message = format!("only the following media types are accepted: application/json{protobuf}");
            return Err(Status::new(406, "NotAcceptable", message));
        };
        let view = match kind {
            None => View::Whole,
            Some("Table") => IncludeObject::parse(include_object).map(View::Table).map_err(Status::bad_request)?,
            Some(_) => View::Metadata,
        };
        Ok(Self { view, format })
    }

    /// Kind and version of a list in this form.
    pub(crate) fn list_type(self, resource: &Resource) -> (String, String) {
        match self.view {
            View::Whole => (resource.list_kind(), resource.api_version()),
            View::Metadata => ("PartialObjectMetadataList".to_owned(), META.to_owned()),
            View::Table(_) => ("Table".to_owned(), META.to_owned()),
        }
    }
}

/// The type of a built-in resource's objects, of which there is protobuf.
fn type_of(resource: &Resource) -> Option<&'static Type> {
    if resource.custom { None } else { Type::of_kind(&resource.group, &resource.version, &resource.kind) }
}

const META: &str = "meta.k8s.io/v1";

/// Brings the objects of one answer into its form.
pub(crate) struct Renderer {
    resource: Arc<Resource>,
    format: Format,
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
        let how = match form.view {
            View::Whole => How::Whole,
            View::Metadata => How::Metadata,
            View::Table(include) => How::Table { printer: Printer::new(&resource), include, columns_due: true },
        };
        Self { resource, format: form.format, how }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The type of the messages in an answer in protobuf.
    pub(crate) fn message_type(&self) -> Option<&'static Type> {
        match self.how {
            How::Whole => type_of(&self.resource),
            How::Metadata => Type::metadata_only(),
            How::Table { .. } => None,
        }
    }

    /// The object as a message without an envelope. Made when it is first wanted as a whole, shared after that.
    pub(crate) fn message(&self, object: &Stored) -> Bytes {
        let make = || {
            let message = self.message_type().map(|of| openapi::message(of, &object.to_value()));
            Bytes::from(message.unwrap_or_default())
        };
        if matches!(self.how, How::Whole) { object.message(make) } else { make() }
    }

    /// A message in its envelope.
    fn envelope(&self, message: &[u8]) -> Vec<u8> {
        match self.how {
            How::Whole => openapi::envelope(&self.resource.api_version(), &self.resource.kind, message),
            _ => openapi::envelope(META, "PartialObjectMetadata", message),
        }
    }

    /// Appends an item of a list in JSON that is no table.
    pub(crate) fn write_item(&mut self, object: &Stored, out: &mut Vec<u8>) {
        match self.how {
            How::Whole => object.list_item(self.resource.custom).iter().for_each(|part| out.extend_from_slice(part)),
            _ => out.extend_from_slice(&self.json(object.object())),
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

    /// One object, from its JSON.
    pub(crate) fn object(&mut self, object: Bytes) -> Bytes {
        match self.format {
            Format::Json => self.json(object),
            Format::Protobuf => Bytes::from(self.protobuf(&object)),
        }
    }

    /// One object in its envelope, from its JSON.
    fn protobuf(&self, object: &[u8]) -> Vec<u8> {
        // It was written by this server, so it can be read.
        let object: Value = serde_json::from_slice(object).unwrap_or_default();
        self.envelope(&self.message_type().map(|of| openapi::message(of, &object)).unwrap_or_default())
    }

    fn json(&mut self, object: Bytes) -> Bytes {
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

    /// The line of an event in one or two parts; or its frame.
    pub(crate) fn event(&mut self, kind: EventKind, object: &Stored) -> (Bytes, Option<Bytes>) {
        match (self.format, &self.how) {
            (Format::Protobuf, _) => {
                (Bytes::from(openapi::frame(kind.as_str(), &self.envelope(&self.message(object)))), None)
            }
            (_, How::Whole) => object.event(kind),
            _ => (watch_event::wrap(kind, &self.json(object.object())), None),
        }
    }

    /// The line of a `DELETED` event that holds the whole object, in this form.
    pub(crate) fn deletion(&mut self, line: Bytes) -> Bytes {
        let object = watch_event::object_of(EventKind::Deleted, &line);
        match (self.format, &self.how) {
            (Format::Protobuf, _) => Bytes::from(openapi::frame(EventKind::Deleted.as_str(), &self.protobuf(&object))),
            (_, How::Whole) => line,
            _ => watch_event::wrap(EventKind::Deleted, &self.json(object)),
        }
    }

    /// A bookmark.
    pub(crate) fn bookmark(&self, version: u64, initial_events_end: bool) -> Bytes {
        let bookmark = |kind, api_version| {
            let object = watch_event::bookmark(kind, api_version, version, initial_events_end);
            self.format.event("BOOKMARK", &object)
        };
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
        let registry = crate::Registry::default();
        let pods = registry.get(&"pods".into()).unwrap();
        let custom = Resource::custom("example.com", "v1", "Thing", "things");
        let form = |view, format| Some(Form { view, format });
        let whole = form(View::Whole, Format::Json);
        let protobuf = form(View::Whole, Format::Protobuf);
        let metadata = form(View::Metadata, Format::Json);
        let table = form(View::Table(IncludeObject::Metadata), Format::Json);
        let protobuf_metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        // An `Accept` header; what it gets of pods, and of a custom resource.
        for (accept, built_in, other) in [
            ("", whole, whole),
            ("*/*", whole, whole),
            ("application/json,application/vnd.kubernetes.protobuf", whole, whole),
            ("application/vnd.kubernetes.protobuf, application/json", protobuf, whole),
            ("application/vnd.kubernetes.protobuf;stream=watch", protobuf, None),
            ("application/yaml", None, None),
            (protobuf_metadata, form(View::Metadata, Format::Protobuf), form(View::Metadata, Format::Protobuf)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", metadata, metadata),
            ("application/json; as=PartialObjectMetadataList; g=meta.k8s.io; v=v1,*/*", metadata, metadata),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table, table),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", whole, whole),
            ("application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json", whole, whole),
        ] {
            assert_eq!(Form::negotiate(accept, "", pods).ok(), built_in, "{accept:?}");
            assert_eq!(Form::negotiate(accept, "", &custom).ok(), other, "{accept:?}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let with_objects = Form::negotiate(table, "Object", pods).unwrap();
        assert_eq!(with_objects.view, View::Table(IncludeObject::Object));
        assert_eq!(Form::negotiate(table, "Everything", pods).unwrap_err().code, 400);
    }
}
