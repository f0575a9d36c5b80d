//! A client whose requests somebody looks at first.

use http::{Request, Response};
use kube_client::client::Body;
use kube_client::{Client, Error};
use tower::service_fn;

/// A client that gives each request to a function, with the client that it is made of: the function sends the request on,
/// changed or not, or answers it by itself. As controller-runtime's `interceptor`, for tests of what fails.
///
/// Whatever is made of the client goes through it, lists and watches too. Cost: a task that hands requests on, as each
/// `kube_client::Client` has; so it has to be called in a runtime.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::{Api, Error};
/// use kube_client::core::Status;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::intercept;
///
/// let server = ApiServer::start().await;
/// let creations = AtomicU32::new(0);
/// let client = intercept(&server.client(), move |request, client| {
///     // The second creation fails.
///     let fails = request.method() == "POST" && creations.fetch_add(1, Ordering::Relaxed) == 1;
///     async move {
///         if fails {
///             return Err(Error::Api(Status::failure("no leader", "InternalError").with_code(500).boxed()));
///         }
///         client.send(request).await
///     }
/// });
///
/// let configs: Api<ConfigMap> = Api::default_namespaced(client);
/// let config = |name: &str| {
///     let mut config = ConfigMap::default();
///     config.metadata.name = Some(name.into());
///     config
/// };
/// configs.create(&Default::default(), &config("a")).await?;
/// assert!(matches!(configs.create(&Default::default(), &config("b")).await, Err(Error::Api(status)) if status.code == 500));
/// configs.create(&Default::default(), &config("b")).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn intercept<F, Fut>(client: &Client, function: F) -> Client
where
    F: Fn(Request<Body>, Client) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Response<Body>, Error>> + Send + 'static,
{
    let next = client.clone();
    let service = service_fn(move |request| function(request, next.clone()));
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_has_the_namespace_of_the_client_that_it_is_made_of() {
        let nothing = service_fn(|_: Request<Body>| async { Ok::<_, Error>(Response::new(Body::empty())) });
        let client =
            intercept(&Client::new(nothing, "shop"), |request, client| async move { client.send(request).await });
        assert_eq!(client.default_namespace(), "shop");
    }
}
