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
//!
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewire_apiserver::ApiServer;
//! use kubewire_controller::{Attempt, Controller, Outcome, Request, RunContext};
//! use kubewire_informer::Informer;
//! use kubewire_listwatch::ListWatch;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A server in this process, with one pod; a real one has a `kube_client::Client` too.
//! let server = ApiServer::start().await;
//! server.create("pods", json!({"metadata": {"name": "web", "namespace": "default"}}))?;
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
//! # Controllers, in the order in which one meets their parts
//!
//! - [`Reconciler`]: what is done for a [`Request`], as a trait or as an async closure. It answers an [`Outcome`] or an
//!   error; a [`TerminalError`] anywhere in its chain is not tried again. An [`Attempt`] has an id, a priority, a deadline,
//!   and tells of the stop. [`reconcile_objects`] looks the object up first.
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
//! - [`Manager`] with [`ManagerOptions`]: a cluster, what runs over it, and the servers that tell of it. Beneath it:
//!   [`RunnableGroups`], which start and stop in order and in bounded time, and end with a [`RunError`] that has all that
//!   went wrong. An [`Elector`] decides who leads.
//! - [`HealthServer`] and [`HealthChecks`], [`MetricsServer`] and [`MetricsRegistry`], [`TokenAccess`] for who may read them.
//! - [`Cluster`]: a client, a [`Cache`] with [`CacheOptions`] and [`TypeOptions`], a [`Reader`], a [`RestMapper`]. A [`Cached`]
//!   is what the cache keeps of one type.
//! - [`create_or_update`], [`create_or_patch`], [`patch_status`], [`MergeFrom`]; [`set_controller_reference`], [`Owner`];
//!   [`add_finalizer`], [`Finalizers`]; [`stop_on_signal`].
//!
//! # What to know
//!
//! - An object comes as any representation: `Arc<Pod>`, `Packed<Pod>`, a struct of one's own. Owners, generation and the like
//!   are asked by optional methods of `Object`: a struct that does not keep them (`DetailedId` does) has none, and a predicate
//!   about them lets no update pass.
//! - Attempts end by being dropped, at an await, after the time-out or when the grace period is over.
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

// The manager and the cluster.
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
pub use reconciler::{Reconciler, reconcile_objects};
pub use request::{Request, RequestKey};
pub use request_queue::{Enqueue, PriorityQueue, RequestQueue};
pub use runnable::{BoxError, Group, RunContext, Runnable};
pub use source::{
    Channel, ChannelClosed, ChannelSource, KindSource, Source, SourceContext, Started, StreamSource, source_fn,
};
pub use start_error::StartError;
pub use terminal_error::{TerminalError, is_terminal};

// The manager and the cluster.
pub use cluster::{
    Cache, CacheOptions, Cached, Cluster, ListQuery, MapError, Mapping, ReadError, Reader, RestMapper, ScopeOptions,
    TypeOptions, Unhealthy, Unwatched, WaitError, WatchError,
};
pub use health::{AddCheckError, HealthChecks, HealthServer};
pub use helpers::{
    CreateOrUpdateError, FinalizeError, Finalized, Finalizer, Finalizers, MergeFrom, OperationResult, Owner,
    OwnerError, PatchError, RegisterFinalizerError, add_finalizer, contains_finalizer, create_or_patch,
    create_or_update, patch_status, remove_finalizer, set_controller_reference, set_owner_reference,
};
#[cfg(feature = "rustls-tls")]
pub use kubewire_certificate::{CertificateError, CertificateEvents, ReloadingCertificate};
pub use manager::{
    AddError, Cancelled, Elector, Ended, Failure, Manager, ManagerOptions, NameTaken, OnElected, RunError,
    RunnableGroups,
};
pub use metrics::{AddHandlerError, MetricsRegistry, MetricsServer, TokenAccess};
pub use signals::stop_on_signal;
