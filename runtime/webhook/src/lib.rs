//! Admission and conversion webhooks, served over TLS: what controller-runtime's webhook package gives.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewire_webhook::{AdmissionRequest, Change, Rejection, WebhookServer, Webhooks};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let webhooks = Webhooks::new()
//!     .defaulting(|pod: &mut Pod, _: &AdmissionRequest| {
//!         pod.metadata.labels.get_or_insert_default().entry("team".into()).or_insert("nobody".into());
//!         Ok(())
//!     })                                                            // at /mutate--v1-pod
//!     .validating(|change: Change<'_, Pod>, _: &AdmissionRequest| match change {
//!         Change::Delete { old } if old.metadata.finalizers.is_some() => Err(Rejection::forbidden("not yet")),
//!         _ => Ok(vec![]),
//!     });                                                           // at /validate--v1-pod
//! let server = WebhookServer::new(webhooks.service()?, "/certificates")?;
//! server.run(CancellationToken::new(), CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # In the order in which they are met
//! - [`Webhooks`]: paths and who answers them; [`WebhookService`], the same as a service of `tower`; [`WebhookServer`], on a
//!   port with TLS. With the feature `controller` it is a `Runnable` of a manager.
//! - Admission: [`Defaulter`] and [`Validator`] for a type, by closure or trait, with [`Change`]; or [`AdmissionHandler`] for
//!   everything, with [`AdmissionRequest`] and [`AdmissionResponse`]. [`Rejection`] is why something is not admitted.
//! - [`patch_between`]: the patch that a change of a typed object means for the object that was sent.
//! - Conversion: [`Converter`], and [`HubAndSpokes`] of types that implement [`Spoke`].
//! - [`WebhookMetrics`], and [`WebhookServer::check`] for a readiness endpoint.
//!
//! # What it is not
//! It installs no webhook configurations, and makes no certificates: that is for cert-manager or the like, and for
//! `kubewire-envtest` in tests. There is no policy language.
//!
//! # Costs and caveats
//! A request holds its body, 7 MiB at most, and the JSON of it until it is answered; 128 are answered at once. TLS needs the
//! feature `ring` or `aws-lc-rs`, or a default provider of rustls. Conversions run on the runtime's threads: a large list
//! holds one of them for the time.
#![forbid(unsafe_code)]

mod admission_handler;
mod admission_request;
mod admission_response;
mod conversion;
mod defaulter;
mod patch;
mod rejection;
mod review;
mod validator;
mod webhook_metrics;
mod webhook_server;
mod webhook_service;
mod webhooks;

pub use admission_handler::AdmissionHandler;
pub use admission_request::{AdmissionRequest, Operation};
pub use admission_response::AdmissionResponse;
pub use conversion::{ConversionError, Converter, HubAndSpokes, Spoke};
pub use defaulter::{Defaulter, Defaulting, mutate_path};
pub use json_patch;
pub use patch::patch_between;
pub use rejection::Rejection;
pub use validator::{Change, Validating, Validator, Warnings, validate_path};
pub use webhook_metrics::WebhookMetrics;
pub use webhook_server::{NotServing, ServerError, WebhookServer};
pub use webhook_service::WebhookService;
pub use webhooks::{RouteError, Webhooks};

/// Any error that can be sent to another thread.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
