//! PURE. The whole state of the server under `&mut self`: the store, and the rules of writing to it (in
//! [`write`](crate::write)).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kubewire_indexer::ObjectKey;
use serde_json::json;

use crate::collection::HistoryLimits;
use crate::rng::Rng;
use crate::store::{CollectionId, Store};
use crate::write::Target;
use crate::{Registry, Resource, ResourceName, pods};

/// The present moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) wall: Timestamp,
}

impl Now {
    /// The wall clock as the API writes times: whole seconds in UTC.
    pub(crate) fn text(&self, seconds_later: i64) -> String {
        let later = Timestamp::from_second(self.wall.as_second().saturating_add(seconds_later)).unwrap_or(self.wall);
        later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// The state of the server.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Store,
    pub(crate) rng: Rng,
    /// Whether a namespace is made when the first object in it is.
    pub(crate) namespaces_on_demand: bool,
    /// When pods that are being deleted gracefully will be gone.
    pub(crate) deadlines: BTreeSet<Deadline>,
    namespaces: CollectionId,
    pods: CollectionId,
}

/// The end of an object's grace period.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) collection: CollectionId,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Box<str>,
}

impl World {
    /// A world with the namespaces that every cluster has.
    pub(crate) fn new(registry: Arc<Registry>, limits: HistoryLimits, seed: u64, now: Now) -> Self {
        let resources: Vec<Arc<Resource>> = registry.iter().cloned().collect();
        let position = |name: &str| resources.iter().position(|r| r.group.is_empty() && r.plural == name);
        let id = |name| CollectionId(position(name).unwrap_or_default());
        let (namespaces, pods) = (id("namespaces"), id("pods"));
        let mut world = Self {
            registry,
            store: Store::new(resources, limits),
            rng: Rng::new(seed),
            namespaces_on_demand: false,
            deadlines: BTreeSet::new(),
            namespaces,
            pods,
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            world.create_namespace(name, now);
        }
        world
    }

    pub(crate) fn id(&self, name: &ResourceName) -> Option<CollectionId> {
        self.registry.position(name).map(CollectionId)
    }

    pub(crate) fn resource(&self, id: CollectionId) -> Arc<Resource> {
        self.store.collection(id).resource.clone()
    }

    pub(crate) fn is_namespaces(&self, id: CollectionId) -> bool {
        id == self.namespaces
    }

    pub(crate) fn is_pods(&self, id: CollectionId) -> bool {
        id == self.pods
    }

    /// Makes a namespace if it is not there.
    pub(crate) fn create_namespace(&mut self, name: &str, now: Now) {
        if self.namespace(name).is_none() {
            // A name that is not valid makes none, and the object in it is refused for that.
            let _ = self.create(self.namespaces, &Target::default(), json!({"metadata": {"name": name}}), now);
        }
    }

    /// Puts in realistic pods, with their namespaces and nodes.
    pub(crate) fn preload_pods(&mut self, count: usize, now: Now) {
        let resource = self.resource(self.pods);
        let nodes = self.id(&"nodes".into()).filter(|_| count > 0);
        for (id, node) in nodes.into_iter().flat_map(|id| (0..pods::NODES).map(move |node| (id, node))) {
            // The names are new and valid.
            let _ = self.create(id, &Target { direct: true, ..Target::default() }, pods::node(node), now);
        }
        for index in 0..count {
            self.create_namespace(&pods::namespace(index), now);
            self.store.put(self.pods, pods::draft(&resource, index));
        }
    }

    pub(crate) fn namespace(&self, name: &str) -> Option<&Arc<crate::stored::Stored>> {
        self.store.get(self.namespaces, &ObjectKey::cluster(name))
    }
}
