//! Credentials that are read anew when the server does not accept them any more.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube_client::Config;
use kube_client::client::{Body, ConfigExt};
use parking_lot::Mutex;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;

/// A service that sends requests of kube's.
pub(crate) type Exchange<B> = BoxCloneService<Request<Body>, Response<B>, BoxError>;

/// Credentials are not read anew more often than this: a server that never accepts them costs one more request in
/// that time, not one for each.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// Adds the credentials of a config to requests. kube-client keeps a token file for a minute by the wall clock; here an
/// answer of 401 makes it be read again at once (and an exec plugin be run again), and the request be sent once more.
pub(crate) struct Reauth<B> {
    shared: Arc<Shared<B>>,
}

struct Shared<B> {
    config: Config,
    /// Whether the credentials come from somewhere that can give others later.
    renewable: bool,
    /// What lies below, without credentials. Locked to be cloned only.
    base: Mutex<Exchange<B>>,
    /// Nothing is called under this lock but a clone.
    state: Mutex<State<B>>,
}

/// Guarded by `Shared::state`.
struct State<B> {
    /// `base` with the present credentials.
    present: Exchange<B>,
    /// How often these were replaced.
    generation: u64,
    renewed: Option<Instant>,
}

impl<B: Send + 'static> Reauth<B> {
    /// Puts the credentials of a config on top of a service.
    ///
    /// # Errors
    /// The credentials cannot be read.
    pub(crate) fn new(config: Config, base: Exchange<B>) -> Result<Self, kube_client::Error> {
        let present = with_credentials(&config, base.clone())?;
        let auth = &config.auth_info;
        let renewable = auth.token_file.is_some() || auth.exec.is_some() || auth.auth_provider.is_some();
        let state = State { present, generation: 0, renewed: None };
        Ok(Self { shared: Arc::new(Shared { config, renewable, base: Mutex::new(base), state: Mutex::new(state) }) })
    }
}

fn with_credentials<B: Send + 'static>(config: &Config, base: Exchange<B>) -> Result<Exchange<B>, kube_client::Error> {
    Ok(match config.auth_layer()? {
        Some(layer) => BoxCloneService::new(layer.layer(base)),
        None => base,
    })
}

impl<B: Send + 'static> Shared<B> {
    fn present(&self) -> (Exchange<B>, u64) {
        let state = self.state.lock();
        (state.present.clone(), state.generation)
    }

    /// The service with credentials newer than those of a generation, if it is time to read them.
    async fn renewed(self: Arc<Self>, generation: u64) -> Option<Exchange<B>> {
        {
            let mut state = self.state.lock();
            if state.generation != generation {
                return Some(state.present.clone());
            }
            let now = tokio::time::Instant::now().into_std();
            if state.renewed.is_some_and(|renewed| now.duration_since(renewed) < RENEWAL_INTERVAL) {
                return None;
            }
            state.renewed = Some(now);
        }
        // An exec plugin is waited for, so not on this thread.
        let this = Arc::clone(&self);
        let read = tokio::task::spawn_blocking(move || {
            let base = this.base.lock().clone();
            with_credentials(&this.config, base)
        });
        match read.await {
            Ok(Ok(present)) => {
                let mut state = self.state.lock();
                let old = std::mem::replace(&mut state.present, present.clone());
                state.generation += 1;
                drop(state);
                drop(old);
                Some(present)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the credentials cannot be read anew, going on with the old ones");
                None
            }
            Err(_) => None,
        }
    }
}

impl<B: Send + 'static> Service<Request<Body>> for Reauth<B> {
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        async move {
            let again = if shared.renewable { copy(&request) } else { None };
            let (present, generation) = shared.present();
            let response = present.oneshot(request).await?;
            let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
                return Ok(response);
            };
            match shared.renewed(generation).await {
                Some(renewed) => renewed.oneshot(again).await,
                None => Ok(response),
            }
        }
        .boxed()
    }
}

impl<B> Clone for Reauth<B> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The same request once more, where its body can be had twice.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A file that is removed in the end.
    struct TokenFile(std::path::PathBuf);

    impl TokenFile {
        fn new(name: &str, token: &str) -> Self {
            let file = Self(std::env::temp_dir().join(format!("kubewire-{}-{name}", std::process::id())));
            file.write(token);
            file
        }

        fn write(&self, token: &str) {
            let next = self.0.with_extension("next");
            std::fs::write(&next, token).unwrap();
            std::fs::rename(next, &self.0).unwrap();
        }
    }

    impl Drop for TokenFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A service that accepts one token, and counts its requests.
    fn server(accepted: &'static str, requests: &Arc<AtomicUsize>) -> Exchange<()> {
        let requests = Arc::clone(requests);
        BoxCloneService::new(tower::service_fn(move |request: Request<Body>| {
            requests.fetch_add(1, Ordering::SeqCst);
            let good = request.headers()["authorization"] == format!("Bearer {accepted}");
            let mut response = Response::new(());
            *response.status_mut() = if good { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            async { Ok(response) }
        }))
    }

    fn config(file: &TokenFile) -> Config {
        let mut config = Config::new("http://localhost".parse().unwrap());
        config.auth_info.token_file = Some(file.0.to_string_lossy().into_owned());
        config
    }

    async fn send(service: &Reauth<()>) -> u16 {
        let request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
        service.clone().oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_changed_on_disk_is_used_on_the_first_401() {
        let file = TokenFile::new("changed", "t1");
        let requests = Arc::new(AtomicUsize::new(0));
        let service = Reauth::new(config(&file), server("t2", &requests)).unwrap();
        file.write("t2");
        assert_eq!(send(&service).await, 200);
        assert_eq!(requests.load(Ordering::SeqCst), 2);
        assert_eq!(send(&service).await, 200);
        assert_eq!(requests.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_401_for_ever_costs_one_more_request_in_ten_seconds_and_recovers() {
        let file = TokenFile::new("forever", "t1");
        let requests = Arc::new(AtomicUsize::new(0));
        let service = Reauth::new(config(&file), server("t2", &requests)).unwrap();
        for _ in 0..5 {
            assert_eq!(send(&service).await, 401);
        }
        assert_eq!(requests.load(Ordering::SeqCst), 6);
        file.write("t2");
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        assert_eq!(send(&service).await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_gone_leaves_the_old_token_in_use() {
        let file = TokenFile::new("gone", "t1");
        let requests = Arc::new(AtomicUsize::new(0));
        let service = Reauth::new(config(&file), server("t1", &requests)).unwrap();
        std::fs::remove_file(&file.0).unwrap();
        assert_eq!(send(&service).await, 200);
        let refused = Reauth { shared: Arc::clone(&service.shared) };
        *refused.shared.base.lock() = server("t2", &requests);
        assert_eq!(send(&service).await, 200);
    }
}
