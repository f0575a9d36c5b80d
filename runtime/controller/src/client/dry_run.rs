//! A client that changes nothing.

use http::{Method, Request};
use kube_client::client::Body;
use kube_client::{Client, Error};
use serde_json::{Value, json};

use super::intercept::intercept;
use super::query::{is_write, with_parameter};

/// A client whose writes are checked and answered by the server, and not kept (`dryRun=All`). As controller-runtime's
/// `NewDryRunClient`. Reads are as ever, so what was written is not there.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::Api;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::dry_run;
///
/// let server = ApiServer::start().await;
/// server.create("configmaps", serde_json::json!({"metadata": {"name": "settings", "namespace": "default"}}))?;
/// let configs: Api<ConfigMap> = Api::default_namespaced(dry_run(&server.client()));
/// configs.delete("settings", &Default::default()).await?;
/// assert_eq!(server.count("configmaps"), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn dry_run(client: &Client) -> Client {
    intercept(client, |mut request, client| async move {
        if is_write(request.method()) {
            *request.uri_mut() = with_parameter(request.uri(), "dryRun", "All");
        }
        if request.method() == Method::DELETE {
            request = with_options(request).await?;
        }
        client.send(request).await
    })
}

/// Of a deletion with a body the server reads the options there, and not in the query.
async fn with_options(request: Request<Body>) -> Result<Request<Body>, Error> {
    let (mut head, body) = request.into_parts();
    let mut body = body.collect_bytes().await?;
    if !body.is_empty() {
        let mut options: Value = serde_json::from_slice(&body).map_err(Error::SerdeError)?;
        if let Some(options) = options.as_object_mut() {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        body = serde_json::to_vec(&options).map_err(Error::SerdeError)?.into();
        head.headers.remove(http::header::CONTENT_LENGTH);
    }
    Ok(Request::from_parts(head, Body::from(body)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_client::Api;
    use kube_client::api::{DeleteParams, Patch};
    use kubewire_apiserver::ApiServer;
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn no_write_is_kept_and_each_is_checked() {
        let server = ApiServer::start().await;
        let kept = server.create("configmaps", json!({"metadata": {"name": "a", "namespace": "default"}})).unwrap();
        let api: Api<ConfigMap> = Api::default_namespaced(dry_run(&server.client()));
        let mut config = api.get("a").await.unwrap();
        config.immutable = Some(true);
        assert_eq!(api.replace("a", &Default::default(), &config).await.unwrap().immutable, Some(true));
        let patch = Patch::Merge(json!({"immutable": true}));
        assert_eq!(api.patch("a", &Default::default(), &patch).await.unwrap().immutable, Some(true));
        assert!(
            matches!(api.create(&Default::default(), &config).await, Err(Error::Api(status)) if status.code == 409 || status.code == 400 || status.code == 422)
        );
        config.metadata.name = Some("b".into());
        config.metadata.resource_version = None;
        api.create(&Default::default(), &config).await.unwrap();
        api.delete("a", &DeleteParams::background()).await.unwrap();
        api.delete_collection(&DeleteParams::default(), &Default::default()).await.unwrap();
        assert_eq!(server.list("configmaps"), [kept]);
        assert!(api.delete("nope", &DeleteParams::default()).await.is_err());
    }

    #[tokio::test]
    async fn a_deletion_says_it_where_the_server_reads_it_in_its_options_if_it_has_some() {
        let server = ApiServer::start().await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        let client = intercept(&server.client(), move |request, client| {
            let sees = Arc::clone(&sees);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let options: Value = serde_json::from_slice(&body).unwrap_or_default();
                sees.lock().push((head.uri.query().unwrap_or_default().contains("dryRun=All"), options));
                client.send(Request::from_parts(head, Body::from(body))).await
            }
        });
        let client = dry_run(&client);
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let _ = api.delete("a", &DeleteParams::background()).await;
        let _ = api.delete("a", &DeleteParams::default()).await;
        let bare = Request::delete("/api/v1/namespaces/default/configmaps/a").body(Body::empty()).unwrap();
        let _ = client.send(bare).await;
        let seen = std::mem::take(&mut *seen.lock());
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(in_query, _)| *in_query));
        let options: Vec<_> = seen.into_iter().map(|(_, options)| options).collect();
        assert_eq!(options[0], json!({"propagationPolicy": "Background", "dryRun": ["All"]}));
        assert_eq!(options[1], json!({"dryRun": ["All"]}));
        assert_eq!(options[2], Value::Null);
    }
}
