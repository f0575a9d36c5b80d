//! An in-memory Kubernetes API server for tests and examples, with faults on demand.
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
#![forbid(unsafe_code)]

mod accept;
mod access;
mod body;
mod builder;
mod collection;
mod decoding;
mod discovery;
mod documents;
mod fault;
mod fields;
mod form;
mod handler;
mod kubeconfig;
mod list;
mod list_stream;
mod matching;
mod openapi;
mod pairs;
mod patch;
mod patching;
pub mod pods;
mod port;
mod request_log;
pub mod resource;
mod review;
mod rng;
mod route;
mod selection;
mod server;
mod service;
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
pub use fault::{Fault, FaultId};
pub use matching::Matching;
pub use request_log::RecordedRequest;
pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
pub use route::{Query, Verb};
pub use server::ApiServer;
pub use service::InProcess;
pub use simulation::{RunningSimulation, Simulation};
pub use status::{Cause, Status, Subject};
