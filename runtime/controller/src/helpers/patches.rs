//! Writes of what differs, in one call each.

use std::fmt::Debug;

use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::merge_from::{MergeFrom, PatchError, difference, name_of};

/// Writes this status of an object, by a merge patch of its `status` subresource of what differs; nothing where nothing
/// does. Gives back the object as the server has it now, where it was written.
///
/// It is written whatever others have written since `object` was read: where a list in it (conditions, say) has several
/// writers, use [`MergeFrom::patch_status`] with a lock. A field of the status that this type does not know is left as it is.
/// Cancel-safe: the patch is sent or not.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use k8s_openapi::api::core::v1::{Pod, PodStatus};
/// use kube_client::Api;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::patch_status;
///
/// let server = ApiServer::start().await;
/// server.create("pods", serde_json::json!({"metadata": {"name": "web", "namespace": "default"}}))?;
/// let pods: Api<Pod> = Api::default_namespaced(server.client());
/// let pod = pods.get("web").await?;
/// let status = PodStatus { message: Some("seen".into()), ..pod.status.clone().unwrap_or_default() };
/// let written = patch_status(&pods, &pod, &status).await?.unwrap();
/// assert!(patch_status(&pods, &written, &status).await?.is_none(), "it has that status");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// It cannot be written as JSON, has no name, or the server does not take it.
pub async fn patch_status<K>(api: &Api<K>, object: &K, status: &impl Serialize) -> Result<Option<K>, PatchError>
where
    K: Resource + Serialize + DeserializeOwned,
{
    let before = serde_json::to_value(object)?.get_mut("status").map(Value::take).unwrap_or_default();
    let Some(status) = difference(&before, &serde_json::to_value(status)?) else { return Ok(None) };
    let patch = Patch::Merge(json!({ "status": status }));
    Ok(Some(api.patch_status(name_of(object)?, &PatchParams::default(), &patch).await?))
}

/// Writes what the function changes of an object, by a merge patch of what differs; nothing where it changes nothing. Gives
/// back the object as the server has it now, where it was written.
///
/// The server refuses it with a [conflict](PatchError::is_conflict) where somebody else has written since `object` was read:
/// answer that as an error, and the reconciler is called again. The status is left out by a server that has it as a
/// subresource. Cancel-safe: the patch is sent or not.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::Api;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::patch_object;
///
/// let server = ApiServer::start().await;
/// server.create("pods", serde_json::json!({"metadata": {"name": "web", "namespace": "default"}}))?;
/// let pods: Api<Pod> = Api::default_namespaced(server.client());
/// let old = pods.get("web").await?;
/// let label = |value: &str| {
///     let value = value.to_owned();
///     move |pod: &mut Pod| drop(pod.metadata.labels.get_or_insert_default().insert("seen".into(), value))
/// };
/// assert!(patch_object(&pods, &old, label("yes")).await?.is_some());
/// let error = patch_object(&pods, &old, label("again")).await.unwrap_err();
/// assert!(error.is_conflict(), "it is another one since");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`PatchError`].
pub async fn patch_object<K>(api: &Api<K>, object: &K, change: impl FnOnce(&mut K)) -> Result<Option<K>, PatchError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut after = object.clone();
    change(&mut after);
    let Some(patch) = MergeFrom::new(object)?.optimistic_lock().patch(&after)? else { return Ok(None) };
    Ok(Some(api.patch(name_of(object)?, &PatchParams::default(), &Patch::Merge(patch)).await?))
}
