//! Finalizers: what must be done before an object may go.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use futures::future::BoxFuture;
use kube_client::Api;
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::api_errors::ignore_not_found;
use super::merge_from::PatchError;
use super::patches::patch_object;
use crate::BoxError;

/// Adds a finalizer to an object here, and writes nothing; [`ensure_finalizer`] does. True where it was not there.
pub fn add_finalizer(object: &mut impl Resource, finalizer: &str) -> bool {
    if contains_finalizer(object, finalizer) {
        return false;
    }
    object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
    true
}

/// Takes a finalizer from an object here, as often as it stands there, and writes nothing; [`release_finalizer`] does. True
/// where it did.
pub fn remove_finalizer(object: &mut impl Resource, finalizer: &str) -> bool {
    let Some(finalizers) = &mut object.meta_mut().finalizers else { return false };
    let before = finalizers.len();
    finalizers.retain(|other| other != finalizer);
    finalizers.len() < before
}

/// Whether an object has a finalizer.
pub fn contains_finalizer(object: &impl Resource, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|other| other == finalizer)
}

/// Writes a finalizer into an object, unless it is there, or the object is being deleted, where a server takes no new one.
/// Gives back the object as the server has it now, where it was written. To be called before anything is made that the
/// finalizer has to clean up.
///
/// Cost: nothing where it is there; else one patch, which names the version of `object`: the server refuses it with a
/// [conflict](PatchError::is_conflict) where somebody has written since, as a list is replaced as a whole. Answer that as an
/// error, and the reconciler is called again. Cancel-safe: the patch is sent or not.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::Api;
/// use kubewire_controller::{PatchError, ensure_finalizer, release_finalizer};
///
/// const FINALIZER: &str = "example.com/database";
///
/// async fn reconcile(configs: &Api<ConfigMap>, config: &ConfigMap) -> Result<(), PatchError> {
///     if config.metadata.deletion_timestamp.is_some() {
///         // … drop the database …
///         release_finalizer(configs, config, FINALIZER).await?;
///         return Ok(());
///     }
///     ensure_finalizer(configs, config, FINALIZER).await?;
///     // … make the database …
///     Ok(())
/// }
/// # let _ = reconcile;
/// ```
///
/// # Errors
/// See [`PatchError`].
pub async fn ensure_finalizer<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>, PatchError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    if object.meta().deletion_timestamp.is_some() || contains_finalizer(object, finalizer) {
        return Ok(None);
    }
    patch_object(api, object, |object| _ = add_finalizer(object, finalizer)).await
}

/// Takes a finalizer from an object and writes that, where it is there: the object may go then. Gives back the object as the
/// server has it, or had it last, where it was written; nothing where the object is gone already.
///
/// Cost and conflicts as with [`ensure_finalizer`]. Cancel-safe: the patch is sent or not.
///
/// # Errors
/// See [`PatchError`].
pub async fn release_finalizer<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>, PatchError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    if !contains_finalizer(object, finalizer) {
        return Ok(None);
    }
    match patch_object(api, object, |object| _ = remove_finalizer(object, finalizer)).await {
        Err(PatchError::Server(error)) => ignore_not_found(Err(error)).map(Option::flatten).map_err(Into::into),
        written => written,
    }
}

/// Does what must be done before an object may go.
pub trait Finalizer<K>: Send + Sync + 'static {
    /// Does it, and may change the object; what it changed it says. Called again after an error, so it must bear to be.
    fn finalize<'a>(&'a self, object: &'a mut K) -> BoxFuture<'a, Result<Finalized, BoxError>>;
}

/// What has changed of an object and is still to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finalized {
    /// The object, its finalizers for one.
    pub updated: bool,
    /// Its status.
    pub status_updated: bool,
}

impl Finalized {
    fn and(self, other: Self) -> Self {
        Self { updated: self.updated || other.updated, status_updated: self.status_updated || other.status_updated }
    }
}

/// Several finalizers of one kind of object, by their names.
///
/// ```
/// use futures::future::BoxFuture;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewire_controller::{BoxError, Finalized, Finalizer, Finalizers};
///
/// struct DropDatabase;
/// impl Finalizer<ConfigMap> for DropDatabase {
///     fn finalize<'a>(&'a self, _: &'a mut ConfigMap) -> BoxFuture<'a, Result<Finalized, BoxError>> {
///         Box::pin(async { Ok(Finalized::default()) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut finalizers = Finalizers::new();
/// finalizers.register("example.com/database", DropDatabase)?;
/// let mut config = ConfigMap::default();
/// assert!(finalizers.finalize(&mut config).await?.updated); // It is there now: write it.
/// assert_eq!(config.metadata.finalizers.unwrap(), ["example.com/database"]);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Finalizers<K> {
    finalizers: BTreeMap<String, Box<dyn Finalizer<K>>>,
}

/// There is a finalizer of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a finalizer {0:?} already")]
pub struct RegisterFinalizerError(pub String);

/// Some finalizers have failed; the others were run.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinalizeError {
    /// What is to be written nevertheless.
    pub finalized: Finalized,
    /// Those that failed, by name. Never empty.
    pub failures: Vec<(String, BoxError)>,
}

impl fmt::Display for FinalizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, error)) in self.failures.iter().enumerate() {
            write!(f, "{}{name}: {error}", if place == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for FinalizeError {}

impl<K: Resource + 'static> Finalizers<K> {
    /// None.
    pub fn new() -> Self {
        Self { finalizers: BTreeMap::new() }
    }

    /// Adds one.
    ///
    /// # Errors
    /// There is one of this name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        finalizer: impl Finalizer<K>,
    ) -> Result<(), RegisterFinalizerError> {
        let name = name.into();
        if self.finalizers.contains_key(&name) {
            return Err(RegisterFinalizerError(name));
        }
        self.finalizers.insert(name, Box::new(finalizer));
        Ok(())
    }

    /// While the object is not being deleted, adds the finalizers that are missing. While it is, runs those that it has, in the
    /// order of their names, and takes each that succeeds away; one that fails keeps no other from it.
    ///
    /// What it says is to be written by the caller. Cancel-safe as far as the finalizers are.
    ///
    /// # Errors
    /// Names all that failed, and says what is to be written nevertheless.
    pub async fn finalize(&self, object: &mut K) -> Result<Finalized, FinalizeError> {
        let mut finalized = Finalized::default();
        let mut failures = Vec::new();
        let is_deleted = object.meta().deletion_timestamp.is_some();
        for (name, finalizer) in &self.finalizers {
            if !is_deleted {
                finalized.updated |= add_finalizer(object, name);
            } else if contains_finalizer(object, name) {
                match finalizer.finalize(object).await {
                    Ok(done) => {
                        finalized = finalized.and(done);
                        finalized.updated |= remove_finalizer(object, name);
                    }
                    Err(error) => failures.push((name.clone(), error)),
                }
            }
        }
        if failures.is_empty() { Ok(finalized) } else { Err(FinalizeError { finalized, failures }) }
    }
}

impl<K: Resource + 'static> Default for Finalizers<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Debug for Finalizers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.finalizers.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    struct Done(Result<Finalized, &'static str>);

    impl Finalizer<Pod> for Done {
        fn finalize<'a>(&'a self, _: &'a mut Pod) -> BoxFuture<'a, Result<Finalized, BoxError>> {
            Box::pin(async move { self.0.map_err(Into::into) })
        }
    }

    #[tokio::test]
    async fn one_that_fails_keeps_no_other_from_being_run_and_taken_away() {
        let mut finalizers = Finalizers::new();
        let status = Finalized { status_updated: true, updated: false };
        finalizers.register("x/a", Done(Ok(status))).unwrap();
        finalizers.register("x/b", Done(Err("no connection"))).unwrap();
        finalizers.register("x/c", Done(Ok(Finalized::default()))).unwrap();
        assert_eq!(finalizers.register("x/c", Done(Err(""))).unwrap_err().0, "x/c");

        let mut pod = Pod::default();
        assert_eq!(finalizers.finalize(&mut pod).await.unwrap(), Finalized { updated: true, status_updated: false });
        assert_eq!(finalizers.finalize(&mut pod).await.unwrap(), Finalized::default(), "they are there");

        let metadata =
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/a", "x/b", "x/c", "other"]});
        let mut pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let error = finalizers.finalize(&mut pod).await.unwrap_err();
        assert_eq!(error.to_string(), "x/b: no connection");
        assert_eq!(error.finalized, Finalized { updated: true, status_updated: true });
        assert_eq!(pod.metadata.finalizers.unwrap(), ["x/b", "other"]);
    }

    #[test]
    fn a_finalizer_is_added_once_and_removed_as_often_as_it_stands_there() {
        let mut pod = Pod::default();
        assert!(!remove_finalizer(&mut pod, "x/a"));
        assert!(add_finalizer(&mut pod, "x/a") && !add_finalizer(&mut pod, "x/a"));
        pod.metadata.finalizers.as_mut().unwrap().push("x/a".to_owned());
        assert!(remove_finalizer(&mut pod, "x/a") && !contains_finalizer(&pod, "x/a"));
    }
}
