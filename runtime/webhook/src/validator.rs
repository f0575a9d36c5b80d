//! Objects are looked at before they are kept.

use std::marker::PhantomData;

use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::defaulter::path;
use crate::{AdmissionHandler, AdmissionRequest, AdmissionResponse, Operation, Rejection};

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change<'a, T> {
    /// It is new.
    Create {
        /// The object.
        new: &'a T,
    },
    /// It changes.
    Update {
        /// As it is.
        old: &'a T,
        /// As it is to be.
        new: &'a T,
    },
    /// It goes.
    Delete {
        /// As it is.
        old: &'a T,
    },
}

impl<'a, T> Change<'a, T> {
    /// As it is to be, if it stays.
    pub fn new_object(&self) -> Option<&'a T> {
        match *self {
            Self::Create { new } | Self::Update { new, .. } => Some(new),
            Self::Delete { .. } => None,
        }
    }

    /// As it is, if it is there.
    pub fn old_object(&self) -> Option<&'a T> {
        match *self {
            Self::Update { old, .. } | Self::Delete { old } => Some(old),
            Self::Create { .. } => None,
        }
    }
}

/// Warnings for whoever sent the object; an empty list for none.
pub type Warnings = Vec<String>;

/// Allows or refuses what happens to objects of a type. A closure `Fn(Change<'_, T>, &AdmissionRequest) -> Result<Warnings,
/// Rejection>` is one, too.
pub trait Validator<T>: Send + Sync + 'static {
    /// Allows it, with warnings or without, or refuses it.
    fn validate(
        &self,
        change: Change<'_, T>,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Rejection>> + Send;
}

impl<T, F> Validator<T> for F
where
    F: Fn(Change<'_, T>, &AdmissionRequest) -> Result<Warnings, Rejection> + Send + Sync + 'static,
{
    fn validate(
        &self,
        change: Change<'_, T>,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Rejection>> + Send {
        std::future::ready(self(change, request))
    }
}

/// A [`Validator`] as the handler of a validating webhook. Connections are allowed without asking it.
pub struct Validating<T, V> {
    validator: V,
    of: PhantomData<fn(T)>,
}

impl<T, V: Validator<T>> Validating<T, V> {
    /// With this validator.
    pub fn new(validator: V) -> Self {
        Self { validator, of: PhantomData }
    }
}

impl<T, V> Validating<T, V>
where
    T: DeserializeOwned + Send + Sync + 'static,
    V: Validator<T>,
{
    async fn decide(&self, request: &AdmissionRequest) -> Result<AdmissionResponse, Rejection> {
        let warnings = match request.operation {
            Operation::Create => {
                let new: T = request.object_as()?;
                self.validator.validate(Change::Create { new: &new }, request).await?
            }
            Operation::Update => {
                let (old, new): (T, T) = (request.old_object_as()?, request.object_as()?);
                self.validator.validate(Change::Update { old: &old, new: &new }, request).await?
            }
            Operation::Delete => {
                let old: T = request.old_object_as()?;
                self.validator.validate(Change::Delete { old: &old }, request).await?
            }
            Operation::Connect => Warnings::new(),
        };
        Ok(AdmissionResponse::allowed().warnings(warnings))
    }
}

impl<T, V> AdmissionHandler for Validating<T, V>
where
    T: DeserializeOwned + Send + Sync + 'static,
    V: Validator<T>,
{
    async fn handle(&self, request: AdmissionRequest) -> AdmissionResponse {
        self.decide(&request).await.into()
    }
}

/// Where controller-runtime serves the validator of a type: `/validate-apps-v1-deployment`, and `/validate--v1-pod` in the core
/// group.
pub fn validate_path<T: Resource<DynamicType = ()>>() -> String {
    path::<T>("validate")
}
