//! Merge patches from two states of an object.

use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Makes JSON merge patches of how an object differs from what it was; as controller-runtime's `MergeFrom`. Lists are replaced
/// as a whole, as JSON merge patches have it.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::api::Patch;
/// use kubewire_controller::MergeFrom;
/// use serde_json::json;
///
/// let mut config = ConfigMap::default();
/// config.metadata.resource_version = Some("7".into());
/// let before = MergeFrom::new(&config)?.optimistic_lock();
/// config.immutable = Some(true);
/// let patch = before.patch(&config)?.unwrap();
/// assert_eq!(patch, json!({"metadata": {"resourceVersion": "7"}, "immutable": true}));
/// assert_eq!(MergeFrom::new(&config)?.patch(&config)?, None);
/// # Ok::<(), kubewire_controller::PatchError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it makes patches, and sends none"]
pub struct MergeFrom {
    before: Value,
    lock: bool,
}

/// Why there is no patch, or it was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// A state cannot be written as JSON.
    #[error("the object cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An optimistic lock needs the version that is locked.
    #[error("the object has no resourceVersion to be locked: read it from the server first")]
    NoVersion,
    /// It has no name to be written to.
    #[error("the object has no name")]
    NoName,
    /// The server did not take it.
    #[error(transparent)]
    Server(#[from] kube_client::Error),
}

impl PatchError {
    /// Whether somebody else has written meanwhile: look again, and try again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Server(kube_client::Error::Api(status)) if status.is_conflict())
    }
}

impl MergeFrom {
    /// From this state.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn new(before: &impl Serialize) -> Result<Self, PatchError> {
        Ok(Self { before: serde_json::to_value(before)?, lock: false })
    }

    /// Only if nobody else has written since: the server refuses the patch with a conflict otherwise.
    pub fn optimistic_lock(self) -> Self {
        Self { lock: true, ..self }
    }

    /// What makes this state of that one; `None` where they are the same.
    ///
    /// # Errors
    /// It cannot be written as JSON, or there is no version to lock.
    pub fn patch(&self, after: &impl Serialize) -> Result<Option<Value>, PatchError> {
        let after = serde_json::to_value(after)?;
        let Some(mut patch) = difference(&self.before, &after) else { return Ok(None) };
        if self.lock {
            let version = self.before["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty());
            let version = version.ok_or(PatchError::NoVersion)?;
            patch["metadata"]["resourceVersion"] = Value::from(version);
        }
        Ok(Some(patch))
    }

    /// Writes how the status of this state differs from what it was, by a merge patch of the `status` subresource; nothing
    /// where it does not. Gives back the object as the server has it now, where it was written. What differs beside the
    /// status is left out. [`patch_status`](crate::patch_status) does so of a status alone.
    ///
    /// Cancel-safe: the patch is sent or not.
    ///
    /// # Errors
    /// As of [`patch`](Self::patch), and of the server: a conflict, where somebody else has written what is
    /// [locked](Self::optimistic_lock).
    pub async fn patch_status<K>(&self, api: &Api<K>, after: &K) -> Result<Option<K>, PatchError>
    where
        K: Resource + Serialize + DeserializeOwned,
    {
        let Some(mut patch) = self.patch(after)? else { return Ok(None) };
        let Some(status) = patch.get_mut("status").map(Value::take) else { return Ok(None) };
        let mut only_status = json!({ "status": status });
        if self.lock {
            only_status["metadata"]["resourceVersion"] = patch["metadata"]["resourceVersion"].take();
        }
        let name = name_of(after)?;
        Ok(Some(api.patch_status(name, &PatchParams::default(), &Patch::Merge(only_status)).await?))
    }
}

pub(super) fn name_of(object: &impl Resource) -> Result<&str, PatchError> {
    object.meta().name.as_deref().filter(|name| !name.is_empty()).ok_or(PatchError::NoName)
}

/// PURE. The merge patch that makes one value of another; `None` where there is nothing to do. A null in `after` cannot be
/// told from what is not there.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| match old.get(key) {
        Some(old) => Some((key.clone(), difference(old, value)?)),
        // What is new must not be read as a patch of nothing: its nulls would go.
        None => Some((key.clone(), value.clone())),
    });
    let patch: Map<_, _> = gone.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_difference_names_what_changed_what_came_and_what_went() {
        // before, after, patch
        for (before, after, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null}))),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}}))),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({"a": 1}), json!({"a": {}}), Some(json!({"a": {}}))),
        ] {
            assert_eq!(difference(&before, &after), patch, "{before} -> {after}");
        }
    }

    #[test]
    fn a_lock_without_a_version_is_an_error_before_anything_is_sent() {
        let before = MergeFrom::new(&json!({"metadata": {}})).unwrap().optimistic_lock();
        assert!(matches!(before.patch(&json!({"metadata": {}, "a": 1})), Err(PatchError::NoVersion)));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patched_object_is_what_it_should_become(before in value(), after in value()) {
            let mut patched = before.clone();
            if let Some(patch) = difference(&before, &after) {
                json_patch::merge(&mut patched, &patch);
            }
            prop_assert_eq!(patched, after);
        }
    }
}
