//! PURE. Custom resources as their CustomResourceDefinitions describe them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PrinterColumn, Resource};

/// Why a definition cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// It is no CustomResourceDefinition of `apiextensions.k8s.io/v1`.
    #[error("this is no CustomResourceDefinition of apiextensions.k8s.io/v1: {0}")]
    Shape(#[from] serde_json::Error),
    /// None of its versions is the one that is stored.
    #[error("the definition of {0} has no version with `storage: true`")]
    NoStorageVersion(String),
}

/// As far as it is used here.
#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    plural: String,
    kind: String,
    singular: Option<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    storage: bool,
    #[serde(default)]
    schema: Value,
    #[serde(default)]
    subresources: Value,
    #[serde(default)]
    additional_printer_columns: Vec<Column>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    json_path: String,
    #[serde(default)]
    priority: i32,
}

impl Resource {
    /// The custom resource that a CustomResourceDefinition describes, in the version that is stored: names, scope, status,
    /// columns and schema. The definition is JSON, or any type that is written as it, such as k8s-openapi's, or what
    /// `CustomResourceExt::crd()` of kube gives.
    ///
    /// ```
    /// use kubewire_apiserver::Resource;
    /// use serde_json::json;
    ///
    /// let foos = Resource::from_definition(&json!({
    ///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    ///     "metadata": {"name": "foos.example.com"},
    ///     "spec": {
    ///         "group": "example.com", "scope": "Cluster",
    ///         "names": {"plural": "foos", "kind": "Foo", "shortNames": ["fo"]},
    ///         "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
    ///             "schema": {"openAPIV3Schema": {"type": "object"}}}],
    ///     },
    /// }))?;
    /// assert_eq!((foos.api_version().as_str(), foos.namespaced, foos.status), ("example.com/v1", false, true));
    /// # Ok::<(), kubewire_apiserver::DefinitionError>(())
    /// ```
    ///
    /// # Errors
    /// It is no definition, or says of no version that it is stored.
    pub fn from_definition(definition: &impl Serialize) -> Result<Self, DefinitionError> {
        let Definition { spec } = serde_json::from_value(serde_json::to_value(definition)?)?;
        let Some(version) = spec.versions.into_iter().find(|version| version.storage) else {
            return Err(DefinitionError::NoStorageVersion(format!("{}.{}", spec.names.plural, spec.group)));
        };
        let names = spec.names;
        let columns = version.additional_printer_columns.into_iter().map(|column| PrinterColumn {
            name: column.name.into(),
            type_: column.type_.into(),
            json_path: column.json_path.into(),
            priority: column.priority,
        });
        let mut resource = Self::custom(spec.group, version.name, names.kind, names.plural)
            .with_short_names(names.short_names)
            .with_categories(names.categories)
            .with_columns(columns);
        if let Some(singular) = names.singular.filter(|singular| !singular.is_empty()) {
            resource.singular = singular.into();
        }
        resource.namespaced = spec.scope == "Namespaced";
        resource.status = version.subresources["status"].is_object();
        resource.schema = version.schema.get("openAPIV3Schema").cloned();
        Ok(resource)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_that_is_stored_is_served_with_names_scope_status_columns_and_schema() {
        let schema = json!({"type": "object"});
        let definition = json!({"spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo", "singular": "one-foo", "shortNames": ["fo"], "categories": ["all"]},
            "versions": [
                {"name": "v1", "served": true, "storage": false},
                {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}]},
            ],
        }});
        let foos = Resource::from_definition(&definition).unwrap();
        let mut expected = Resource::custom("example.com", "v2", "Foo", "foos")
            .with_short_names(["fo"])
            .with_categories(["all"])
            .with_columns([PrinterColumn { priority: 1, ..PrinterColumn::new("N", "integer", ".spec.n") }])
            .with_schema(schema);
        expected.singular = "one-foo".into();
        assert_eq!(foos, expected);
    }

    #[test]
    fn what_is_no_definition_says_so() {
        let error = Resource::from_definition(&json!({"kind": "Pod"})).unwrap_err();
        assert!(error.to_string().contains("no CustomResourceDefinition"), "{error}");
        let none = json!({"spec": {"group": "g", "scope": "Cluster", "names": {"plural": "p", "kind": "K"},
            "versions": [{"name": "v1", "served": true, "storage": false}]}});
        let error = Resource::from_definition(&none).unwrap_err();
        assert!(error.to_string().contains("p.g has no version"), "{error}");
    }
}
