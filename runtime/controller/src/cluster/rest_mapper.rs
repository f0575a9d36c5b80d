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
/// It asks for nothing before it is asked; then for one group at a time, and remembers it. A kind that it does not know makes
/// it ask again, so that a resource that is defined later is found without a restart, and one that is gone is forgotten.
/// Several who miss the same at the same time ask once.
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
    /// Nothing is called under its lock.
    groups: Mutex<HashMap<String, Known>>,
    /// One permit, held while a server is asked: one after the other. Never closed.
    asking: Semaphore,
}

#[derive(Clone)]
struct Known {
    group: Arc<ApiGroup>,
    /// How often it was asked for.
    generation: u64,
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
        Self { shared: Arc::new(Shared { client, groups: Mutex::default(), asking: Semaphore::new(1) }) }
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
        let before = self.known(group);
        if let Some(found) = before.as_ref().and_then(|known| look(&known.group)) {
            return Ok(mapping(found));
        }
        let _asking = self.shared.asking.acquire().await;
        let generation = before.map_or(0, |known| known.generation);
        let known = match self.known(group) {
            // Somebody has asked since.
            Some(known) if known.generation > generation => Some(known.group),
            _ => self.ask(group, generation + 1).await?,
        };
        known
            .and_then(|known| look(&known))
            .map(mapping)
            .ok_or_else(|| MapError::NoMatch { what: what.to_owned(), group: group.to_owned() })
    }

    fn known(&self, group: &str) -> Option<Known> {
        self.shared.groups.lock().get(group).cloned()
    }

    /// Asks the server, and remembers what it says; also that there is no such group any more.
    async fn ask(&self, group: &str, generation: u64) -> Result<Option<Arc<ApiGroup>>, MapError> {
        match discovery::group(&self.shared.client, group).await {
            Ok(found) => {
                let found = Arc::new(found);
                let known = Known { group: Arc::clone(&found), generation };
                let before = self.shared.groups.lock().insert(group.to_owned(), known);
                drop(before);
                Ok(Some(found))
            }
            Err(Error::Discovery(DiscoveryError::MissingApiGroup(_) | DiscoveryError::EmptyApiGroup(_))) => {
                self.forget(group);
                Ok(None)
            }
            Err(source) => Err(MapError::Discovery { group: group.to_owned(), source: Box::new(source) }),
        }
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
