//! The endpoint from which Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use kubewire_http_server::{Answer, HttpServer, text as answer};
use parking_lot::Mutex;

use crate::{BoxError, Group, MetricsRegistry, RunContext, Runnable, TokenAccess};

/// Answers `/metrics` with all that a [`MetricsRegistry`] has, as OpenMetrics text, which Prometheus reads, and paths of the user's own. A
/// [`Runnable`] that starts first, on standbys too, and ends last.
///
/// With [`access`](Self::access) each request needs a token and the right to its path; with
/// `tls` (feature `rustls-tls`) it speaks TLS alone.
#[derive(Clone)]
pub struct MetricsServer {
    shared: Arc<Shared>,
}

struct Shared {
    server: HttpServer,
    registry: MetricsRegistry,
    access: Option<TokenAccess>,
    /// Nothing is called under its lock.
    more: Mutex<More>,
}

#[derive(Default)]
struct More {
    handlers: BTreeMap<String, Handler>,
    sealed: bool,
}

type Handler = Arc<dyn Fn(Parts) -> Response<Bytes> + Send + Sync>;

/// Why a path was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddHandlerError {
    /// It is that of the metrics.
    #[error("the path /metrics is taken by the metrics")]
    Metrics,
    /// There is one already.
    #[error("there is a handler of {0} already")]
    Duplicate(String),
    /// Too late.
    #[error("handlers cannot be added once the server has started: add them before the start")]
    Started,
}

const METRICS: &str = "/metrics";
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

impl MetricsServer {
    /// A server of this registry for this address; port 0 is any free one. It does not listen before it is run. Without TLS,
    /// and open to all.
    pub fn new(address: SocketAddr, registry: MetricsRegistry) -> Self {
        Self {
            shared: Arc::new(Shared {
                server: HttpServer::new("metrics", address),
                registry,
                access: None,
                more: Mutex::default(),
            }),
        }
    }

    /// Only for who shows a token and has the right to the path.
    #[must_use = "it gives the changed server back"]
    pub fn access(self, access: TokenAccess) -> Self {
        self.change(|shared| shared.access = Some(access))
    }

    /// With TLS. What is read of the certificate is counted in the registry.
    #[cfg(feature = "rustls-tls")]
    #[must_use = "it gives the changed server back"]
    pub fn tls(self, certificate: crate::ReloadingCertificate) -> Self {
        certificate.tell(Arc::new(self.shared.registry.clone()));
        self.change(|shared| shared.server = shared.server.clone().tls(certificate))
    }

    fn change(self, change: impl FnOnce(&mut Shared)) -> Self {
        let Shared { server, registry, access, .. } = &*self.shared;
        let mut shared = Shared {
            server: server.clone(),
            registry: registry.clone(),
            access: access.clone(),
            more: Mutex::new(std::mem::take(&mut *self.shared.more.lock())),
        };
        change(&mut shared);
        Self { shared: Arc::new(shared) }
    }

    /// Answers one more path. The handler is quick; what it panics with is answered 500.
    ///
    /// # Errors
    /// The path is taken, or the server has started.
    pub fn add_handler(
        &self,
        path: impl Into<String>,
        handler: impl Fn(Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Result<(), AddHandlerError> {
        let path = path.into();
        let mut more = self.shared.more.lock();
        if more.sealed {
            return Err(AddHandlerError::Started);
        }
        if path == METRICS {
            return Err(AddHandlerError::Metrics);
        }
        if more.handlers.contains_key(&path) {
            return Err(AddHandlerError::Duplicate(path));
        }
        more.handlers.insert(path, Arc::new(handler));
        Ok(())
    }

    /// Where it listens, once it does.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.shared.server.local_address()
    }

    async fn answer(self, request: Request<Incoming>) -> Answer {
        let (parts, _) = request.into_parts();
        if let Some(access) = &self.shared.access
            && let Err(refusal) = access.check(&parts).await
        {
            return answer(refusal.status(), format!("{refusal}\n"));
        }
        if parts.uri.path() != METRICS {
            let handler = self.shared.more.lock().handlers.get(parts.uri.path()).cloned();
            return match handler {
                Some(handler) => handler(parts).map(Full::new),
                None => answer(StatusCode::NOT_FOUND, "not found\n"),
            };
        }
        match self.shared.registry.text() {
            Ok(text) => {
                let mut answer = answer(StatusCode::OK, text);
                answer.headers_mut().insert(http::header::CONTENT_TYPE, CONTENT_TYPE);
                answer
            }
            Err(error) => {
                answer(StatusCode::INTERNAL_SERVER_ERROR, format!("the metrics cannot be written: {error}\n"))
            }
        }
    }
}

impl Runnable for MetricsServer {
    fn name(&self) -> &str {
        "metrics server"
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.shared.more.lock().sealed = true;
            let this = self.clone();
            Ok(self.shared.server.run(move |request| this.clone().answer(request), cx.stop, cx.cancel).await?)
        })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.shared.server.started().await;
            Ok(())
        })
    }

    fn group(&self) -> Group {
        Group::Http
    }
}

impl fmt::Debug for MetricsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsServer")
            .field("server", &self.shared.server)
            .field("access", &self.shared.access.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
