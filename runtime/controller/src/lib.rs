//! Controllers, their sources and the manager that runs them: what controller-runtime gives, on kubewire's building
//! blocks.
//!
//! A controller here is an informer's handler that adds keys, a work queue, and workers: the loop that one writes by hand
//! with the crates below, with names for its parts. Each part can be taken by itself, and whoever needs less steps down a
//! level: a [`Controller`] runs without a manager, a [`KindSource`] is a handler of an informer, a [`RequestQueue`] is a
//! [`RateLimitingQueue`](kubewire_workqueue::RateLimitingQueue).
//!
//! # The smallest complete example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewire_apiserver::ApiServer;
//! use kubewire_controller::{Attempt, Cached, Controller, Manager, ManagerOptions, Outcome, Request, with_state};
//! use serde_json::json;
//! use tokio_util::sync::CancellationToken;
//!
//! # type Error = Box<dyn std::error::Error + Send + Sync>;
//! /// What is done for a pod.
//! async fn reconcile(pods: Cached<Arc<Pod>>, request: Request, _: Attempt) -> Result<Outcome, Error> {
//!     println!("{request} is {}", if pods.get_by_key(&request)?.is_some() { "there" } else { "gone" });
//!     Ok(Outcome::Done)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! // A server in this process, with one pod; a real one has a `kube_client::Client` too.
//! let server = ApiServer::start().await;
//! server.create("pods", json!({"metadata": {"name": "web", "namespace": "default"}}))?;
//!
//! let manager = Manager::new(server.client(), ManagerOptions::new());
//! let pods = manager.cache().watch::<Arc<Pod>>()?; // Nothing is watched unless somebody says so.
//! Controller::builder().for_(&pods).complete(&manager, with_state(pods.clone(), reconcile))?;
//!
//! let stop = CancellationToken::new(); // in a program: kubewire_controller::stop_on_signal()?
//! let running = manager.spawn(stop); // in a program: manager.run(stop).await
//! manager.wait_idle(Duration::from_millis(50)).await?; // It has said that the pod is there.
//! running.stop().await?;
//! # Ok(()) }
//! ```
//!
//! # A level down
//!
//! The same without a manager, with an informer by hand:
//!
//! ```
//! # use std::sync::Arc;
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kubewire_apiserver::ApiServer;
//! use kubewire_controller::{Attempt, Controller, Outcome, Request, RunContext};
//! use kubewire_informer::Informer;
//! use kubewire_listwatch::ListWatch;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = ApiServer::start().await;
//! # server.create("pods", serde_json::json!({"metadata": {"name": "web", "namespace": "default"}}))?;
//!
//! let pods = Informer::new(ListWatch::<Arc<Pod>>::all(server.client()));
//! let (store, cx) = (pods.indexer(), RunContext::new());
//! let stop = cx.stop.clone();
//! let controller = Controller::builder().for_(&pods).build(move |pod: Request, _: Attempt| {
//!     let (found, stop) = (store.get_by_key(&pod), stop.clone());
//!     async move {
//!         println!("{pod} is {}", if found.is_some() { "there" } else { "gone" });
//!         stop.cancel(); // Enough seen.
//!         Ok::<_, std::io::Error>(Outcome::Done)
//!     }
//! })?;
//!
//! let informer = pods.start(cx.stop.clone());
//! controller.run(cx).await?;
//! informer.join().await;
//! # Ok(()) }
//! ```
//!
//! # Coming from controller-runtime
//!
//! | there | here |
//! |---|---|
//! | `ctrl.NewManager(config, options)` | [`Manager::new`] of a client, or of a [`Cluster`] with [`CacheOptions`] |
//! | `ctrl.SetupSignalHandler()`, `mgr.Start(ctx)` | [`stop_on_signal`], [`Manager::run`]; [`Manager::spawn`] in a task |
//! | `mgr.GetClient().Get`, `List` | [`Cached::get_by_key`], [`Cached::list`] of what [`Cache::watch`] answered; [`Cluster::reader`]. A first read does not begin a watch, see [`Unwatched`] |
//! | `mgr.GetClient().Create`, `Update`, … | `kube_client::Api` of [`Manager::client`] |
//! | `mgr.GetAPIReader()` | [`Cluster::live_reader`] |
//! | `client.IgnoreNotFound` | [`ignore_not_found`], [`ignore_already_exists`] |
//! | `client.MergeFrom`, `Status().Patch` | [`patch_object`], [`patch_status`], [`MergeFrom`] |
//! | `client.InNamespace`, `MatchingLabels`, `MatchingFields` | [`ListQuery`] |
//! | `IndexField` of the owner's name, `MatchingFields{jobOwnerKey: …}` | [`Cached::indexed_by_owner`], [`ListQuery::owned_by`] |
//! | `IndexField` | [`Cached::add_index`] |
//! | `For`, `Owns`, `Watches`, `WithEventFilter`, `builder.WithPredicates` | [`Builder::for_`], [`owns`](Builder::owns), [`watches`](Builder::watches), [`with_predicate`](Builder::with_predicate), [`Watched::when`] |
//! | `builder.OnlyMetadata` | the type: `cache.watch::<Arc<PartialObjectMeta<Secret>>>()` |
//! | `unstructured.Unstructured` | [`Cache::watch_dynamic`] of a [`Mapping`], [`Builder::for_dynamic`] |
//! | a struct with `Reconcile` | `impl` [`Reconciler`], or [`with_state`] and an `async fn` |
//! | `ctrl.Result{}`, `{RequeueAfter: d}`, an error | [`Outcome::Done`], [`Outcome::RequeueAfter`], an error |
//! | `reconcile.TerminalError` | [`TerminalError`] |
//! | `controllerutil.AddFinalizer` and an update | [`ensure_finalizer`], [`release_finalizer`]; in memory [`add_finalizer`], [`remove_finalizer`] |
//! | `controllerutil.SetControllerReference`, `CreateOrUpdate` | [`set_controller_reference`], [`create_or_update`] |
//! | `mgr.GetEventRecorder` | [`Manager::event_recorder`]; an object's reference is `kube_core::Resource::object_ref` |
//! | `LeaderElection: true` | [`ManagerOptions::elector`] of a [`kubewire_leaderelection::Elector`] |
//! | `client.NewDryRunClient`, `WithFieldOwner`, `interceptor.NewClient` | [`dry_run`], [`field_owner`], [`intercept`] |
//! | `client.NewNamespacedClient` | `Api::namespaced`, whose requests are all of its namespace |
//! | `Eventually(…)` in tests | [`Manager::wait_idle`] |
//!
//! # Controllers, in the order in which one meets their parts
//!
//! - [`Reconciler`]: what is done for a [`Request`], as a trait or as an async closure. It answers an [`Outcome`] or an
//!   error; a [`TerminalError`] anywhere in its chain is not tried again. An [`Attempt`] has an id, a priority, a deadline,
//!   and tells of the stop. [`with_state`] makes one of an `async fn` and what it needs; [`reconcile_objects`] looks the object
//!   up first.
//! - [`Builder`]: `for_`, `owns`, `watches`; it takes informers and makes a [`Controller`].
//! - [`Controller`] with [`ControllerOptions`]: starts its sources, waits until they are synced, then works. Warm-up, time-outs,
//!   panics, and what a stop means are told there. What several have in common is in [`ControllerDefaults`].
//! - [`Source`]: [`KindSource`] over an informer, [`Channel`] and [`StreamSource`] for what happens elsewhere, [`source_fn`]
//!   for anything.
//! - [`EventHandler`]: [`EnqueueRequestForObject`], [`EnqueueRequestForOwner`], [`map`], [`EventHandlerFuncs`], closures. They
//!   are told of an [`Event`] and add to an [`Enqueue`].
//! - [`Predicate`]: [`GenerationChanged`], [`GenerationOrDeletionChanged`], [`ResourceVersionChanged`], [`LabelsChanged`],
//!   [`AnnotationsChanged`], [`LabelsMatch`], [`on_object`], [`PredicateFuncs`], closures; [`And`], [`Or`], [`Not`], [`AllOf`],
//!   [`AnyOf`].
//! - [`PriorityQueue`]: the choice to take changes before the initial list and resyncs, with aging.
//! - [`ControllerMetrics`]: controller-runtime's names and buckets, for any registry.
//! - [`Runnable`], [`Group`], [`RunContext`]: what a manager runs. [`ControllerHost`] is what a builder asks of a manager.
//!
//! # The manager and the cluster
//!
//! - [`Manager`] with [`ManagerOptions`], [`RunningManager`]: a cluster, what runs over it, and the servers that tell of it. Beneath it:
//!   [`RunnableGroups`], which start and stop in order and in bounded time, and end with a [`RunError`] that has all that
//!   went wrong. A [`LeaderElection`] decides who leads.
//! - [`HealthServer`] and [`HealthChecks`], [`MetricsServer`] and [`MetricsRegistry`], [`TokenAccess`] for who may read them.
//! - [`Cluster`]: a client, a [`Cache`] with [`CacheOptions`] and [`TypeOptions`], a [`Reader`], a [`RestMapper`]. A [`Cached`]
//!   is what the cache keeps of one type.
//! - [`create_or_update`], [`create_or_patch`]; [`patch_object`], [`patch_status`], [`MergeFrom`];
//!   [`ensure_finalizer`], [`release_finalizer`], [`Finalizers`]; [`set_controller_reference`], [`Owner`], [`OWNER_INDEX`];
//!   [`ignore_not_found`]; [`stop_on_signal`].
//! - [`dry_run`], [`field_owner`], [`intercept`]: clients around a client.
//!
//! # What to know
//!
//! - An object comes as any representation: `Arc<Pod>`, `Packed<Pod>`, a struct of one's own. Owners, generation and the like
//!   are asked by optional methods of `Object`: a struct that does not keep them (`DetailedId` does) has none, and a predicate
//!   about them lets no update pass.
//! - Attempts end by being dropped, at an await, after the time-out or when the grace period is over. One that blocks its
//!   thread (a lock, a channel of `std`, a client without `async`, a long calculation) has no such place. Put what blocks into
//!   `tokio::task::spawn_blocking` and await that. Else a stop ends with [`Failure::StillRunning`], the lease is held until it
//!   runs out, and a runtime that is dropped waits for the thread: end the process. As many such attempts as the runtime has
//!   threads (on a machine of one processor, or with a limit of one, a single one) hold everything up: the stop, its bounds,
//!   the renewal of the lease. Also, what a task wakes right before it blocks may have to wait behind it.
//! - Nothing is listed because a controller wants it: informers are made by whoever owns them. Nothing is global.
//! - The differences to controller-runtime, with reasons, are in `DESIGN.md`.
#![forbid(unsafe_code)]

// The controller.
mod attempt;
mod builder;
mod controller;
pub mod controller_metrics;
mod controller_options;
mod decision;
mod event;
mod event_handler;
mod outcome;
mod panic_text;
mod predicate;
mod reconcile_error;
mod reconciler;
mod request;
mod request_queue;
mod runnable;
mod source;
mod sources;
mod start_error;
mod terminal_error;
#[cfg(test)]
mod test_http;
#[cfg(test)]
mod test_object;
mod watch;
mod worker;

// The manager and the cluster.
mod client;
mod cluster;
mod health;
mod helpers;
mod manager;
mod metrics;
mod signals;

// The controller.
pub use attempt::{Attempt, ReconcileId};
pub use builder::{BuildError, Builder, ControllerHost, Watched, watched};
pub use controller::Controller;
pub use controller_metrics::ControllerMetrics;
pub use controller_options::{ControllerDefaults, ControllerOptions};
pub use event::{AnyObject, Event, LOW_PRIORITY};
pub use event_handler::{
    EnqueueRequestForObject, EnqueueRequestForOwner, EnqueueRequestsFromMap, EventHandler, EventHandlerFuncs,
    GroupKind, ScopeOfOwner, map,
};
pub use outcome::Outcome;
pub use predicate::{
    AllOf, And, AnnotationsChanged, AnyOf, GenerationChanged, GenerationOrDeletionChanged, LabelsChanged, LabelsMatch,
    Not, OnObject, Or, Predicate, PredicateFuncs, ResourceVersionChanged, on_object,
};
pub use reconcile_error::{ErrorKind, ReconcileError};
pub use reconciler::{ReadObjects, Reconciler, reconcile_objects, with_state};
pub use request::{Request, RequestKey};
pub use request_queue::{Enqueue, PriorityQueue, RequestQueue};
pub use runnable::{Activity, BoxError, Group, RunContext, Runnable};
pub use source::{
    Channel, ChannelClosed, ChannelSource, KindSource, Source, SourceContext, Started, StreamSource, source_fn,
};
pub use start_error::StartError;
pub use terminal_error::{TerminalError, is_terminal};

// The manager and the cluster.
pub use client::{dry_run, field_owner, intercept};
pub use cluster::{
    Cache, CacheOptions, Cached, Cluster, ListQuery, MapError, Mapping, OWNER_INDEX, ReadError, Reader, RestMapper,
    ScopeOptions, TypeOptions, Unhealthy, Unwatched, WaitError, WatchError, controlling_owner,
};
pub use health::{AddCheckError, HealthChecks, HealthServer};
pub use helpers::{
    CreateOrUpdateError, FinalizeError, Finalized, Finalizer, Finalizers, MergeFrom, OperationResult, Owner,
    OwnerError, PatchError, RegisterFinalizerError, add_finalizer, contains_finalizer, create_or_patch,
    create_or_update, ensure_finalizer, ignore_already_exists, ignore_not_found, patch_object, patch_status,
    release_finalizer, remove_finalizer, set_controller_reference, set_owner_reference,
};
#[cfg(feature = "rustls-tls")]
pub use kubewire_certificate::{CertificateError, CertificateEvents, ReloadingCertificate};
pub use manager::{
    AddError, Cancelled, Ended, Failure, LeaderElection, Manager, ManagerOptions, NameTaken, OnElected, RunError,
    RunnableGroups, RunningManager,
};
pub use metrics::{AddHandlerError, MetricsRegistry, MetricsServer, TokenAccess};
pub use signals::stop_on_signal;
