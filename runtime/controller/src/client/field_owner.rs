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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_client::Api;
    use kube_client::api::{Patch, PatchParams};
    use kubewire_apiserver::ApiServer;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn creations_updates_and_patches_name_it_but_where_they_name_one_and_nothing_else_does() {
        let server = ApiServer::start().await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        let client = intercept(&server.client(), move |request, client| {
            let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned();
            let managers: Vec<_> = query.filter(|(name, _)| name == "fieldManager").map(|(_, value)| value).collect();
            sees.lock().push(format!("{} {}", request.method(), managers.join(" ")));
            async move { client.send(request).await }
        });
        let api: Api<ConfigMap> = Api::default_namespaced(field_owner(&client, "me"));
        let config = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        api.create(&Default::default(), &config).await.unwrap();
        let config = api.get("a").await.unwrap();
        api.replace("a", &Default::default(), &config).await.unwrap();
        let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true});
        api.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        api.patch("a", &PatchParams::apply("other").force(), &Patch::Apply(&patch)).await.unwrap();
        api.delete("a", &Default::default()).await.unwrap();
        assert_eq!(*seen.lock(), ["POST me", "GET ", "PUT me", "PATCH me", "PATCH other", "DELETE "]);
    }
}
