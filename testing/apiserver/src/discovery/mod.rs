//! What the server tells about itself: which groups, versions and resources there are, in the plain form (a document
//! for each group version) and in the aggregated one (all in two documents), which current clients ask for.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::accept::Accepted;
use crate::resource::{Registry, Resource};

const JSON: &str = "application/json";

/// An answer of the discovery API.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// The media type, which tells the client the form.
    pub(crate) content_type: &'static str,
    pub(crate) body: Value,
}

/// What `path` (`/api`, `/apis`, `/api/v1`, `/apis/G`, `/apis/G/V`) answers to a client that sends this `Accept`
/// header; `None`: there is no such group or version.
///
/// Made anew at each call, in O(resources).
pub(crate) fn document(registry: &Registry, path: &str, accept: &str) -> Option<Document> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["api"] | ["apis"] => {
            let core = parts[0] == "api";
            if let Some(aggregated) = Aggregated::wanted(accept) {
                return Some(aggregated.document(registry, core));
            }
            Some(plain(if core { api_versions(registry) } else { api_group_list(registry) }))
        }
        ["api", version] => resource_list(registry, "", version).map(plain),
        ["apis", group] if !group.is_empty() => {
            let mut body = Group::all(registry).into_iter().find(|known| known.name == group)?.to_plain();
            body["kind"] = "APIGroup".into();
            body["apiVersion"] = "v1".into();
            Some(plain(body))
        }
        ["apis", group, version] if !group.is_empty() => resource_list(registry, group, version).map(plain),
        _ => None,
    }
}

fn plain(body: Value) -> Document {
    Document { content_type: JSON, body }
}

/// One API group with its versions, the preferred first.
struct Group<'r> {
    /// Empty for the core group.
    name: &'r str,
    versions: Vec<&'r str>,
}

impl<'r> Group<'r> {
    /// In the order of registration; the core group too.
    fn all(registry: &'r Registry) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (name, version) in registry.group_versions() {
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.versions.push(version),
                None => groups.push(Self { name, versions: vec![version] }),
            }
        }
        groups.iter_mut().for_each(|group| group.versions.sort_by_key(|version| std::cmp::Reverse(priority(version))));
        groups
    }

    fn to_plain(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| json!({"groupVersion": group_version(self.name, version), "version": version}))
            .collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions[0]})
    }
}

/// Versions by their stability, then by their numbers: `v2` over `v1` over `v1beta2` over `v1beta1` over `v2alpha1` over
/// what is not such a name.
fn priority(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        for (word, rank) in [("alpha", 1), ("beta", 2)] {
            if let Some((major, minor)) = rest.split_once(word) {
                return Some((rank, major.parse().ok()?, minor.parse().ok()?));
            }
        }
        Some((3, rest.parse().ok()?, 0))
    };
    parse().unwrap_or_default()
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn api_versions(registry: &Registry) -> Value {
    let versions = Group::all(registry).into_iter().find(|group| group.name.is_empty()).map(|group| group.versions);
    json!({"kind": "APIVersions", "versions": versions.unwrap_or_default()})
}

fn api_group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> =
        Group::all(registry).iter().filter(|group| !group.name.is_empty()).map(Group::to_plain).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in registry.in_group_version(group, version) {
        let mut entry = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs(),
        });
        add_names(&mut entry, resource);
        resources.push(entry);
        resources.extend(resource.subresources().iter().map(|subresource| {
            json!({
                "name": format!("{}/{subresource}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": SUBRESOURCE_VERBS,
            })
        }));
    }
    let group_version = group_version(group, version);
    (!resources.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    })
}

const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

fn add_names(entry: &mut Value, resource: &Resource) {
    for (member, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            entry[member] = json!(names);
        }
    }
}

/// The aggregated form, in the two versions that clients ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aggregated {
    V2,
    V2Beta1,
}

impl Aggregated {
    const ALL: [Self; 2] = [Self::V2, Self::V2Beta1];

    fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2Beta1 => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        }
    }

    /// The form that the client asks for; `None`: the plain one, which is also the answer to what we do not speak.
    fn wanted(accept: &str) -> Option<Self> {
        let form = |kind: &str, group: &str, version: &str| {
            let ours = kind == "APIGroupDiscoveryList" && group == "apidiscovery.k8s.io";
            Self::ALL.into_iter().find(|form| ours && form.version() == version)
        };
        let accepted = Accepted::first(accept, |kind, group, version| form(kind, group, version).is_some())?;
        accepted.kind.and_then(|(kind, group, version)| form(kind, group, version))
    }

    fn document(self, registry: &Registry, core: bool) -> Document {
        let groups = Group::all(registry).into_iter().filter(|group| group.name.is_empty() == core);
        let items: Vec<Value> = groups.map(|group| aggregated_group(registry, &group)).collect();
        let api_version = format!("apidiscovery.k8s.io/{}", self.version());
        let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
        Document { content_type: self.content_type(), body }
    }
}

fn aggregated_group(registry: &Registry, group: &Group<'_>) -> Value {
    let versions = group.versions.iter().map(|version| {
        let resources = registry.in_group_version(group.name, version).map(|resource| aggregated_resource(resource));
        json!({"version": version, "resources": resources.collect::<Vec<_>>(), "freshness": "Current"})
    });
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs(),
    });
    add_names(&mut entry, resource);
    let subresources = resource.subresources().iter();
    let subresources: Vec<Value> = subresources
        .map(|name| json!({"subresource": name, "responseKind": kind, "verbs": SUBRESOURCE_VERBS}))
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
