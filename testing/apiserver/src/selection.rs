//! PURE. Which objects a list, a watch or a delete of a collection is about.

use crate::fields::is_selectable;
use crate::route::Query;
use crate::stored::Stored;
use crate::{Resource, Status};

/// A namespace, a label selector and a field selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// `None` for all.
    pub(crate) namespace: Option<String>,
    labels: Vec<(String, bool, String)>,
    fields: Vec<(String, bool, String)>,
}

impl Selection {
    /// What a request's path and query select.
    pub(crate) fn parse(resource: &Resource, namespace: Option<&str>, query: &Query) -> Result<Self, Status> {
        let labels = parse(query.text("labelSelector"))?;
        let fields = parse(query.text("fieldSelector"))?;
        if let Some((field, _, _)) = fields.iter().find(|(field, _, _)| !is_selectable(resource, field)) {
            return Err(Status::bad_request(format!("field label not supported: {field}")));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), labels, fields })
    }

    /// Whether a selector narrows the collection.
    pub(crate) fn has_selectors(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key.namespace() == namespace)
            && self.labels.iter().all(|(name, equal, value)| (object.labels.get(name) == Some(value)) == *equal)
            && self.fields.iter().all(|(name, equal, value)| (field(object, name) == value) == *equal)
    }
}

fn field<'a>(object: &'a Stored, name: &str) -> &'a str {
    match name {
        "metadata.name" => object.key.name(),
        "metadata.namespace" => object.key.namespace(),
        _ => object.fields.get(name).unwrap_or_default(),
    }
}

fn parse(text: Option<&str>) -> Result<Vec<(String, bool, String)>, Status> {
    let parts = text.into_iter().flat_map(|text| text.split(',')).filter(|part| !part.is_empty());
    let part = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let equal = !name.ends_with('!');
        Some((name.trim_end_matches('!').to_owned(), equal, value.trim_start_matches('=').to_owned()))
    };
    parts.map(|text| part(text).ok_or_else(|| Status::bad_request(format!("invalid selector: {text:?}")))).collect()
}
