//! PURE. What a request asks for: from method, path and query to verb and resource.

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::{Registry, Resource, ResourceName, Status};

/// What a request does, in the words of access rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl Verb {
    /// As access rules write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parameters of a URL, decoded, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The first value of this parameter. An empty value is a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of this parameter where it says something.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// The number of this parameter, if it has one.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let parsed = self.text(name).map(|text| text.parse().map_err(|error: ParseIntError| (text, error))).transpose();
        parsed.map_err(|(text, error)| {
            let is_far = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
            let why = if is_far { "value out of range" } else { "invalid syntax" };
            Status::bad_request(format!("{name}: {text:?}: {why}: want a number"))
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| matches!(value, "true" | "1" | "True" | "TRUE" | "t" | "T"))
    }
}

/// A request for objects.
#[derive(Clone, Debug)]
pub(crate) struct ObjectRequest {
    pub(crate) resource: Arc<Resource>,
    pub(crate) verb: Verb,
    /// `None` for cluster scope, and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// Empty for a collection.
    pub(crate) name: String,
    /// `status`, or empty.
    pub(crate) subresource: String,
}

/// Where a request goes.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    Objects(ObjectRequest),
    /// Discovery, health, version, OpenAPI.
    Document,
}

/// Finds what `path` means. An error where it means nothing here.
pub(crate) fn route(registry: &Registry, method: &Method, path: &str, query: &Query) -> Result<Route, Status> {
    let segments: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => objects(registry, "", version, rest, method, query),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => {
            objects(registry, group, version, rest, method, query)
        }
        _ => Ok(Route::Document),
    }
}

fn objects(
    registry: &Registry,
    group: &str,
    version: &str,
    rest: &[&str],
    method: &Method,
    query: &Query,
) -> Result<Route, Status> {
    let find = |plural: &str| {
        let name = ResourceName::new(group.to_owned(), version.to_owned(), plural.to_owned());
        registry.get(&name).cloned().ok_or_else(Status::no_such_path)
    };
    let is_subresource = |name: &str| name == "status" || name == "finalize";
    let (namespace, plural, name, subresource) = match *rest {
        ["namespaces", namespace, subresource] if is_subresource(subresource) => {
            (None, "namespaces", namespace, subresource)
        }
        ["namespaces", namespace, plural] => (Some(namespace), plural, "", ""),
        ["namespaces", namespace, plural, name] => (Some(namespace), plural, name, ""),
        ["namespaces", namespace, plural, name, subresource] => (Some(namespace), plural, name, subresource),
        [plural] => (None, plural, "", ""),
        [plural, name] => (None, plural, name, ""),
        [plural, name, subresource] => (None, plural, name, subresource),
        _ => return Err(Status::no_such_path()),
    };
    let resource = find(plural)?;
    let is_collection = name.is_empty();
    let is_scope_right = match (resource.namespaced, namespace) {
        (true, Some(_)) => true,
        (true, None) => is_collection,
        (false, namespace) => namespace.is_none(),
    };
    if !is_scope_right || (!subresource.is_empty() && !resource.subresources().contains(&subresource)) {
        return Err(Status::no_such_path());
    }
    let verb = verb(method, is_collection, query).ok_or_else(Status::method_not_allowed)?;
    let is_allowed = match verb {
        Verb::Create => subresource.is_empty() && (namespace.is_some() || !resource.namespaced),
        Verb::Delete | Verb::DeleteCollection | Verb::List | Verb::Watch => resource.stored && subresource.is_empty(),
        Verb::Get | Verb::Update | Verb::Patch => resource.stored,
    };
    if !is_allowed {
        return Err(Status::method_not_allowed());
    }
    let namespace = namespace.map(str::to_owned);
    Ok(Route::Objects(ObjectRequest {
        resource,
        verb,
        namespace,
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    }))
}

fn verb(method: &Method, is_collection: bool, query: &Query) -> Option<Verb> {
    Some(match (method.as_str(), is_collection) {
        ("GET", true) if query.flag("watch") == Some(true) => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) => Verb::Get,
        ("POST", true) => Verb::Create,
        ("PUT", false) => Verb::Update,
        ("PATCH", false) => Verb::Patch,
        ("DELETE", false) => Verb::Delete,
        ("DELETE", true) => Verb::DeleteCollection,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(method: &str, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut registry = Registry::default();
        registry.add(Resource::custom("example.com", "v1", "Foo", "foos").with_status());
        match route(&registry, &method, path, &Query::parse(query)) {
            Ok(Route::Document) => "document".to_owned(),
            Ok(Route::Objects(r)) => {
                let namespace = r.namespace.as_deref().unwrap_or("*");
                format!("{} {} {namespace} {} {}", r.verb, r.resource.name(), r.name, r.subresource)
                    .trim_end()
                    .to_owned()
            }
            Err(status) => status.code.to_string(),
        }
    }

    #[test]
    fn paths_are_understood_as_the_real_server_does() {
        for (method, target, expected) in [
            ("GET", "/api", "document"),
            ("GET", "/apis/apps/v1", "document"),
            ("GET", "/version", "document"),
            ("GET", "/api/v1/pods", "list v1/pods *"),
            ("GET", "/api/v1/pods?watch=true", "watch v1/pods *"),
            ("GET", "/api/v1/pods?watch=1", "watch v1/pods *"),
            ("GET", "/api/v1/pods?watch=false", "list v1/pods *"),
            ("GET", "/api/v1/namespaces/ns/pods", "list v1/pods ns"),
            ("GET", "/api/v1/namespaces/ns/pods/p", "get v1/pods ns p"),
            ("PUT", "/api/v1/namespaces/ns/pods/p/status", "update v1/pods ns p status"),
            ("GET", "/api/v1/namespaces/ns/pods/p/log", "404"),
            ("GET", "/api/v1/pods/p", "404"),
            ("POST", "/api/v1/pods", "405"),
            ("POST", "/api/v1/namespaces/ns/pods", "create v1/pods ns"),
            ("GET", "/api/v1/namespaces", "list v1/namespaces *"),
            ("GET", "/api/v1/namespaces/ns", "get v1/namespaces * ns"),
            ("PATCH", "/api/v1/namespaces/ns/status", "patch v1/namespaces * ns status"),
            ("GET", "/api/v1/nodes/a%2fb", "get v1/nodes * a/b"),
            ("GET", "/api/v1/namespaces/ns/nodes", "404"),
            ("DELETE", "/apis/apps/v1/namespaces/ns/deployments/d", "delete apps/v1/deployments ns d"),
            ("DELETE", "/apis/apps/v1/namespaces/ns/deployments", "deletecollection apps/v1/deployments ns"),
            ("PATCH", "/apis/example.com/v1/namespaces/ns/foos/f/status", "patch example.com/v1/foos ns f status"),
            ("GET", "/apis/example.com/v2/foos", "404"),
            ("PUT", "/api/v1/namespaces/ns/pods", "405"),
            (
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                "create authorization.k8s.io/v1/selfsubjectaccessreviews *",
            ),
            ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "405"),
        ] {
            assert_eq!(routed(method, target), expected, "{method} {target}");
        }
    }
}
