//! What an API server asks.

use k8s_openapi::api::authentication::v1::UserInfo;
use kube_core::{GroupVersionKind, GroupVersionResource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Rejection;

/// An `AdmissionRequest` of `admission.k8s.io/v1`: who wants to do what with which object.
///
/// Objects are JSON as the API server sent it; [`object_as`](Self::object_as) makes a type of it. That they are not typed from
/// the start keeps fields that the type does not know, and a request with an object that cannot be decoded can still be
/// answered by its [`uid`](Self::uid).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdmissionRequest {
    /// Names this request; the answer has the same.
    pub uid: String,
    /// The kind of the object, as the webhook was registered for it.
    pub kind: GroupVersionKind,
    /// The resource, as the webhook was registered for it.
    pub resource: GroupVersionResource,
    /// The subresource, such as `status` or `scale`.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// The kind that was asked for; another version than [`kind`](Self::kind) where the object was converted.
    #[serde(default)]
    pub request_kind: Option<GroupVersionKind>,
    /// The resource that was asked for.
    #[serde(default)]
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource that was asked for.
    #[serde(default)]
    pub request_sub_resource: Option<String>,
    /// The name of the object. Empty for a creation that leaves it to the server.
    #[serde(default)]
    pub name: String,
    /// The namespace of the object, if it has one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What is done; for a patch, what comes of it.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The new object; none for a deletion.
    #[serde(default)]
    pub object: Option<Value>,
    /// The present object; for an update or a deletion.
    #[serde(default)]
    pub old_object: Option<Value>,
    /// Nothing of it will be kept: a webhook must not change anything elsewhere.
    #[serde(default)]
    pub dry_run: bool,
    /// The options of the operation, such as `CreateOptions`.
    #[serde(default)]
    pub options: Option<Value>,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// The deletion of an object.
    Delete,
    /// A connection to an object, such as `exec`.
    Connect,
}

impl AdmissionRequest {
    /// The new object as a type.
    ///
    /// # Errors
    /// There is none, or it is not of this type (400).
    pub fn object_as<T: DeserializeOwned>(&self) -> Result<T, Rejection> {
        decode(self.object.as_ref(), "object")
    }

    /// The present object as a type.
    ///
    /// # Errors
    /// There is none, or it is not of this type (400).
    pub fn old_object_as<T: DeserializeOwned>(&self) -> Result<T, Rejection> {
        decode(self.old_object.as_ref(), "oldObject")
    }
}

/// Cost: a walk through the object, without a copy of its JSON.
fn decode<T: DeserializeOwned>(value: Option<&Value>, name: &str) -> Result<T, Rejection> {
    let value = value.ok_or_else(|| Rejection::bad_request(format!("there is no {name} in the request")))?;
    T::deserialize(value).map_err(|error| Rejection::bad_request(format!("{name} cannot be decoded: {error}")))
}
