//! Makes an object be as it should, whether it is there or not.

use std::fmt::Debug;

use kube_client::Api;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::merge_from::difference;
use crate::BoxError;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationResult {
    /// It is as it should be: nothing was written.
    Unchanged,
    /// It was not there.
    Created,
    /// It was changed, but for its status.
    Updated,
    /// It and its status were changed.
    UpdatedStatus,
    /// Its status alone was changed.
    UpdatedStatusOnly,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateOrUpdateError {
    /// The object has no name.
    #[error("the object has no name")]
    NoName,
    /// The function failed; nothing was written.
    #[error("the function that changes the object failed: {0}")]
    Mutate(#[source] BoxError),
    /// The function gave it another name or namespace; nothing was written.
    #[error("the function must change neither name nor namespace: {before} became {after}")]
    Renamed {
        /// As `namespace/name`.
        before: String,
        /// As `namespace/name`.
        after: String,
    },
    /// It cannot be written as JSON.
    #[error("the object cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The server did not answer well.
    #[error(transparent)]
    Server(#[from] kube_client::Error),
}

/// Reads the object of this name, has the function change it, and writes it where that made a difference; where there is none,
/// has the function change `object` and creates it. Gives back what the server has. As controller-runtime's
/// `CreateOrUpdate`.
///
/// The function is called once. A conflict comes out as an error of the server: try again, as for a reconciler.
/// Cost: a read, and a write where there is a difference.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::Api;
/// use kubewire_apiserver::ApiServer;
/// use kubewire_controller::{OperationResult, create_or_update};
///
/// let server = ApiServer::start().await;
/// let configs: Api<ConfigMap> = Api::default_namespaced(server.client());
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("settings".into());
/// let immutable = |config: &mut ConfigMap| {
///     config.immutable = Some(true);
///     Ok::<(), std::convert::Infallible>(())
/// };
/// let (_, result) = create_or_update(&configs, config.clone(), immutable).await?;
/// assert_eq!(result, OperationResult::Created);
/// let (_, result) = create_or_update(&configs, config, immutable).await?;
/// assert_eq!(result, OperationResult::Unchanged);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`CreateOrUpdateError`]; where the read fails the function is not called.
pub async fn create_or_update<K, E: Into<BoxError>>(
    api: &Api<K>,
    object: K,
    mutate: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(K, OperationResult), CreateOrUpdateError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let (name, before, found) = match create_or_change(api, object, mutate).await? {
        Begun::Created(created) => return Ok((created, OperationResult::Created)),
        Begun::Changed { name, before, object } => (name, before, object),
    };
    if serde_json::to_value(&found)? == before {
        return Ok((found, OperationResult::Unchanged));
    }
    Ok((api.replace(&name, &PostParams::default(), &found).await?, OperationResult::Updated))
}

/// As [`create_or_update`], but that it writes merge patches of what differs: one of the object, and one of its status, as far
/// as there are differences. The status is not written on creation. As controller-runtime's `CreateOrPatch`.
///
/// # Errors
/// See [`CreateOrUpdateError`]. Where the second patch fails the first one stays written.
pub async fn create_or_patch<K, E: Into<BoxError>>(
    api: &Api<K>,
    object: K,
    mutate: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(K, OperationResult), CreateOrUpdateError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let (name, before, mut found) = match create_or_change(api, object, mutate).await? {
        Begun::Created(created) => return Ok((created, OperationResult::Created)),
        Begun::Changed { name, before, object } => (name, before, object),
    };
    let (before, status_before) = parts(before);
    let (after, status_after) = parts(serde_json::to_value(&found)?);
    let parameters = PatchParams::default();
    let patch = difference(&before, &after);
    if let Some(patch) = &patch {
        found = api.patch(&name, &parameters, &Patch::Merge(patch)).await?;
    }
    let status = difference(&status_before, &status_after);
    if let Some(status) = &status {
        let status = serde_json::json!({ "status": status });
        found = api.patch_status(&name, &parameters, &Patch::Merge(status)).await?;
    }
    let result = match (patch, status) {
        (None, None) => OperationResult::Unchanged,
        (Some(_), None) => OperationResult::Updated,
        (Some(_), Some(_)) => OperationResult::UpdatedStatus,
        (None, Some(_)) => OperationResult::UpdatedStatusOnly,
    };
    Ok((found, result))
}

/// What both begin with.
enum Begun<K> {
    /// There was none; it is written.
    Created(K),
    /// The function has changed the one that was there; it is not written.
    Changed { name: String, before: Value, object: K },
}

async fn create_or_change<K, E: Into<BoxError>>(
    api: &Api<K>,
    mut object: K,
    mutate: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<Begun<K>, CreateOrUpdateError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = object.meta().name.clone().filter(|name| !name.is_empty()).ok_or(CreateOrUpdateError::NoName)?;
    let Some(mut found) = api.get_opt(&name).await? else {
        change(&mut object, mutate)?;
        return Ok(Begun::Created(api.create(&PostParams::default(), &object).await?));
    };
    let before = serde_json::to_value(&found)?;
    change(&mut found, mutate)?;
    Ok(Begun::Changed { name, before, object: found })
}

fn change<K: Resource, E: Into<BoxError>>(
    object: &mut K,
    mutate: impl FnOnce(&mut K) -> Result<(), E>,
) -> Result<(), CreateOrUpdateError> {
    let key = |object: &K| {
        let metadata = object.meta();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
    };
    let before = key(object);
    mutate(object).map_err(|error| CreateOrUpdateError::Mutate(error.into()))?;
    let after = key(object);
    if before == after { Ok(()) } else { Err(CreateOrUpdateError::Renamed { before, after }) }
}

/// An object without its status, and its status.
fn parts(mut object: Value) -> (Value, Value) {
    let status = object.as_object_mut().and_then(|object| object.remove("status")).unwrap_or_default();
    (object, status)
}

#[cfg(test)]
mod tests;
