//! A cache of what an API server has, kept in step by list and watch, and handlers that are told of each
//! change: client-go's reflector, delta FIFO and shared index informer.
//!
//! An informer reads; it writes nothing, and it decides nothing. What a handler hears belongs into a work queue
//! (`kubewire-workqueue`, which knows nothing of this crate: you tie them), and the worker that takes a key out of
//! the queue reads the object from the informer's store.
//!
//! # The smallest complete example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use kubewire_indexer::{Id, Indexers, Meta, Object};
//! use kubewire_informer::{new_indexer_informer, wait_for_cache_sync};
//! use kubewire_listwatch::{ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Pod(&'static str);
//!
//! impl Meta for Pod {
//!     fn id(&self) -> Id<'_> {
//!         Id::new("default", self.0).uid(self.0).resource_version("7")
//!     }
//! }
//!
//! /// A server with two pods, to which nothing happens. With a real one: `ListWatch::<Arc<Pod>>::all(client)`.
//! struct Server;
//!
//! impl ListerWatcher for Server {
//!     type Object = Arc<Pod>;
//!
//!     async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
//!         each(Ok(Arc::new(Pod("web"))));
//!         each(Ok(Arc::new(Pod("db"))));
//!         Ok(ListMeta::new("7"))
//!     }
//!
//!     async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
//!         Ok(Box::pin(futures::stream::pending()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (store, informer) = new_indexer_informer(
//!     Server,
//!     Duration::ZERO,
//!     |h| {
//!         h.on_add(|pod, initial| println!("added {} (initial: {initial})", pod.key()))
//!             .on_update(|_old, new| println!("changed {}", new.key()))
//!             .on_delete(|deleted| println!("gone {}", deleted.key()))
//!     },
//!     Indexers::by_namespace(),
//! )?;
//!
//! let stop = CancellationToken::new();
//! let running = informer.start(stop.clone());
//! wait_for_cache_sync(&stop, Duration::from_secs(120), [&informer]).await?; // says why, if it fails
//! assert_eq!(store.by_index("namespace", "default")?.len(), 2);
//!
//! stop.cancel();
//! running.join().await;
//! # Ok(()) }
//! ```
//!
//! # What there is, in the order in which you meet it
//!
//! - [`new_indexer_informer`]: a store, its informer and one handler, in one call.
//! - [`Informer`]: the shared index informer, built with [`InformerOptions`] (resync, indices, transform, error
//!   handler, [`Delivery`]); started it is a [`RunningInformer`], which owns its tasks. Its
//!   [`status`](Informer::status) tells the last error, the staleness, the backlogs and who is blocked, and prints as a
//!   line for a log; and
//!   [`wait_for_version`](Informer::wait_for_version) lets a writer read its own writes.
//! - [`ResourceEventHandler`]: who is told. Made of closures: [`ResourceEventHandlerFuncs`]; behind a filter:
//!   [`FilteringResourceEventHandler`]; as a stream of [`Notification`]s: [`Subscription`]. Added with
//!   [`HandlerOptions`] ([`Buffering`], own resync period) it has a [`Registration`], by which it is awaited,
//!   looked at and removed.
//! - [`metrics`]: what a provider is told of an informer that has an [`InformerName`].
//! - [`wait_for_cache_sync`] waits for informers and handlers, and says which ones are not synced and why.
//! - [`SharedInformerFactory`]: one informer for each type and scope.
//! - [`NamespacedInformers`]: one informer for each of several namespaces, read as one store.
//! - [`AsyncTracker`], [`SingleFileTracker`], [`Lazy`]: to follow what comes behind a first list.
//! - [`DeltaFifo`]: the queue between reflector and store, by itself; [`KnownObjects`] is what it may look up.
//! - [`reflector`]: list and watch for ever, into any [`ReflectorStore`]. [`watch_tools`]: watches without a cache.
//!
//! # The way of an object
//!
//! The reflector's task takes an item or event from the [`ListerWatcher`](kubewire_listwatch::ListerWatcher), runs
//! the transform once, and puts it into the delta FIFO (one lock, no bound: what is there has to go somewhere, and
//! [`Delivery::Coalescing`] bounds it by the number of keys). The informer's task takes entries out, writes them
//! into the [`Indexer`](kubewire_indexer::Indexer) (one lock, all indices in one step), and puts what came of it
//! into each handler's buffer (one lock each). Each handler has a task of its own that calls it.
//!
//! No lock is held while code of yours runs, nor while objects are dropped: handlers, filters, transforms, index
//! functions and error handlers may use their informer in any way. A panic in one of them is caught, logged and
//! counted; a panic of the lister-watcher stops the informer, which says so.
//!
//! Objects are never copied; the store, the buffers and your handlers share them. A new list keeps the handles of
//! unchanged objects, so it costs little more than what it changes.
//!
//! # What to know
//!
//! - A handler that looks into the store finds the state of its event, or a newer one.
//! - An object that was deleted and made anew while the watch was broken comes as one update with two uids. A
//!   deletion that was missed comes as [`FinalStateUnknown`](kubewire_indexer::Deleted::FinalStateUnknown).
//! - A resync tells handlers again what is in the store. It is not a new list, and asks the server nothing.
//! - `has_synced` of the informer is about the store. That of the [`Registration`] is about the handler.
//! - A handler must not block: it shares the runtime's threads, unless it is given [one of its
//!   own](HandlerOptions::own_thread). For a slow one nobody waits, readers least of all; its buffer grows, and
//!   [`Registration::backlog`] shows it. One that is at one notification for 30 s is
//!   [mentioned in the log](InformerOptions::slow_handler_after).
//! - What it logs stands in spans: `informer`, `reflector`, `list`, `watch` and `handler`, each with the resource, a
//!   handler's with its name. Failures that repeat write few lines, each with the number of those left out, and one when
//!   it is over: see [`FailureLog`](kubewire_ratelimit::FailureLog).
//! - Its tasks, handlers and waits are modelled in many orders by shuttle: `src/models`.
//! - Unlike client-go: no pause after a panic, and the handler still becomes synced; buffers give their room back;
//!   a transform that removes the version hides no update; producers do not wait for the consumer of the FIFO.
//!
//! The crates that its types come from are here too, as [`indexer`] and [`listwatch`], and so is the
//! [`CancellationToken`] that stops things: this one crate is enough to depend on.
//!
//! # By client-go's names
//!
//! | client-go | here |
//! |---|---|
//! | `cache.NewIndexerInformer`, `NewInformer` | [`new_indexer_informer`] |
//! | `cache.NewSharedIndexInformer` | [`Informer::new`], [`Informer::with_options`] |
//! | `AddEventHandler` | [`Informer::add_handler`] |
//! | `AddEventHandlerWithResyncPeriod`, `AddEventHandlerWithOptions` | [`Informer::add_handler_with`] and [`HandlerOptions::resync_period`] |
//! | `RemoveEventHandler(registration)` | [`Registration::remove`] |
//! | `ResourceEventHandlerFuncs`, `FilteringResourceEventHandler` | [`ResourceEventHandlerFuncs`], [`FilteringResourceEventHandler`] |
//! | `DeletedFinalStateUnknown` | [`Deleted::FinalStateUnknown`](indexer::Deleted::FinalStateUnknown); both kinds have a key |
//! | `GetStore`, `GetIndexer`, `AddIndexers` | [`Informer::indexer`], [`Informer::add_indexers`] |
//! | `SetTransform`, `SetWatchErrorHandler` | [`InformerOptions::transform`], [`InformerOptions::error_handler`] |
//! | `NewInformerName`, `SetInformerMetricsProvider` | [`InformerName`], [`set_metrics_provider`] or [`InformerOptions::metrics`] |
//! | `informer.Run(stopCh)` | [`Informer::start`], then [`RunningInformer::join`] |
//! | `HasSynced`, `LastSyncResourceVersion`, `IsStopped` | [`Informer::has_synced`], [`Informer::last_sync_resource_version`], [`Informer::is_stopped`] |
//! | `cache.WaitForCacheSync`, `WaitForNamedCacheSync` | [`wait_for_cache_sync`]: with a time limit, and its error has the names |
//! | `informers.NewSharedInformerFactoryWithOptions` | [`SharedInformerFactory::new`] with [`FactoryOptions`] |
//! | `factory.Core().V1().Pods().Informer()` | [`factory.informer(…)`](SharedInformerFactory::informer) |
//! | `….Lister().Pods(namespace).List(selector)` | [`informer.lister()`](Informer::lister)`.namespace(namespace).list(&selector)` |
//! | `WithTweakListOptions` | [`SharedInformerFactory::informer_named`] with a `ListWatch` that has selectors |
//! | `factory.Start`, `WaitForCacheSync`, `Shutdown` | [`start`](SharedInformerFactory::start), [`wait_for_cache_sync`](SharedInformerFactory::wait_for_cache_sync), [`shut_down`](SharedInformerFactory::shut_down) |
//! | `cache.NewReflector`, `NewDeltaFIFO`, `pager.New` | [`reflector::Reflector`], [`DeltaFifo`], [`reflector::ListPager`] |
//! | `watchtools.Until`, `NewRetryWatcher`, `NewIndexerInformerWatcher` | [`watch_tools`] |
#![forbid(unsafe_code)]

mod cache_sync;
mod core;
mod delivery;
mod delta;
mod delta_fifo;
mod handler;
mod health;
mod indexer_informer;
mod informer;
mod informer_factory;
mod informer_name;
mod informer_options;
mod informer_store;
mod known_objects;
mod latch;
mod listener;
mod listeners;
pub mod metrics;
#[cfg(all(shuttle, test))]
mod models;
mod namespaced_informers;
mod notification;
mod panics;
mod processing;
pub mod reflector;
mod reflector_store;
mod registration;
mod resync;
mod running_informer;
mod slow_calls;
mod status;
mod subscription;
mod sync;
mod sync_track;
mod type_name;
mod upkeep;
pub mod watch_tools;

/// What an object is, its keys, the store and its listers: the crate `kubewire-indexer`.
pub use kubewire_indexer as indexer;
/// What is listed and watched: the crate `kubewire-listwatch`.
pub use kubewire_listwatch as listwatch;
/// What stops an informer: `tokio_util`'s token.
pub use tokio_util::sync::CancellationToken;

pub use cache_sync::{
    CacheSync, CacheSyncError, CacheSyncReason, Hindrance, wait_for_cache_sync, wait_for_cache_sync_unless_refused,
};
pub use delivery::Delivery;
pub use delta::{Delta, Deltas, IntoDeltas};
pub use delta_fifo::{Closed, DeltaFifo, DeltaFifoOptions, Popped, Transform};
pub use handler::{FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs};
pub use indexer_informer::new_indexer_informer;
pub use informer::{AddIndexersError, Informer, WaitForVersionError};
pub use informer_factory::{FactoryOptions, SharedInformerFactory};
pub use informer_name::{InformerName, InformerNameError};
pub use informer_options::{HandlerOptions, InformerOptions};
pub use known_objects::KnownObjects;
pub use listener::Buffering;
pub use metrics::{InformerLabels, InformerMetrics, MetricsProvider, set_metrics_provider};
pub use namespaced_informers::NamespacedInformers;
pub use notification::Notification;
pub use reflector_store::{AdmitError, Admitted, Received, ReflectorStore, Replacement, TransformError};
pub use registration::{Registration, Stopped};
pub use running_informer::RunningInformer;
pub use status::{HandlerStatus, InformerPhase, InformerStatus};
pub use subscription::Subscription;
pub use sync_track::{AsyncTracker, Lazy, NotStarted, SingleFileTracker};
