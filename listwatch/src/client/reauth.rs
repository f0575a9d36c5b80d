//! Credentials and certificates that are read anew when the server does not accept them, or is not accepted, any more.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube_client::Config;
use kube_client::client::{Body, ConfigExt};
use kubewire_ratelimit::{FailureLog, Recovery};
use parking_lot::Mutex;
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;
use crate::client::tls_files::TlsFiles;

/// A service that sends requests of kube's.
pub(crate) type Exchange<B> = BoxCloneService<Request<Body>, Response<B>, BoxError>;

/// Credentials are not read anew more often than this: a server that never accepts them costs one more request in
/// that time, not one for each.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// Makes what lies below the credentials, from the config and the files that it names.
type MakeTransport<B> = Box<dyn Fn(&Config) -> Result<Option<Exchange<B>>, kube_client::Error> + Send + Sync>;

/// Adds the credentials of a config to requests. kube-client keeps a token file for a minute by the wall clock, and the
/// client's certificate for ever. Here an answer of 401, or none at all, makes what has changed on disk be read again
/// at once, and the request be sent once more:
///
/// - 401: the token file is read, the exec plugin run, and a new certificate means a new connection;
/// - no connection: it is made anew where CA bundle, certificate or key have changed.
pub(crate) struct Reauth<B> {
    shared: Arc<Shared<B>>,
}

struct Shared<B> {
    config: Config,
    make: MakeTransport<B>,
    files: TlsFiles,
    /// Whether the credentials come from somewhere that can give others later.
    renewable: bool,
    /// Nothing is called under this lock but clones.
    state: Mutex<State<B>>,
}

/// Guarded by `Shared::state`.
struct State<B> {
    /// What lies below, without credentials.
    base: Exchange<B>,
    /// `base` with the present credentials.
    present: Exchange<B>,
    /// How often these were replaced.
    generation: u64,
    /// The TLS files that `base` was made from.
    fingerprint: Option<u64>,
    /// When the last renewal began, by cause.
    refused: Option<Instant>,
    failed: Option<Instant>,
    /// The renewals that could not be made.
    failures: FailureLog<()>,
}

/// Why a request may be worth a second try with what is on disk now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It was answered by 401.
    Refused,
    /// It was not answered.
    Failed,
}

impl<B: Send + 'static> Reauth<B> {
    /// Puts the credentials of a config on top of the transport that `make` makes; `None` where it makes none.
    ///
    /// # Errors
    /// The credentials cannot be read, or the transport cannot be made.
    pub(crate) fn new(
        config: Config,
        make: impl Fn(&Config) -> Result<Option<Exchange<B>>, kube_client::Error> + Send + Sync + 'static,
    ) -> Result<Option<Self>, kube_client::Error> {
        let files = TlsFiles::of(&config);
        // Before they are read: a change in between is then seen later.
        let fingerprint = files.fingerprint();
        let Some(base) = make(&config)? else { return Ok(None) };
        let present = with_credentials(&config, base.clone())?;
        let auth = &config.auth_info;
        let renewable = auth.token_file.is_some() || auth.exec.is_some() || auth.auth_provider.is_some();
        let state = State {
            base,
            present,
            generation: 0,
            fingerprint,
            refused: None,
            failed: None,
            failures: FailureLog::new(),
        };
        let shared = Shared { config, make: Box::new(make), files, renewable, state: Mutex::new(state) };
        Ok(Some(Self { shared: Arc::new(shared) }))
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

    /// Whether a request that ends so may be sent again. Reading is repeated freely; what may have been done is not.
    fn may_repeat(&self, cause: Cause, method: &Method) -> bool {
        match cause {
            Cause::Refused => self.renewable || !self.files.are_none(),
            Cause::Failed => !self.files.are_none() && method.is_safe(),
        }
    }

    /// The service with credentials newer than those of a generation, if there are such, and it is time to read them.
    async fn renewed(self: Arc<Self>, generation: u64, cause: Cause) -> Option<Exchange<B>> {
        let now = tokio::time::Instant::now().into_std();
        {
            let mut state = self.state.lock();
            if state.generation != generation {
                return Some(state.present.clone());
            }
            let last = match cause {
                Cause::Refused => &mut state.refused,
                Cause::Failed => &mut state.failed,
            };
            if last.is_some_and(|last| now.duration_since(last) < RENEWAL_INTERVAL) {
                return None;
            }
            *last = Some(now);
        }
        // Files are read, and an exec plugin is waited for, so not on this thread.
        let this = Arc::clone(&self);
        let read = tokio::task::spawn_blocking(move || this.read(cause));
        match read.await {
            Ok(Ok(present)) => {
                let recovery = self.state.lock().failures.recovered(now);
                if let Some(Recovery { failures, left_out, .. }) = recovery {
                    tracing::info!(failures, left_out, "the credentials can be read again");
                }
                present
            }
            Ok(Err(error)) => {
                let verdict = self.state.lock().failures.failed((), now);
                if let Some(left_out) = verdict {
                    tracing::warn!(%error, left_out, "the credentials cannot be read anew, going on with the old ones");
                }
                None
            }
            Err(_) => None,
        }
    }

    /// Blocks. `None` where there is nothing new.
    fn read(&self, cause: Cause) -> Result<Option<Exchange<B>>, kube_client::Error> {
        let (base, known) = {
            let state = self.state.lock();
            (state.base.clone(), state.fingerprint)
        };
        let fingerprint = self.files.fingerprint();
        let changed = fingerprint.is_some() && fingerprint != known;
        let base = match (changed, cause) {
            (true, _) => (self.make)(&self.config)?.unwrap_or(base),
            (false, Cause::Refused) if self.renewable => base,
            (false, _) => return Ok(None),
        };
        let present = with_credentials(&self.config, base.clone())?;
        let old = {
            let mut state = self.state.lock();
            if changed {
                state.fingerprint = fingerprint;
            }
            state.generation += 1;
            let new = (base, present.clone());
            (std::mem::replace(&mut state.base, new.0), std::mem::replace(&mut state.present, new.1))
        };
        drop(old);
        Ok(Some(present))
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
        let may = |cause| shared.may_repeat(cause, request.method());
        let (refused, failed) = (may(Cause::Refused), may(Cause::Failed));
        async move {
            let again = if refused || failed { copy(&request) } else { None };
            let (present, generation) = shared.present();
            let answer = present.oneshot(request).await;
            let cause = match &answer {
                Ok(response) if refused && response.status() == StatusCode::UNAUTHORIZED => Cause::Refused,
                Err(_) if failed => Cause::Failed,
                _ => return answer,
            };
            let Some(again) = again else { return answer };
            match shared.renewed(generation, cause).await {
                Some(renewed) => renewed.oneshot(again).await,
                None => answer,
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

    /// A client of a service that accepts one token, and counts its requests.
    fn client(file: &TokenFile, accepted: &'static str, requests: &Arc<AtomicUsize>) -> Reauth<()> {
        let requests = Arc::clone(requests);
        Reauth::new(config(file), move |_| Ok(Some(server(accepted, &requests)))).unwrap().unwrap()
    }

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
        let service = client(&file, "t2", &requests);
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
        let service = client(&file, "t2", &requests);
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
        let service = client(&file, "t1", &requests);
        std::fs::remove_file(&file.0).unwrap();
        assert_eq!(send(&service).await, 200);
        // It is refused, and there is nothing to read.
        let refused = client(&TokenFile::new("gone2", "t1"), "t2", &requests);
        assert_eq!(send(&refused).await, 401);
        assert_eq!(requests.load(Ordering::SeqCst), 2);
    }

    /// A transport made from a CA file, which fails while the file says something else than "good".
    fn tls(file: &TokenFile, made: &Arc<AtomicUsize>) -> Reauth<()> {
        let mut config = Config::new("https://localhost".parse().unwrap());
        config.root_cert_file = Some(file.0.clone());
        let made = Arc::clone(made);
        let transport = move |config: &Config| {
            made.fetch_add(1, Ordering::SeqCst);
            let good = std::fs::read_to_string(config.root_cert_file.as_ref().unwrap()).unwrap() == "good";
            Ok(Some(BoxCloneService::new(tower::service_fn(move |_| async move {
                if good { Ok(Response::new(())) } else { Err("unknown issuer".into()) }
            }))))
        };
        Reauth::new(config, transport).unwrap().unwrap()
    }

    async fn works(service: &Reauth<()>, method: Method) -> bool {
        let mut request = Request::get("/api/v1/pods").body(Body::empty()).unwrap();
        *request.method_mut() = method;
        service.clone().oneshot(request).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_transport_that_fails_is_made_anew_where_its_files_have_changed_and_only_then() {
        let (file, made) = (TokenFile::new("ca", "old"), Arc::new(AtomicUsize::new(0)));
        let service = tls(&file, &made);
        for _ in 0..5 {
            assert!(!works(&service, Method::GET).await);
        }
        assert_eq!(made.load(Ordering::SeqCst), 1, "the file is as it was");
        file.write("good");
        assert!(!works(&service, Method::GET).await, "it was looked at less than ten seconds ago");
        tokio::time::sleep(RENEWAL_INTERVAL).await;
        assert!(!works(&service, Method::POST).await, "what may have been done is not repeated");
        assert!(works(&service, Method::GET).await);
        assert!(works(&service, Method::POST).await);
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_away_leaves_the_transport_as_it_is() {
        let (file, made) = (TokenFile::new("ca-away", "good"), Arc::new(AtomicUsize::new(0)));
        let service = tls(&file, &made);
        std::fs::remove_file(&file.0).unwrap();
        assert!(works(&service, Method::GET).await);
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
