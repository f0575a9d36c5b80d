//! The endpoints of a liveness and a readiness probe.

use std::net::SocketAddr;

use futures::future::BoxFuture;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use kubewire_http_server::{Answer, HttpServer, text as answer};

use crate::{BoxError, Group, HealthChecks, RunContext, Runnable};

/// Answers `/healthz` and `/readyz`, and each check by its own path below them, on one port. A
/// [`Runnable`] that starts first and ends last.
///
/// | path | answer |
/// |---|---|
/// | `/readyz` | 200 `ok`, or 500 with a line for each check |
/// | `/readyz?verbose` | the lines in any case |
/// | `/readyz?exclude=a&exclude=b` | without these checks |
/// | `/readyz/a` | 200 `ok`, or 500 with the error; 404 where there is no such check |
///
/// An endpoint without any check is 404.
///
/// ```
/// # use kubewire_controller::{HealthServer, RunnableGroups};
/// # fn f(groups: &RunnableGroups) -> Result<(), Box<dyn std::error::Error>> {
/// let health = HealthServer::new(([0, 0, 0, 0], 8081).into());
/// health.healthz().add("ping", || Ok::<(), std::io::Error>(()))?;
/// groups.add(health)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct HealthServer {
    server: HttpServer,
    healthz: HealthChecks,
    readyz: HealthChecks,
}

impl HealthServer {
    /// A server for this address; port 0 is any free one. It does not listen before it is run.
    pub fn new(address: SocketAddr) -> Self {
        Self { server: HttpServer::new("health", address), healthz: HealthChecks::new(), readyz: HealthChecks::new() }
    }

    /// With other checks than new ones.
    #[must_use = "it gives the changed server back"]
    pub fn checks(self, healthz: HealthChecks, readyz: HealthChecks) -> Self {
        Self { healthz, readyz, ..self }
    }

    /// Whether the process lives: who fails here is started anew.
    pub fn healthz(&self) -> &HealthChecks {
        &self.healthz
    }

    /// Whether it is ready to be asked.
    pub fn readyz(&self) -> &HealthChecks {
        &self.readyz
    }

    /// Where it listens, once it does.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.server.local_address()
    }

    async fn answer(self, request: Request<Incoming>) -> Answer {
        let uri = request.uri();
        let mut parts = uri.path().trim_start_matches('/').splitn(2, '/');
        let endpoint = parts.next().unwrap_or_default();
        let checks = match endpoint {
            "healthz" => &self.healthz,
            "readyz" => &self.readyz,
            _ => return answer(StatusCode::NOT_FOUND, "not found\n"),
        };
        if checks.is_empty() {
            return answer(StatusCode::NOT_FOUND, "not found\n");
        }
        let (ok, text) = match parts.next() {
            None => checks.run(endpoint, uri.query().unwrap_or_default()).await,
            Some(name) => match checks.run_one(name).await {
                None => return answer(StatusCode::NOT_FOUND, "not found\n"),
                Some(Ok(())) => (true, "ok".to_owned()),
                Some(Err(error)) => (false, format!("internal server error: {error}\n")),
            },
        };
        answer(if ok { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, text)
    }
}

impl Runnable for HealthServer {
    fn name(&self) -> &str {
        "health server"
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.healthz.seal();
            self.readyz.seal();
            let this = self.clone();
            Ok(self.server.run(move |request| this.clone().answer(request), cx.stop, cx.cancel).await?)
        })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.server.started().await;
            Ok(())
        })
    }

    fn group(&self) -> Group {
        Group::Http
    }
}

#[cfg(test)]
mod tests;
