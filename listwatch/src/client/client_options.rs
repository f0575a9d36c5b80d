//! A kube client whose transport suits lists and watches.

use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::uri::Scheme;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::{Body, ClientBuilder, ConfigExt};
use kube_client::{Client, Config, Error};
use kubewire_ratelimit::Throttle;
use tower::util::BoxCloneService;
use tower::{ServiceBuilder, ServiceExt};

use crate::client::reauth::{Exchange, Reauth};
use crate::{BoxError, ThrottleLayer};

/// The body of an answer, of any transport.
type AnswerBody = UnsyncBoxBody<bytes::Bytes, BoxError>;

/// How to make a kube client from a config, so that it suits an informer. What differs from `Client::try_from`:
///
/// - **No hidden retries.** kube-client repeats requests answered by 429, 503 and 504 up to 15 times, with delays up
///   to 1,000 s, and the caller learns nothing meanwhile. Here the answer comes out at once; a reflector backs off by
///   itself.
/// - **TCP keepalive**, so that a connection whose other end is gone is noticed although nothing is sent.
/// - **Credentials are read anew on a 401** (token file, exec plugin, auth provider), at most every ten seconds,
///   and the request is sent once more.
/// - **Certificates are read anew** where a request fails or is answered by 401, and a file that the config names has
///   changed since: `root_cert_file` (set in a cluster; set it by hand beside `root_cert` elsewhere), and the client's
///   certificate and key. New connections are made with them, at most every ten seconds, and reading requests are sent
///   once more. kube-client reads the first once a minute, the others never again.
/// - **QPS and burst**, where wanted (there is no limit by default; client-go's is 5 and 10), and a user agent.
/// - Failed requests are not logged as errors: they come out as errors.
///
/// With a proxy, or where the TLS features of this crate are off and the server is reached by `https`, the transport is
/// kube-client's own: without keepalive and without the renewal of credentials on a 401, and it logs.
///
/// ```
/// use kube_client::Config;
/// use kubewire_listwatch::ClientOptions;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let config = Config::new("http://127.0.0.1:8001".parse()?); // or Config::infer().await?
/// let client = ClientOptions::new().user_agent("pod-controller/1.0").throttle(20.0, 30).build(config)?;
/// # let _ = client;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    throttle: Option<Throttle>,
    user_agent: String,
    tcp_keepalive: Option<Duration>,
}

impl ClientOptions {
    /// No throttle, a keepalive of 30 s, a user agent that names this crate.
    pub fn new() -> Self {
        let user_agent =
            format!("kubewire/{} ({}/{})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        Self { throttle: None, user_agent, tcp_keepalive: Some(Duration::from_secs(30)) }
    }

    /// Lets `qps` requests pass each second, and `burst` at once; watches pass freely.
    #[must_use = "it gives the changed options back"]
    pub fn throttle(self, qps: f64, burst: u32) -> Self {
        self.shared_throttle(Throttle::new(qps, burst))
    }

    /// The same by a throttle that others may share.
    #[must_use = "it gives the changed options back"]
    pub fn shared_throttle(self, throttle: Throttle) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// The header `User-Agent`, such as `pod-controller/1.0`. A config that has one keeps it.
    #[must_use = "it gives the changed options back"]
    pub fn user_agent(self, user_agent: impl Into<String>) -> Self {
        Self { user_agent: user_agent.into(), ..self }
    }

    /// After how much silence the other end of a connection is probed; `None` never.
    #[must_use = "it gives the changed options back"]
    pub fn tcp_keepalive(self, after: impl Into<Option<Duration>>) -> Self {
        Self { tcp_keepalive: after.into(), ..self }
    }

    /// Makes the client. To be called inside a tokio runtime (kube-client starts a task).
    ///
    /// Cost: an exec plugin in the config is run, and waited for.
    ///
    /// # Errors
    /// The config holds credentials or certificates that cannot be read, or asks for TLS where no TLS feature is on.
    pub fn build(&self, mut config: Config) -> Result<Client, Error> {
        config.default_retry = false;
        if !config.headers.iter().any(|(name, _)| name == USER_AGENT) {
            let value = HeaderValue::from_str(&self.user_agent).map_err(|error| Error::HttpError(error.into()))?;
            config.headers.push((USER_AGENT, value));
        }
        let namespace = config.default_namespace.clone();
        let throttle = ThrottleLayer::with(self.throttle.clone().unwrap_or_else(Throttle::always));
        let options = self.clone();
        match Reauth::new(config.clone(), move |config| options.transport(config))? {
            Some(service) => Ok(ClientBuilder::new(service, namespace).with_layer(&throttle).build()),
            None => Ok(ClientBuilder::try_from(config)?
                .with_layer(&tower::buffer::BufferLayer::new(BUFFER_LEN))
                .with_layer(&throttle)
                .build()),
        }
    }

    /// The transport below the credentials, where it can be made here.
    fn transport(&self, config: &Config) -> Result<Option<Exchange<AnswerBody>>, Error> {
        if config.proxy_url.is_some() {
            return Ok(None);
        }
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(self.tcp_keepalive);
        http.set_keepalive_interval(self.tcp_keepalive.map(|_| PROBE_INTERVAL));
        http.set_keepalive_retries(self.tcp_keepalive.map(|_| PROBES));
        if config.cluster_url.scheme() == Some(&Scheme::HTTPS) {
            tls(config, http)
        } else {
            exchange(config, http).map(Some)
        }
    }
}

/// How many requests wait for kube-client's transport.
const BUFFER_LEN: usize = 1024;
/// Probes of a silent connection come at this distance,
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// and after so many without an answer it is given up.
const PROBES: u32 = 3;

#[cfg(feature = "rustls-tls")]
fn tls(config: &Config, http: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
    // Where two crypto providers are linked in, kube-client chooses one when it makes a client, of any config.
    #[cfg(feature = "aws-lc-rs")]
    drop(ClientBuilder::try_from(Config::new(http::Uri::from_static("http://localhost")))?);
    exchange(config, config.rustls_https_connector_with_connector(http)?).map(Some)
}

#[cfg(all(feature = "openssl-tls", not(feature = "rustls-tls")))]
fn tls(config: &Config, http: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
    exchange(config, config.openssl_https_connector_with_connector(http)?).map(Some)
}

#[cfg(not(any(feature = "rustls-tls", feature = "openssl-tls")))]
fn tls(_: &Config, _: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
    Ok(None)
}

/// HTTP over a connector, with the config's timeouts, address and headers.
fn exchange<C>(config: &Config, connector: C) -> Result<Exchange<AnswerBody>, Error>
where
    TimeoutConnector<C>: Connect + Clone + Send + Sync + 'static,
    C: tower::Service<http::Uri, Future: Send, Error: Into<BoxError>> + Send + 'static,
    C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin,
{
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client: legacy::Client<_, Body> =
        legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.extra_headers_layer()?)
        .layer(config.base_uri_layer())
        .map_err(BoxError::from)
        .service(client)
        .map_response(|response| response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
    Ok(BoxCloneService::new(service))
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A kube client for informers, with all defaults of [`ClientOptions`].
///
/// # Errors
/// As [`ClientOptions::build`].
pub fn client_from_config(config: Config) -> Result<Client, Error> {
    ClientOptions::new().build(config)
}
