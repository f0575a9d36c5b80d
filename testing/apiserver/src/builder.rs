//! The choices with which a server starts.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::collection::HistoryLimits;
use crate::inner::{Inner, Settings};
use crate::port::Port;
use crate::server::ApiServer;
use crate::world::World;
use crate::{Registry, Resource};

/// A server to be started.
#[derive(Clone, Debug)]
#[must_use = "nothing runs until `start`"]
pub struct Builder {
    registry: Registry,
    port: Option<u16>,
    pods: usize,
    seed: Option<u64>,
    namespaces_on_demand: bool,
    limits: HistoryLimits,
    settings: Settings,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            registry: Registry::default(),
            port: None,
            pods: 0,
            seed: None,
            namespaces_on_demand: false,
            limits: HistoryLimits { events_max: 100_000, superseded_bytes_max: 64 << 20 },
            settings: Settings {
                bookmark_interval: Duration::from_secs(60),
                min_request_timeout: Duration::from_secs(1800),
                watch_backlog_max: usize::MAX,
            },
        }
    }
}

impl Builder {
    /// Listens on this port of the loopback interface; 0 takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Serves a custom resource too.
    pub fn custom_resource(mut self, resource: Resource) -> Self {
        self.registry.add(resource);
        self
    }

    /// Begins with so many realistic pods of about 9 kB each, 100 a namespace, on 100 nodes (which are there too).
    /// Default: none.
    pub fn pods(mut self, count: usize) -> Self {
        self.pods = count;
        self
    }

    /// Makes uids and generated names the same in each run. Without it they differ.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes a namespace when the first object in it is created. Without it that is answered 404, as by the real
    /// server.
    pub fn namespaces_on_demand(mut self) -> Self {
        self.namespaces_on_demand = true;
        self
    }

    /// How often a watch that takes bookmarks gets one. Default: one minute, as the real server; one more comes two
    /// seconds before the watch times out.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval;
        self
    }

    /// A watch without `timeoutSeconds` lasts between this and twice this. Default: 30 minutes, as the real server.
    pub fn min_request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.min_request_timeout = timeout;
        self
    }

    /// How many changes of each resource are kept; watches that begin before them are answered 410, and a watch whose
    /// reader is behind them is closed. Default: 100,000, but not more than 64 MiB of replaced and deleted objects.
    pub fn history_len_max(mut self, events: usize) -> Self {
        self.limits.events_max = events;
        self
    }

    /// A watch whose reader is so many changes behind is closed. Default: no limit but that of the history.
    pub fn watch_backlog_max(mut self, events: usize) -> Self {
        self.settings.watch_backlog_max = events;
        self
    }

    fn world(&self) -> World {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        tracing::debug!(seed, "apiserver");
        let mut world = World::new(Arc::new(self.registry.clone()), self.limits, seed, Inner::now());
        world.namespaces_on_demand = self.namespaces_on_demand;
        world.preload_pods(self.pods, Inner::now());
        world
    }

    pub(crate) fn start_in_process(self) -> ApiServer {
        ApiServer::run(Inner::new(self.world(), self.settings, None))
    }

    /// Starts the server. Must be called in a tokio runtime, with its IO driver where a port was asked for.
    ///
    /// # Errors
    /// The port cannot be had.
    pub async fn start(self) -> io::Result<ApiServer> {
        let port = match self.port {
            Some(port) => Some(Port::bind(port).await?),
            None => None,
        };
        Ok(ApiServer::run(Inner::new(self.world(), self.settings, port)))
    }
}
