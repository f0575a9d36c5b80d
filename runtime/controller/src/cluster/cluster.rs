//! One cluster: how it is asked, what is kept of it.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube_client::Client;
use kubewire_informer::{HandlerStatus, InformerStatus};

use super::cache::Cache;
use super::cache_options::CacheOptions;
use super::reader::Reader;
use super::rest_mapper::RestMapper;
use crate::{Activity, BoxError, Group, RunContext, Runnable};

/// One cluster: its client, a cache of it, a mapper. Nothing in it assumes that there is only one: further ones are added to a
/// manager as [`Runnable`]s, and synced before anything that may read them. Cloning gives another handle.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::{CacheOptions, Cluster, ListQuery, RunnableGroups};
/// use tokio_util::sync::CancellationToken;
///
/// let (here, there) = (ApiServer::builder().pods(2).start().await?, ApiServer::builder().pods(3).start().await?);
/// let (here, there) = (Cluster::new("here", here.client()), Cluster::new("there", there.client()));
/// let (pods_here, pods_there) = (here.cache().watch::<Arc<Pod>>()?, there.cache().watch::<Arc<Pod>>()?);
///
/// let groups = RunnableGroups::new();
/// groups.add(here)?;
/// groups.add(there)?;
/// let stop = CancellationToken::new();
/// let running = tokio::spawn({
///     let (groups, stop) = (groups.clone(), stop.clone());
///     async move { groups.run(stop).await }
/// });
/// groups.started().await?; // The caches are synced.
/// assert_eq!(pods_here.list(&ListQuery::all())?.len(), 2);
/// assert_eq!(pods_there.list(&ListQuery::all())?.len(), 3);
/// stop.cancel();
/// running.await??;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    client: Client,
    cache: Cache,
    mapper: RestMapper,
}

impl Cluster {
    /// A cluster whose cache has the default options. The name is for logs and errors.
    pub fn new(name: impl Into<String>, client: Client) -> Self {
        Self::with_cache(name, client, CacheOptions::new())
    }

    /// A cluster whose cache has these options.
    pub fn with_cache(name: impl Into<String>, client: Client, options: CacheOptions) -> Self {
        let cache = Cache::new(client.clone(), options);
        let mapper = RestMapper::new(client.clone());
        Self { shared: Arc::new(Shared { name: name.into(), client, cache, mapper }) }
    }

    /// Its name.
    pub fn cluster_name(&self) -> &str {
        &self.shared.name
    }

    /// The client: for writes, which always go to the server, and for all that no cache has.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// What is kept of it.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// Reads from the cache, as far as its options say so.
    pub fn reader(&self) -> Reader {
        Reader::cached(self.shared.client.clone(), self.shared.cache.clone())
    }

    /// Reads from the server alone.
    pub fn live_reader(&self) -> Reader {
        Reader::live(self.shared.client.clone())
    }

    /// How it serves kinds.
    pub fn mapper(&self) -> &RestMapper {
        &self.shared.mapper
    }
}

impl From<Client> for Cluster {
    /// The one cluster of a program, named so, whose cache has the default options.
    fn from(client: Client) -> Self {
        Self::new("cluster", client)
    }
}

impl Runnable for Cluster {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            // It is told to stop in its turn; informers have nothing to finish.
            self.cache().start(&cx.stop);
            cx.stop.cancelled().await;
            self.cache().shut_down().await;
            Ok(())
        })
    }

    fn ready(&self, cx: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        let stop = cx.stop.clone();
        Box::pin(async move {
            // Whichever of the two is polled first.
            self.cache().start(&stop);
            Ok(self.cache().wait_for_sync(&stop, self.cache().sync_timeout()).await?)
        })
    }

    /// What its handlers were told, and what has come from the server and they were not told yet.
    fn activity(&self) -> Activity {
        self.cache().status().iter().map(activity_of).sum()
    }

    fn group(&self) -> Group {
        Group::Caches
    }
}

fn activity_of(informer: &InformerStatus) -> Activity {
    let of_handler = |handler: &HandlerStatus| Activity {
        done: handler.told,
        at_hand: handler.backlog + usize::from(handler.busy_for.is_some()),
    };
    let of_handlers: Activity = informer.handlers.iter().map(of_handler).sum();
    Activity { at_hand: of_handlers.at_hand.saturating_add(informer.pending), ..of_handlers }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.shared.name)
            .field("cache", &self.shared.cache)
            .finish_non_exhaustive()
    }
}
