//! From kinds to resources, as a server knows them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube_client::discovery::{self, ApiGroup, Scope};
use kube_client::error::DiscoveryError;
use kube_client::{Client, Error};
use kube_core::ApiResource;
use kube_core::discovery::ApiCapabilities;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Finds how a server serves a kind: its plural, its preferred version, whether its objects live in namespaces. Cloning gives
/// another handle to the same memory.
///
/// It asks for nothing before it is asked; then for one group, and remembers it. A kind that it does not know makes
/// it ask again, so that a resource that is defined later is found without a restart, and one that is gone is forgotten.
/// Several who miss the same at the same time ask once, and a group that does not answer holds up no other one.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::RestMapper;
///
/// let server = ApiServer::start().await;
/// let mapper = RestMapper::new(server.client());
/// let deployments = mapper.kind("apps", "Deployment").await?;
/// assert_eq!(deployments.resource.plural, "deployments");
/// assert!(deployments.is_namespaced);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RestMapper {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    /// Those that are known or just being asked for. Nothing is called under its lock.
    groups: Mutex<HashMap<String, Arc<Group>>>,
}

struct Group {
    /// One permit, held while the server is asked for this group: one after the other. Never closed.
    asking: Semaphore,
    /// Nothing is called under its lock.
    answer: Mutex<Answer>,
}

impl Default for Group {
    fn default() -> Self {
        Self { asking: Semaphore::new(1), answer: Mutex::default() }
    }
}

/// What the server said last.
#[derive(Clone, Default)]
struct Answer {
    /// `None` where there is no such group, or nobody has asked yet.
    group: Option<Arc<ApiGroup>>,
    /// How often it has answered.
    count: u64,
}

/// How a server serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

impl Mapping {
    /// One that is known without asking.
    pub fn new(resource: ApiResource, is_namespaced: bool) -> Self {
        Self { resource, is_namespaced }
    }
}

/// Why there is no mapping.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The server serves no such thing: it is not defined, or not yet.
    #[error("the server serves no {what} in the group {group:?}; is its definition installed?")]
    NoMatch {
        /// What was asked for: a kind, or a plural; with the version if one was named.
        what: String,
        /// The group; empty for the core group.
        group: String,
    },
    /// The server did not answer.
    #[error("cannot discover the group {group:?}: {source}")]
    Discovery {
        /// The group.
        group: String,
        /// Why.
        source: Box<Error>,
    },
}

impl MapError {
    /// Whether the server serves no such thing, as far as it says.
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch { .. })
    }
}

impl RestMapper {
    /// Asks the server of this client.
    pub fn new(client: Client) -> Self {
        Self { shared: Arc::new(Shared { client, groups: Mutex::default() }) }
    }

    /// The resource of a kind in the version that the server prefers. Cancel-safe.
    ///
    /// # Errors
    /// There is none, or the server does not answer.
    pub async fn kind(&self, group: &str, kind: &str) -> Result<Mapping, MapError> {
        self.find(group, kind, |known| known.recommended_kind(kind)).await
    }

    /// The resource of a kind in one version. Cancel-safe.
    ///
    /// # Errors
    /// As of [`kind`](Self::kind).
    pub async fn kind_in(&self, group: &str, version: &str, kind: &str) -> Result<Mapping, MapError> {
        let what = format!("{version} {kind}");
        self.find(group, &what, |known| first(known.versioned_resources(version), |found| found.kind == kind)).await
    }

    /// The resource of a plural name in the version that the server prefers. Cancel-safe.
    ///
    /// # Errors
    /// As of [`kind`](Self::kind).
    pub async fn resource(&self, group: &str, plural: &str) -> Result<Mapping, MapError> {
        self.find(group, plural, |known| first(known.recommended_resources(), |found| found.plural == plural)).await
    }

    /// Forgets a group, so that it is asked for anew.
    pub fn forget(&self, group: &str) {
        let forgotten = self.shared.groups.lock().remove(group);
        drop(forgotten);
    }

    async fn find(
        &self,
        group: &str,
        what: &str,
        look: impl Fn(&ApiGroup) -> Option<(ApiResource, ApiCapabilities)>,
    ) -> Result<Mapping, MapError> {
        let using = self.using(group);
        let before = using.group.answer.lock().clone();
        if let Some(found) = before.group.as_deref().and_then(&look) {
            return Ok(mapping(found));
        }
        let _asking = using.group.asking.acquire().await;
        let now = using.group.answer.lock().clone();
        // Somebody may have asked since.
        let known = if now.count > before.count { now.group } else { self.ask(group, &using.group).await? };
        known
            .as_deref()
            .and_then(look)
            .map(mapping)
            .ok_or_else(|| MapError::NoMatch { what: what.to_owned(), group: group.to_owned() })
    }

    /// Keeps an entry for a group for as long as this lives.
    fn using<'a>(&'a self, name: &'a str) -> Using<'a> {
        let mut groups = self.shared.groups.lock();
        let group = match groups.get(name) {
            Some(group) => Arc::clone(group),
            None => Arc::clone(groups.entry(name.to_owned()).or_default()),
        };
        drop(groups);
        Using { mapper: self, name, group }
    }

    /// Asks the server, and remembers what it says; also that there is no such group any more.
    async fn ask(&self, name: &str, group: &Group) -> Result<Option<Arc<ApiGroup>>, MapError> {
        let found = match discovery::group(&self.shared.client, name).await {
            Ok(found) => Some(Arc::new(found)),
            Err(Error::Discovery(DiscoveryError::MissingApiGroup(_) | DiscoveryError::EmptyApiGroup(_))) => None,
            Err(source) => return Err(MapError::Discovery { group: name.to_owned(), source: Box::new(source) }),
        };
        let mut answer = group.answer.lock();
        let count = answer.count + 1;
        let before = std::mem::replace(&mut *answer, Answer { group: found.clone(), count });
        drop(answer);
        drop(before);
        Ok(found)
    }
}

/// Somebody who asks for a group. The last one takes the entry along where there is no such group: names come from anywhere.
struct Using<'a> {
    mapper: &'a RestMapper,
    name: &'a str,
    group: Arc<Group>,
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        let mut groups = self.mapper.shared.groups.lock();
        // The table's and this one.
        let is_last = Arc::strong_count(&self.group) <= 2 && self.group.answer.lock().group.is_none();
        let is_there = groups.get(self.name).is_some_and(|group| Arc::ptr_eq(group, &self.group));
        let gone = if is_last && is_there { groups.remove(self.name) } else { None };
        let left = std::mem::take(&mut self.group);
        if is_there {
            // Under the lock, or of two that leave at one moment each would take the other for one that stays. There is
            // another reference.
            drop(left);
            drop(groups);
        } else {
            drop(groups);
            drop(left);
        }
        drop(gone);
    }
}

fn first(
    resources: Vec<(ApiResource, ApiCapabilities)>,
    wanted: impl Fn(&ApiResource) -> bool,
) -> Option<(ApiResource, ApiCapabilities)> {
    resources.into_iter().find(|(resource, _)| wanted(resource))
}

fn mapping((resource, capabilities): (ApiResource, ApiCapabilities)) -> Mapping {
    Mapping { resource, is_namespaced: capabilities.scope == Scope::Namespaced }
}

impl fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<_> = self.shared.groups.lock().keys().cloned().collect();
        groups.sort_unstable();
        f.debug_tuple("RestMapper").field(&groups).finish()
    }
}

#[cfg(test)]
mod tests;
