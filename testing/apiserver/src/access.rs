//! PURE. Who may do what: nothing is checked until a test asks for it.

use std::collections::HashMap;

use crate::matching::{Matching, RequestInfo};
use crate::{Resource, Status, Verb};

/// Tokens, and rules that forbid.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// Users by token. Empty: every request is let in.
    users: HashMap<String, String>,
    forbidden: Vec<Matching>,
}

/// The user of a request without a token.
const ANONYMOUS: &str = "system:anonymous";

impl Access {
    pub(crate) fn require_token(&mut self, token: String, user: String) {
        self.users.insert(token, user);
    }

    pub(crate) fn revoke_token(&mut self, token: &str) {
        self.users.remove(token);
        if self.users.is_empty() {
            // Nobody's token: without any token left, everybody would be let in.
            self.users.insert(String::new(), ANONYMOUS.to_owned());
        }
    }

    pub(crate) fn forbid(&mut self, requests: Matching) {
        self.forbidden.push(requests);
    }

    pub(crate) fn allow_all(&mut self) {
        self.forbidden.clear();
        self.users.clear();
    }

    /// The user of a request with this `Authorization` header.
    pub(crate) fn authenticate(&self, authorization: Option<&str>) -> Result<String, Status> {
        let token = authorization.and_then(|text| text.strip_prefix("Bearer ")).map(str::trim);
        match token {
            _ if self.users.is_empty() => Ok("kubewire".to_owned()),
            Some(token) if !token.is_empty() => self.users.get(token).cloned().ok_or_else(Status::unauthorized),
            _ => Err(Status::unauthorized()),
        }
    }

    /// Whether a rule forbids this.
    pub(crate) fn is_forbidden(&self, request: &RequestInfo) -> bool {
        self.forbidden.iter().any(|rule| rule.meets(request))
    }

    /// The answer to a request that is forbidden.
    pub(crate) fn denial(resource: &Resource, verb: Verb, request: &RequestInfo) -> Status {
        let user = request.user.as_deref().unwrap_or(ANONYMOUS);
        let place = match &request.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let (plural, group) = (&resource.plural, &resource.group);
        let why = format!("User {user:?} cannot {verb} resource {plural:?} in API group {group:?} {place}");
        Status::forbidden(resource, &request.name, &why)
    }
}
