//! The paths and who answers them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::admission_handler::ErasedHandler;
use crate::webhook_service::{Shared, WebhookService};
use crate::{
    AdmissionHandler, Converter, Defaulter, Defaulting, Validating, Validator, WebhookMetrics, mutate_path,
    validate_path,
};

/// Who answers the requests of one path.
pub(crate) enum Route {
    Admission(Box<dyn ErasedHandler>),
    Conversion(Box<dyn Converter>),
}

/// Webhooks by their paths, to be [served](Self::service).
#[must_use = "it does nothing until it is served"]
pub struct Webhooks {
    routes: BTreeMap<String, Route>,
    wrong: Option<RouteError>,
    metrics: WebhookMetrics,
    timeout: Duration,
    requests_max: usize,
}

/// Why webhooks cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A path has two handlers.
    #[error("two webhooks are at {path}: give one of them another path")]
    Twice {
        /// The path.
        path: String,
    },
    /// A path does not begin as paths do.
    #[error("the path {path:?} of a webhook does not begin with a slash")]
    NoPath {
        /// The path.
        path: String,
    },
}

/// An API server waits no longer, whatever is configured.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Each may have a body of 7 MiB in memory, and its JSON.
const REQUESTS_MAX: usize = 128;

impl Webhooks {
    /// None yet.
    pub fn new() -> Self {
        Self {
            routes: BTreeMap::new(),
            wrong: None,
            metrics: WebhookMetrics::default(),
            timeout: TIMEOUT,
            requests_max: REQUESTS_MAX,
        }
    }

    /// A validating or mutating webhook.
    pub fn admission(self, path: impl Into<String>, handler: impl AdmissionHandler) -> Self {
        self.route(path.into(), Route::Admission(Box::new(handler)))
    }

    /// A mutating webhook for a type, at [`mutate_path`].
    pub fn defaulting<T>(self, defaulter: impl Defaulter<T>) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
    {
        self.admission(mutate_path::<T>(), Defaulting::<T, _>::new(defaulter))
    }

    /// A validating webhook for a type, at [`validate_path`].
    pub fn validating<T>(self, validator: impl Validator<T>) -> Self
    where
        T: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.admission(validate_path::<T>(), Validating::<T, _>::new(validator))
    }

    /// A conversion webhook; controller-runtime serves it at `/convert`.
    pub fn conversion(self, path: impl Into<String>, converter: impl Converter) -> Self {
        self.route(path.into(), Route::Conversion(Box::new(converter)))
    }

    /// How long a handler may take at most; 30 s, and never longer than the API server says that it waits.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many requests are answered at the same time, at least one; 128. Others wait for their turn.
    pub fn requests_max(mut self, count: usize) -> Self {
        self.requests_max = count.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    fn route(mut self, path: String, route: Route) -> Self {
        let wrong = if !path.starts_with('/') {
            Some(RouteError::NoPath { path })
        } else if self.routes.contains_key(&path) {
            Some(RouteError::Twice { path })
        } else {
            self.metrics.begin(&path);
            self.routes.insert(path, route);
            None
        };
        // The first counts.
        self.wrong = self.wrong.or(wrong);
        self
    }

    /// A service of `tower`, for a [`WebhookServer`](crate::WebhookServer) or any other server.
    ///
    /// # Errors
    /// A path is no path or is there twice.
    pub fn service(self) -> Result<WebhookService, RouteError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let Self { routes, metrics, timeout, requests_max, .. } = self;
        let places = Semaphore::new(requests_max);
        Ok(WebhookService::new(Arc::new(Shared { routes, metrics, timeout, places })))
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        Self::new()
    }
}
