//! A client that says who writes.

use http::Method;
use kube_client::Client;

use super::intercept::intercept;
use super::query::with_parameter;

/// A client whose creations, updates and patches name this field manager (`fieldManager`), where they name none: it stands
/// in `managedFields`, and a server-side apply needs one. As controller-runtime's `WithFieldOwner`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::Api;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::field_owner;
///
/// let server = ApiServer::start().await;
/// let configs: Api<ConfigMap> = Api::default_namespaced(field_owner(&server.client(), "my-controller"));
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("settings".into());
/// config.immutable = Some(true);
/// let config = configs.create(&Default::default(), &config).await?;
/// let managers = config.metadata.managed_fields.unwrap_or_default();
/// assert_eq!(managers[0].manager.as_deref(), Some("my-controller"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn field_owner(client: &Client, manager: impl Into<String>) -> Client {
    let manager = manager.into();
    intercept(client, move |mut request, client| {
        if [Method::POST, Method::PUT, Method::PATCH].contains(request.method()) {
            *request.uri_mut() = with_parameter(request.uri(), "fieldManager", &manager);
        }
        async move { client.send(request).await }
    })
}
