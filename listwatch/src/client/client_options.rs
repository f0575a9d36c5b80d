//! A kube client whose transport suits lists and watches.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::uri::Scheme;
use http::{Request, Response};
#[cfg(feature = "rustls-tls")]
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
#[cfg(feature = "rustls-tls")]
use kube_client::client::RustlsTlsError;
use kube_client::client::{Body, ClientBuilder, ConfigExt};
use kube_client::{Client, Config, Error};
use kubewire_ratelimit::Throttle;
#[cfg(feature = "rustls-tls")]
use rustls::pki_types::ServerName;
use tower::util::BoxCloneService;
use tower::{Service, ServiceBuilder};

use crate::client::gunzip::GzipLayer;
use crate::client::http_service::{AnswerBody, HttpService};
use crate::client::reauth::{Exchange, Reauth};
use crate::client::shared_connections::Connector;
use crate::{BoxError, Http2, Protocol, ThrottleLayer};

/// How to make a kube client from a config, so that it suits an informer. What differs from `Client::try_from`:
///
/// - **No hidden retries.** kube-client repeats requests answered by 429, 503 and 504 up to 15 times, with delays up
///   to 1,000 s, and the caller learns nothing meanwhile. Here the answer comes out at once; a reflector backs off by
///   itself.
/// - **HTTP/2** where the server has it ([`Protocol`]), with pings, so that many watches share a connection ([`Http2`]) and
///   one whose other end stands still is noticed after 45 s. Exec, attach and port-forward go by HTTP/1.1.
/// - **TCP keepalive**, so that a connection whose other end is gone is noticed although nothing is sent.
/// - **Credentials are read anew on a 401** (token file, exec plugin, auth provider), at most every ten seconds,
///   and the request is sent once more.
/// - **Certificates are read anew** where a request fails or is answered by 401, and a file that the config names has
///   changed since: `root_cert_file` (set in a cluster; set it by hand beside `root_cert` elsewhere), and the client's
///   certificate and key. New connections are made with them, at most every ten seconds, and reading requests are sent
///   once more. kube-client reads the first once a minute, the others never again.
/// - **QPS and burst**, where wanted, and a user agent. There is no limit by default, as with controller-runtime today:
///   the server's priority and fairness tells who must wait, and a reflector backs off by itself. (client-go has 5 and 10,
///   controller-runtime had 20 and 30.)
/// - **gzip**, where wanted, of lists and watches alike.
/// - Failed requests are not logged as errors: they come out as errors.
///
/// With a proxy, or where the TLS features of this crate are off and the server is reached by `https`, the transport is
/// kube-client's own: HTTP/1.1, without keepalive and without the renewal of credentials on a 401, and it logs.
///
/// ```
/// use kube_client::Config;
/// use kubewire_listwatch::{ClientOptions, Http2};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let config = Config::new("http://127.0.0.1:8001".parse()?); // or Config::infer().await?
/// let client = ClientOptions::new().user_agent("pod-controller/1.0").throttle(20.0, 30).build(config.clone())?;
///
/// // Far from its server, over a narrow way:
/// let far = ClientOptions::new().gzip(true).http2(Http2::default().stream_window(8 << 20)).build(config)?;
/// # let _ = (client, far);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    throttle: Option<Throttle>,
    user_agent: String,
    tcp_keepalive: Option<Duration>,
    protocol: Protocol,
    http2: Http2,
    gzip: bool,
}

impl ClientOptions {
    /// HTTP/2 where the server has it, with [`Http2`]'s defaults; no gzip; no throttle; a TCP keepalive of 30 s; a user
    /// agent that names this crate.
    pub fn new() -> Self {
        let user_agent =
            format!("kubewire/{} ({}/{})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        Self {
            throttle: None,
            user_agent,
            tcp_keepalive: Some(Duration::from_secs(30)),
            protocol: Protocol::default(),
            http2: Http2::default(),
            gzip: false,
        }
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

    /// Which version of HTTP is spoken.
    #[must_use = "it gives the changed options back"]
    pub fn protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// How HTTP/2 is spoken, where it is: pings, windows, requests on a connection.
    #[must_use = "it gives the changed options back"]
    pub fn http2(self, http2: Http2) -> Self {
        Self { http2, ..self }
    }

    /// Asks for compressed answers, of lists, watches and all else: worth it where the way to the server is narrow or
    /// paid for, not within a cluster. Each piece is unpacked as it is read, so memory stays bounded, and
    /// [`Limits`](crate::Limits) count unpacked bytes.
    #[must_use = "it gives the changed options back"]
    pub fn gzip(self, gzip: bool) -> Self {
        Self { gzip, ..self }
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
            Some(service) => Ok(built(ClientBuilder::new(service, namespace).with_layer(&throttle), self.gzip)),
            None => {
                let buffer = tower::buffer::BufferLayer::new(BUFFER_LEN);
                Ok(built(ClientBuilder::try_from(config)?.with_layer(&buffer).with_layer(&throttle), self.gzip))
            }
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
            return self.tls(config, http);
        }
        let offered = (self.protocol == Protocol::Http2).then(|| http.clone());
        self.exchange(config, http, offered).map(Some)
    }

    #[cfg(feature = "rustls-tls")]
    fn tls(&self, config: &Config, http: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
        // Where two crypto providers are linked in, kube-client chooses one when it makes a client, of any config.
        #[cfg(feature = "aws-lc-rs")]
        drop(ClientBuilder::try_from(Config::new(http::Uri::from_static("http://localhost")))?);
        let http2 = match self.protocol {
            Protocol::Http1 => None,
            Protocol::Negotiated | Protocol::Http2 => {
                let builder =
                    HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
                let builder = match server_name(config)? {
                    Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
                    None => builder,
                };
                Some(builder.enable_all_versions().wrap_connector(http.clone()))
            }
        };
        self.exchange(config, config.rustls_https_connector_with_connector(http)?, http2).map(Some)
    }

    #[cfg(all(feature = "openssl-tls", not(feature = "rustls-tls")))]
    fn tls(&self, config: &Config, http: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
        self.exchange(config, config.openssl_https_connector_with_connector(http)?, None).map(Some)
    }

    #[cfg(not(any(feature = "rustls-tls", feature = "openssl-tls")))]
    fn tls(&self, _: &Config, _: HttpConnector) -> Result<Option<Exchange<AnswerBody>>, Error> {
        Ok(None)
    }

    /// HTTP over connectors, with the config's timeouts, address and headers. The second one offers HTTP/2.
    fn exchange<C: Connector>(
        &self,
        config: &Config,
        http1: C,
        http2: Option<C>,
    ) -> Result<Exchange<AnswerBody>, Error> {
        let http1 = with_timeouts(config, http1);
        let http = match http2 {
            None => HttpService::http1(http1),
            Some(http2) => {
                let http2 = with_timeouts(config, http2);
                HttpService::http2(http1, http2, config.cluster_url.clone(), self.protocol, self.http2)
            }
        };
        let service =
            ServiceBuilder::new().layer(config.extra_headers_layer()?).layer(config.base_uri_layer()).service(http);
        Ok(BoxCloneService::new(service))
    }
}

fn built<S, B>(builder: ClientBuilder<S>, gzip: bool) -> Client
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    if gzip { builder.with_layer(&GzipLayer).build() } else { builder.build() }
}

fn with_timeouts<C: Connector>(config: &Config, connector: C) -> TimeoutConnector<C> {
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    connector
}

/// The name that the server's certificate must be for, where the config says one.
#[cfg(feature = "rustls-tls")]
fn server_name(config: &Config) -> Result<Option<ServerName<'static>>, Error> {
    let name = config.tls_server_name.clone().map(ServerName::try_from).transpose();
    name.map_err(|error| Error::RustlsTls(RustlsTlsError::InvalidServerName(error)))
}

/// How many requests wait for kube-client's transport.
const BUFFER_LEN: usize = 1024;
/// Probes of a silent connection come at this distance,
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// and after so many without an answer it is given up.
const PROBES: u32 = 3;

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
