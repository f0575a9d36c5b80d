//! Objects are completed before they are kept.

use std::marker::PhantomData;

use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{AdmissionHandler, AdmissionRequest, AdmissionResponse, Operation, Rejection, patch_between};

/// Sets what is not set in new and changed objects of a type. A closure `Fn(&mut T, &AdmissionRequest) -> Result<(), Rejection>`
/// is one, too. Deletions are not asked about.
///
/// It must come to the same when it is called again on what it has made: API servers do that.
pub trait Defaulter<T>: Send + Sync + 'static {
    /// Completes the object, or refuses it.
    fn default(&self, object: &mut T, request: &AdmissionRequest)
    -> impl Future<Output = Result<(), Rejection>> + Send;
}

impl<T, F> Defaulter<T> for F
where
    F: Fn(&mut T, &AdmissionRequest) -> Result<(), Rejection> + Send + Sync + 'static,
{
    fn default(
        &self,
        object: &mut T,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<(), Rejection>> + Send {
        std::future::ready(self(object, request))
    }
}

/// A [`Defaulter`] as the handler of a mutating webhook. The patch has what the defaulter changed, and nothing else: fields that
/// the type does not know stay.
pub struct Defaulting<T, D> {
    defaulter: D,
    of: PhantomData<fn(T)>,
}

impl<T, D: Defaulter<T>> Defaulting<T, D> {
    /// With this defaulter.
    pub fn new(defaulter: D) -> Self {
        Self { defaulter, of: PhantomData }
    }
}

impl<T, D> Defaulting<T, D>
where
    T: DeserializeOwned + Serialize + Send + 'static,
    D: Defaulter<T>,
{
    async fn decide(&self, request: &AdmissionRequest) -> Result<AdmissionResponse, Rejection> {
        let (Operation::Create | Operation::Update, Some(sent)) = (request.operation, &request.object) else {
            return Ok(AdmissionResponse::allowed());
        };
        let mut object: T = request.object_as()?;
        let before = to_json(&object)?;
        self.defaulter.default(&mut object, request).await?;
        Ok(AdmissionResponse::patched(patch_between(sent, &before, &to_json(&object)?)))
    }
}

fn to_json<T: Serialize>(object: &T) -> Result<serde_json::Value, Rejection> {
    serde_json::to_value(object)
        .map_err(|error| Rejection::new(500, "InternalError", format!("the object cannot be written: {error}")))
}

impl<T, D> AdmissionHandler for Defaulting<T, D>
where
    T: DeserializeOwned + Serialize + Send + 'static,
    D: Defaulter<T>,
{
    async fn handle(&self, request: AdmissionRequest) -> AdmissionResponse {
        self.decide(&request).await.into()
    }
}

/// Where controller-runtime serves the defaulter of a type: `/mutate-apps-v1-deployment`, and `/mutate--v1-pod` in the core group.
pub fn mutate_path<T: Resource<DynamicType = ()>>() -> String {
    path::<T>("mutate")
}

pub(crate) fn path<T: Resource<DynamicType = ()>>(what: &str) -> String {
    let group = T::group(&()).replace('.', "-");
    format!("/{what}-{group}-{}-{}", T::version(&()), T::kind(&()).to_lowercase())
}
