//! An in-memory Kubernetes API server for tests and examples, with faults on demand.
//!
//! It speaks the real protocol: lists in pages at a version, watches with bookmarks and streaming lists, conflict
//! detection, patches, finalizers, graceful deletion, tables, discovery, OpenAPI. kubectl, kube's clients and client-go's
//! informers work against it, in process as a tower service or on a port of the loopback interface.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::{Api, Client};
//! use kubewire_apiserver::{ApiServer, Fault};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let server = ApiServer::start().await;
//! let client = Client::new(server.service(), "default");
//! server.create("pods", json!({"metadata": {"name": "a", "namespace": "default"}}))?;
//!
//! let pods: Api<Pod> = Api::default_namespaced(client);
//! assert_eq!(pods.list(&Default::default()).await?.items.len(), 1);
//!
//! server.fault(Fault::internal_error().on_list());
//! assert!(pods.list(&Default::default()).await.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # The types, in the order in which one meets them
//!
//! - [`ApiServer`]: starts a server, reads and writes its objects directly, makes things go wrong, tells what was asked.
//! - [`Builder`]: a port, custom resources, pods from the start, a seed, intervals and bounds.
//! - [`InProcess`]: the tower service for `kube_client::Client::new`; [`Network`]: the same behind a network that loses, delays
//!   and repeats what one client sends.
//! - [`Resource`], [`PrinterColumn`]: what a custom resource is, by hand or [by its definition](Resource::from_definition);
//!   [`ResourceName`] names any resource, such as `"pods"` or `"apps/v1/deployments"`; [`Registry`] holds all that are served.
//! - [`Fault`], [`FaultId`]: refused, reset, stalled and truncated answers, wrong codes, watches that break off, repeat
//!   themselves, hold back their bookmarks. [`Matching`] says which requests, [`Verb`] by which verbs.
//! - [`Status`], [`Cause`], [`Subject`]: a failure as the API states it.
//! - [`RecordedRequest`], [`Query`]: what was asked.
//! - [`Simulation`]: a small cluster whose pods come, change and go.
//! - [`ResponseBody`], [`BoxError`]: what the service answers with. [`pods::pod`]: a realistic pod.
//!
//! # The program
//!
//! `cargo run -p kubewire-apiserver -- --port 18080 --kubeconfig-out FILE [--pods N] [--simulate]`, then
//! `kubectl --kubeconfig FILE get pods -A -w`. Ctrl-C ends it.
//!
//! # What it is not
//!
//! - No controllers, no scheduler, no kubelet, no garbage collector: a deployment makes no pods, and what an object owns
//!   stays when it goes. Only two things happen by themselves: a pod on a node that is deleted is gone when its grace period
//!   is over, and a namespace that is deleted takes with it what is in it.
//! - No admission, no defaulting but of what clients and printers count on (pods and their templates, services, workloads), no validation but of metadata, of types, and
//!   of leases and events: a pod without containers is taken.
//! - Server-side apply is compared with a real kube-apiserver on the same 197 requests (`tests/compared`: what stays different is a
//!   table there). It knows one version of each resource. `managedFields` are kept from the first apply on, and from the
//!   start for an object whose create named its `fieldManager`; old entries are never put together.
//! - No watches of single paths (`/watch/…`), no subresources but `status`.
//! - Answers are JSON, or protobuf where a client asks for it: of the built-in resources, and of the metadata of all.
//!   Request bodies may be protobuf too. HTTP/1.1, or
//!   HTTP/2 where the client begins with it (100 requests a connection, as the real server), without TLS.
//! - `events` of the core group and of `events.k8s.io` are two collections.
//! - CustomResourceDefinitions are not served: custom resources are registered at the start, by hand or by their definitions.
//!   Of their schemas the defaults and the kinds of lists and maps count; types, required and unknown fields are not checked.
//!
//! # Time, chance and cost
//!
//! Timers are tokio's, so that a paused clock moves grace periods, bookmarks and time-outs; times in objects are the wall
//! clock's. Uids, generated names and the simulation come from [one seed](Builder::seed).
//!
//! An object is held once, as the line of the watch event that made it: a list copies it into chunks of 64 kB as they are
//! read, a watch shares it. 100,000 pods of 9 kB take 1.0 GB and are listed in about two seconds by an unoptimised build. A
//! watch keeps no buffer: it reads the shared history, and is closed when it is [further behind](Builder::watch_backlog_max) than that
//! reaches. One lock guards the objects; it is held for a write, for a page's references, or for 64 events of a watch, never
//! across an await. Request bodies are bounded by 3 MiB, the history [by count and bytes](Builder::history_len_max), the request log by
//! 100,000 entries.
//!
//! # Features
//!
//! - `client`: [`ApiServer`] and [`Network`] get `client()`, which brings kube-client in.
//! - `program` (default): the program. A test that depends on this crate turns it off.
#![forbid(unsafe_code)]

mod accept;
mod access;
mod body;
mod builder;
mod call;
mod collection;
mod decoding;
mod definition;
mod discovery;
mod documents;
mod fault;
mod fault_table;
mod fields;
mod form;
mod format;
mod handler;
mod hits;
mod inner;
mod kubeconfig;
mod list;
mod list_stream;
mod managed;
mod matching;
mod network;
mod open_count;
mod openapi;
mod pairs;
mod patch;
mod patching;
pub mod pods;
mod port;
mod request_log;
pub mod resource;
mod response;
mod review;
mod rng;
mod route;
mod selection;
mod server;
mod service;
mod signal;
mod simulation;
mod status;
mod store;
mod stored;
mod table;
mod watch;
mod watch_event;
mod watch_stream;
mod world;
mod write;

pub use body::{BoxError, ResponseBody};
pub use builder::Builder;
pub use definition::DefinitionError;
pub use fault::Fault;
pub use fault_table::FaultId;
pub use matching::Matching;
pub use network::Network;
pub use request_log::RecordedRequest;
pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
pub use route::{Query, Verb};
pub use server::ApiServer;
pub use service::InProcess;
pub use simulation::{RunningSimulation, Simulation};
pub use status::{Cause, Status, Subject};
