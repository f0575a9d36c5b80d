//! Counts what API servers answer.

use http::Request;
use kube_client::Client;
use kube_client::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use tower::service_fn;

use crate::MetricsRegistry;

/// The labels of `rest_client_requests_total`, as client-go's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    /// The status, or `<error>` where there was no answer.
    pub(super) code: String,
    pub(super) method: String,
    pub(super) host: String,
}

impl MetricsRegistry {
    /// The same client, whose requests are counted as `rest_client_requests_total` by code, method and host. (A client does
    /// not tell which host it asks: the caller knows its config.)
    ///
    /// ```no_run
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_client::Config;
    /// use kubewire_controller::MetricsRegistry;
    /// use kubewire_listwatch::client_from_config;
    ///
    /// let metrics = MetricsRegistry::new();
    /// let config = Config::infer().await?;
    /// let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    /// let client = metrics.count_requests(client_from_config(config)?, host);
    /// # Ok(()) }
    /// ```
    ///
    /// To be called inside a tokio runtime. Cost: one more buffer of requests, as each client has one.
    pub fn count_requests(&self, client: Client, host: impl Into<String>) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        let (requests, host) = (self.requests().clone(), host.into());
        let counted = service_fn(move |request: Request<Body>| {
            let (client, requests, host) = (client.clone(), requests.clone(), host.clone());
            async move {
                let method = request.method().to_string();
                let answer = client.send(request).await;
                let code = match &answer {
                    Ok(answer) => answer.status().as_str().to_owned(),
                    Err(_) => "<error>".to_owned(),
                };
                requests.get_or_create(&RequestLabels { code, method, host }).inc();
                answer
            }
        });
        Client::new(counted, namespace).with_valid_until(valid_until)
    }
}
