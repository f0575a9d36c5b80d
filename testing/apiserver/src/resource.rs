//! What the server serves: one [`Resource`] for each kind, and the [`Registry`] of them all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

/// A text that is either built in or given by a user.
type Text = Cow<'static, str>;

/// Group, version and plural name: what a path of the API names.
///
/// It parses from and prints as the last part of a path: `v1/pods`, `apps/v1/deployments`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceName {
    /// Empty for the core group.
    pub group: Text,
    /// Such as `v1`.
    pub version: Text,
    /// Such as `pods`.
    pub plural: Text,
}

impl ResourceName {
    /// A name of these parts; an empty group is the core group.
    pub fn new(group: impl Into<Text>, version: impl Into<Text>, plural: impl Into<Text>) -> Self {
        Self { group: group.into(), version: version.into(), plural: plural.into() }
    }
}

impl std::fmt::Display for ResourceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.plural)
    }
}

/// `"pods"` and `"v1/pods"` are the core resource, `"apps/v1/deployments"` one of a group.
impl From<&str> for ResourceName {
    fn from(text: &str) -> Self {
        let mut parts = text.rsplitn(3, '/');
        let plural = parts.next().unwrap_or_default().to_owned();
        let version = parts.next().unwrap_or("v1").to_owned();
        let group = parts.next().unwrap_or_default().to_owned();
        Self::new(group, version, plural)
    }
}

impl From<&Self> for ResourceName {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

/// One column of `kubectl get`, as a CustomResourceDefinition's `additionalPrinterColumns` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrinterColumn {
    /// The title.
    pub name: Text,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: Text,
    /// Such as `.spec.replicas`.
    pub json_path: Text,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i32,
}

impl PrinterColumn {
    /// A column that is always shown.
    pub fn new(name: impl Into<Text>, type_: impl Into<Text>, json_path: impl Into<Text>) -> Self {
        Self { name: name.into(), type_: type_.into(), json_path: json_path.into(), priority: 0 }
    }
}

/// One resource that is served: its names, its scope, its subresources.
///
/// A custom resource is made by [`Resource::custom`] and refined by the methods after it, or made by
/// [`Resource::from_definition`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// Empty for the core group.
    pub group: Text,
    /// Such as `v1`.
    pub version: Text,
    /// Such as `Pod`.
    pub kind: Text,
    /// Such as `pods`: the name in paths.
    pub plural: Text,
    /// Such as `pod`.
    pub singular: Text,
    /// Such as `po`.
    pub short_names: Vec<Text>,
    /// Such as `all`.
    pub categories: Vec<Text>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether the status is a subresource: then a write to the object leaves the status alone, and a write to
    /// the status leaves the rest alone.
    pub status: bool,
    /// Whether `metadata.generation` counts the changes of what is wanted (everything but metadata and status).
    pub generation: bool,
    /// Whether objects are written by users at all; false for review kinds, which only know `create` and are not kept.
    pub stored: bool,
    /// Whether it is a custom resource: its list items carry `apiVersion` and `kind`, strategic merge patch is
    /// refused, its fields are not known.
    pub custom: bool,
    /// Columns of `kubectl get`; empty for name and age (built-in kinds have their own).
    pub columns: Vec<PrinterColumn>,
    /// The OpenAPI v3 schema of a custom resource's objects, where one was given.
    pub schema: Option<Value>,
}

impl Resource {
    fn built_in(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            status: false,
            generation: false,
            stored: true,
            custom: false,
            columns: Vec::new(),
            schema: None,
        }
    }

    /// A namespaced custom resource; its singular name is the kind in lower case.
    ///
    /// ```
    /// use kubewire_apiserver::Resource;
    ///
    /// let foos = Resource::custom("example.com", "v1", "Foo", "foos").with_status().with_short_names(["fo"]);
    /// assert_eq!(foos.api_version(), "example.com/v1");
    /// ```
    pub fn custom(
        group: impl Into<Text>,
        version: impl Into<Text>,
        kind: impl Into<Text>,
        plural: impl Into<Text>,
    ) -> Self {
        let kind = kind.into();
        Self {
            group: group.into(),
            version: version.into(),
            singular: kind.to_lowercase().into(),
            kind,
            plural: plural.into(),
            generation: true,
            custom: true,
            ..Self::built_in("", "", "", "")
        }
    }

    /// Of cluster scope instead of in namespaces.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// With the subresource `status`.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// With short names for kubectl.
    #[must_use]
    pub fn with_short_names<T: Into<Text>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.short_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// In categories, such as `all`.
    #[must_use]
    pub fn with_categories<T: Into<Text>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.categories = names.into_iter().map(Into::into).collect();
        self
    }

    /// With columns for `kubectl get`.
    #[must_use]
    pub fn with_columns(mut self, columns: impl IntoIterator<Item = PrinterColumn>) -> Self {
        self.columns = columns.into_iter().collect();
        self
    }

    /// With an OpenAPI v3 schema of its objects. It is published, its defaults are filled in, and it says what the lists and
    /// maps are for an apply; what it does not allow is not refused.
    #[must_use]
    pub fn with_schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    fn generation(mut self) -> Self {
        self.generation = true;
        self
    }

    /// Group, version and plural.
    pub fn name(&self) -> ResourceName {
        ResourceName::new(self.group.clone(), self.version.clone(), self.plural.clone())
    }

    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Such as `PodList`.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// `pods`, or `deployments.apps`: as error messages name it.
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Pod`, or `Deployment.apps`: as error messages name it.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.to_string() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// The verbs, as discovery names them.
    pub fn verbs(&self) -> &'static [&'static str] {
        if self.stored {
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        } else {
            &["create"]
        }
    }

    /// The subresources that are served; each has the verbs `get`, `patch` and `update`.
    pub fn subresources(&self) -> &'static [&'static str] {
        if self.status { &["status"] } else { &[] }
    }
}

/// All resources that a server serves, in the order of their registration, groups together.
#[derive(Clone, Debug)]
pub struct Registry {
    resources: Vec<Arc<Resource>>,
    by_name: HashMap<ResourceName, usize>,
}

impl Default for Registry {
    /// The built-in kinds.
    fn default() -> Self {
        let mut registry = Self { resources: Vec::new(), by_name: HashMap::new() };
        built_in().into_iter().for_each(|resource| registry.add(resource));
        registry
    }
}

impl Registry {
    /// Adds a resource; one of the same group, version and plural is replaced.
    pub fn add(&mut self, resource: Resource) {
        let name = resource.name();
        let resource = Arc::new(resource);
        if let Some(&at) = self.by_name.get(&name) {
            self.resources[at] = resource;
            return;
        }
        self.by_name.insert(name, self.resources.len());
        self.resources.push(resource);
    }

    /// The resource of this name.
    pub fn get(&self, name: &ResourceName) -> Option<&Arc<Resource>> {
        self.by_name.get(name).map(|&at| &self.resources[at])
    }

    /// Where the resource of this name stands in the order of registration.
    pub(crate) fn position(&self, name: &ResourceName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// All resources, in the order of their registration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// The group versions, each once, in the order of their first resource: `("", "v1")`, `("apps", "v1")`.
    pub fn group_versions(&self) -> Vec<(&str, &str)> {
        let mut seen = Vec::new();
        for resource in &self.resources {
            let group_version = (&*resource.group, &*resource.version);
            if !seen.contains(&group_version) {
                seen.push(group_version);
            }
        }
        seen
    }

    /// The resources of one group version, in the order of their registration.
    pub fn in_group_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + 'a {
        self.resources.iter().filter(move |resource| resource.group == group && resource.version == version)
    }
}

fn built_in() -> Vec<Resource> {
    let core = |kind, plural| Resource::built_in("", "v1", kind, plural);
    let apps = |kind, plural| Resource::built_in("apps", "v1", kind, plural).with_status().generation();
    let review = |group, kind, plural| {
        let resource = Resource::built_in(group, "v1", kind, plural);
        Resource { stored: false, ..resource }
    };
    let all = ["all"];
    vec![
        core("Pod", "pods").with_status().generation().with_short_names(["po"]).with_categories(all),
        core("ConfigMap", "configmaps").with_short_names(["cm"]),
        core("Secret", "secrets"),
        core("Service", "services").with_status().with_short_names(["svc"]).with_categories(all),
        core("Endpoints", "endpoints").with_short_names(["ep"]),
        core("Node", "nodes").cluster_scoped().with_status().with_short_names(["no"]),
        core("Namespace", "namespaces").cluster_scoped().with_status().with_short_names(["ns"]),
        core("ServiceAccount", "serviceaccounts").with_short_names(["sa"]),
        core("Event", "events").with_short_names(["ev"]),
        core("PersistentVolumeClaim", "persistentvolumeclaims").with_status().with_short_names(["pvc"]),
        core("PersistentVolume", "persistentvolumes").cluster_scoped().with_status().with_short_names(["pv"]),
        Resource::built_in("events.k8s.io", "v1", "Event", "events").with_short_names(["ev"]),
        apps("Deployment", "deployments").with_short_names(["deploy"]).with_categories(all),
        apps("ReplicaSet", "replicasets").with_short_names(["rs"]).with_categories(all),
        apps("StatefulSet", "statefulsets").with_short_names(["sts"]).with_categories(all),
        apps("DaemonSet", "daemonsets").with_short_names(["ds"]).with_categories(all),
        Resource::built_in("batch", "v1", "Job", "jobs").with_status().generation().with_categories(all),
        Resource::built_in("batch", "v1", "CronJob", "cronjobs")
            .with_status()
            .generation()
            .with_short_names(["cj"])
            .with_categories(all),
        Resource::built_in("coordination.k8s.io", "v1", "Lease", "leases"),
        Resource::built_in("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").generation(),
        review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews").cluster_scoped(),
        review("authentication.k8s.io", "TokenReview", "tokenreviews").cluster_scoped(),
        review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster_scoped(),
        review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews").cluster_scoped(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print() {
        for (text, group, version, plural, printed) in [
            ("pods", "", "v1", "pods", "v1/pods"),
            ("v1/pods", "", "v1", "pods", "v1/pods"),
            ("apps/v1/deployments", "apps", "v1", "deployments", "apps/v1/deployments"),
            ("example.com/v1/foos", "example.com", "v1", "foos", "example.com/v1/foos"),
        ] {
            let name = ResourceName::from(text);
            assert_eq!(name, ResourceName::new(group, version, plural), "{text}");
            assert_eq!(name.to_string(), printed);
        }
    }

    #[test]
    fn a_resource_registered_twice_is_there_once_and_the_later_one_counts() {
        let mut registry = Registry::default();
        let count = registry.iter().count();
        registry.add(Resource::custom("example.com", "v1", "Foo", "foos"));
        registry.add(Resource::custom("example.com", "v1", "Foo", "foos").with_status());
        assert_eq!(registry.iter().count(), count + 1);
        assert!(registry.get(&"example.com/v1/foos".into()).is_some_and(|foos| foos.status && foos.namespaced));
        assert_eq!(registry.group_versions().last(), Some(&("example.com", "v1")));
        assert_eq!(registry.in_group_version("example.com", "v1").count(), 1);
    }
}
