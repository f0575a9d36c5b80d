//! Client-side QPS and burst, as client-go's rest client has them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use kubewire_ratelimit::{FailureLog, Recovery, Throttle};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;

/// A tower layer that lets so many requests pass each second, and so many at once.
///
/// Requests that open a watch pass freely, as in client-go: a watch is one request for minutes. The others wait in the
/// order in which they came. A request that is given up while it waits gives its place back. Waits of a second and more
/// are logged, a few of them with the number of the others ([`FailureLog`]).
///
/// Built into [`ClientOptions`](crate::ClientOptions); by itself it goes around any service that can be cloned
/// (put a `tower::buffer::BufferLayer` below where it cannot):
///
/// ```
/// use kube_client::{Config, client::ClientBuilder};
/// use kubewire_listwatch::ThrottleLayer;
/// use tower::buffer::BufferLayer;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let config = Config::new("http://127.0.0.1:8001".parse()?);
/// let client = ClientBuilder::try_from(config)?
///     .with_layer(&BufferLayer::new(64))
///     .with_layer(&ThrottleLayer::new(5.0, 10)) // client-go's defaults
///     .build();
/// # let _ = client;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThrottleLayer {
    throttle: Throttle,
    /// The requests that waited for long. Nothing is called under it.
    waits: Arc<Mutex<FailureLog<()>>>,
}

impl ThrottleLayer {
    /// Lets `qps` requests pass each second, and `burst` at once.
    pub fn new(qps: f64, burst: u32) -> Self {
        Self::with(Throttle::new(qps, burst))
    }

    /// Lets pass what this throttle does; it may be shared with others.
    pub fn with(throttle: Throttle) -> Self {
        Self { throttle, waits: Arc::default() }
    }
}

impl<S> Layer<S> for ThrottleLayer {
    type Service = Throttled<S>;

    fn layer(&self, inner: S) -> Throttled<S> {
        Throttled { inner, throttle: self.throttle.clone(), waits: Arc::clone(&self.waits) }
    }
}

/// The service of a [`ThrottleLayer`].
#[derive(Clone, Debug)]
pub struct Throttled<S> {
    inner: S,
    throttle: Throttle,
    waits: Arc<Mutex<FailureLog<()>>>,
}

impl<S, B> Service<Request<B>> for Throttled<S>
where
    S: Service<Request<B>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    /// Always ready: who is to wait is known with the request only.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { inner, throttle, waits } = self.clone();
        async move {
            if !opens_watch(&request) {
                let asked = Instant::now();
                throttle.wait().await?;
                report(&waits, asked);
            }
            inner.oneshot(request).await.map_err(Into::into)
        }
        .boxed()
    }
}

/// Logs a wait that is so long that somebody should know.
fn report(waits: &Mutex<FailureLog<()>>, asked: Instant) {
    let now = Instant::now();
    let waited = now.duration_since(asked);
    if waited >= LONG_WAIT {
        let verdict = waits.lock().failed((), now.into_std());
        if let Some(left_out) = verdict {
            let waited_seconds = waited.as_secs_f64();
            tracing::warn!(
                waited_seconds,
                left_out,
                "a request has waited for this client's own limit: raise its QPS and burst, or ask for less"
            );
        }
        return;
    }
    let recovery = {
        let mut waits = waits.lock();
        if waits.is_failing() { waits.recovered(now.into_std()) } else { None }
    };
    if let Some(Recovery { failures, left_out, .. }) = recovery {
        tracing::info!(waited = failures, left_out, "requests do not wait for this client's limit any more");
    }
}

/// A shorter wait is not mentioned.
const LONG_WAIT: Duration = Duration::from_secs(1);

fn opens_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "watch" && matches!(&*value, "true" | "True" | "TRUE" | "t" | "1"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::timeout;

    use super::*;

    async fn send(
        service: &Throttled<impl Service<Request<()>, Error = Infallible, Future: Send> + Clone + Send + 'static>,
        uri: &str,
    ) {
        let request = Request::get(uri).body(()).unwrap();
        service.clone().oneshot(request).await.map(drop).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_their_turn_and_watches_do_not() {
        let echo = tower::service_fn(|_: Request<()>| async { Ok::<_, Infallible>(()) });
        let service = ThrottleLayer::new(1.0, 2).layer(echo);
        let start = Instant::now();
        for (uri, seconds) in [
            ("/a", 0),
            ("/a?x=1", 0),
            ("/a?limit=1&watch=true", 0),
            ("/a?watch=1", 0),
            ("/a", 1),
            ("/a?watch=false", 2),
        ] {
            send(&service, uri).await;
            assert_eq!(start.elapsed().as_millis() / 1000, seconds, "{uri}");
        }
        timeout(Duration::from_millis(1), send(&service, "/given-up")).await.unwrap_err();
        send(&service, "/a").await;
        assert_eq!(start.elapsed().as_millis() / 1000, 3, "the place of the one that gave up is used");
    }
}
