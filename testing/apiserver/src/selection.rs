//! PURE. Which objects a list, a watch or a delete of a collection is about.

use kubewire_indexer::{FieldSelector, LabelSelector};

use crate::fields::is_selectable;
use crate::route::Query;
use crate::stored::Stored;
use crate::{Resource, Status};

/// A namespace, a label selector and a field selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// `None` for all.
    pub(crate) namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// What a request's path and query select.
    pub(crate) fn parse(resource: &Resource, namespace: Option<&str>, query: &Query) -> Result<Self, Status> {
        let labels = query.get("labelSelector").unwrap_or_default().parse();
        let labels: LabelSelector =
            labels.map_err(|error| Status::bad_request(format!("unable to parse the label selector: {error}")))?;
        let fields = query.get("fieldSelector").unwrap_or_default().parse();
        let fields: FieldSelector =
            fields.map_err(|error| Status::bad_request(format!("unable to parse the field selector: {error}")))?;
        let unknown = fields.requirements().iter().find(|requirement| !is_selectable(resource, &requirement.field));
        if let Some(requirement) = unknown {
            return Err(Status::bad_request(format!("field label not supported: {}", requirement.field)));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), labels, fields })
    }

    /// Whether a selector narrows the collection.
    pub(crate) fn has_selectors(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key.namespace() == namespace)
            && self.labels.matches(|name| object.labels.get(name))
            && self.fields.matches(|name| match name {
                "metadata.name" => Some(object.key.name()),
                "metadata.namespace" => Some(object.key.namespace()),
                _ => object.fields.get(name),
            })
    }
}
