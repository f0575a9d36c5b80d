//! PURE. Which requests a fault or an access rule is about.

use crate::{ResourceName, Verb};

/// What faults and access rules know of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestInfo {
    /// `None` for what is no request for objects.
    pub(crate) verb: Option<Verb>,
    pub(crate) resource: Option<ResourceName>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    /// A watch that asks for the initial events and their mark.
    pub(crate) streaming_list: bool,
    /// A list with a continue token.
    pub(crate) continuation: bool,
}

/// A condition on requests; without any, all requests meet it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a condition does nothing until it is given to a fault or an access rule"]
pub struct Matching {
    verbs: Vec<Verb>,
    resource: Option<ResourceName>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    streaming_list: Option<bool>,
    continuation: Option<bool>,
}

impl Matching {
    /// All requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests with this verb; named more than once, with any of them.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Requests for this resource, such as `"pods"` or `"apps/v1/deployments"`.
    pub fn resource(mut self, resource: impl Into<ResourceName>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Requests in this namespace; `""` for those in none or in all.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Requests for the object of this name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Requests of this user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Watches that ask for `sendInitialEvents` (`true`), or requests that do not (`false`).
    pub fn streaming_list(mut self, streaming: bool) -> Self {
        self.streaming_list = Some(streaming);
        self
    }

    /// Lists that go on with a continue token (`true`), or requests without one (`false`).
    pub fn continuation(mut self, continuation: bool) -> Self {
        self.continuation = Some(continuation);
        self
    }

    pub(crate) fn meets(&self, request: &RequestInfo) -> bool {
        (self.verbs.is_empty() || request.verb.is_some_and(|verb| self.verbs.contains(&verb)))
            && (self.resource.is_none() || self.resource == request.resource)
            && self.namespace.as_deref().is_none_or(|namespace| request.namespace.as_deref().unwrap_or("") == namespace)
            && self.name.as_ref().is_none_or(|name| *name == request.name)
            && (self.user.is_none() || self.user == request.user)
            && self.streaming_list.is_none_or(|streaming| streaming == request.streaming_list)
            && self.continuation.is_none_or(|continuation| continuation == request.continuation)
    }
}
