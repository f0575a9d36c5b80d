//! The lock that is a Lease.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_client::api::PostParams;
use kube_client::{Api, Client, Error};
use parking_lot::Mutex;

use crate::{Lock, LockError, LockReference, Record, Versioned};

/// A Lease of `coordination.k8s.io/v1`; the rights to `get`, `create` and `update` it are needed.
///
/// The rest of the object (labels, annotations, owners) is left as it is. Labels can be [given](Self::labels) to it.
///
/// Cost: one request a call, without a retry; one lease is kept.
pub struct LeaseLock {
    api: Api<Lease>,
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    /// What was read or written last: an update keeps what is around the record.
    seen: Mutex<Option<Lease>>,
}

impl LeaseLock {
    /// The lease of this name. Neither is looked for yet.
    ///
    /// The client's own retries (`Config::default_retry`) do no harm, but a client without them is better: the election
    /// tries again by itself.
    pub fn new(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        let api = Api::namespaced(client, &namespace);
        Self { api, namespace, name, labels: BTreeMap::new(), seen: Mutex::default() }
    }

    /// Gives the lease these labels with each write, beside those that it has.
    #[must_use = "the lock without the labels is gone"]
    pub fn labels<K: Into<String>, V: Into<String>>(mut self, labels: impl IntoIterator<Item = (K, V)>) -> Self {
        self.labels.extend(labels.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    fn keep(&self, lease: Lease) -> Versioned {
        let seen = versioned(&lease);
        let before = self.seen.lock().replace(lease);
        drop(before);
        seen
    }

    fn labelled(&self, mut metadata: ObjectMeta) -> ObjectMeta {
        if !self.labels.is_empty() {
            metadata.labels.get_or_insert_default().extend(self.labels.clone());
        }
        metadata
    }

    async fn read(&self) -> Result<Option<Versioned>, LockError> {
        let lease = self.api.get_opt(&self.name).await.map_err(lock_error)?;
        Ok(lease.map(|lease| self.keep(lease)))
    }

    async fn make(&self, record: Record) -> Result<Versioned, LockError> {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata: self.labelled(metadata), spec: Some(written(record, LeaseSpec::default())) };
        let made = self.api.create(&PostParams::default(), &lease).await.map_err(lock_error)?;
        Ok(self.keep(made))
    }

    async fn replace(&self, replaced: Versioned) -> Result<Versioned, LockError> {
        let seen = self.seen.lock().clone();
        let version = Some(&replaced.version);
        let mut lease =
            seen.filter(|lease| lease.metadata.resource_version.as_ref() == version).ok_or(LockError::NotRead)?;
        lease.metadata = self.labelled(lease.metadata);
        lease.spec = Some(written(replaced.record, lease.spec.unwrap_or_default()));
        let put = self.api.replace(&self.name, &PostParams::default(), &lease).await.map_err(lock_error)?;
        Ok(self.keep(put))
    }
}

impl Lock for LeaseLock {
    fn get(&self) -> BoxFuture<'_, Result<Option<Versioned>, LockError>> {
        self.read().boxed()
    }

    fn create(&self, record: Record) -> BoxFuture<'_, Result<Versioned, LockError>> {
        self.make(record).boxed()
    }

    fn update(&self, replaced: Versioned) -> BoxFuture<'_, Result<Versioned, LockError>> {
        self.replace(replaced).boxed()
    }

    fn reference(&self) -> LockReference {
        LockReference {
            api_version: "coordination.k8s.io/v1".to_owned(),
            kind: "Lease".to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl std::fmt::Debug for LeaseLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseLock").field("lease", &self.reference().to_string()).finish_non_exhaustive()
    }
}

fn lock_error(error: Error) -> LockError {
    match &error {
        Error::Api(status) if status.code == 409 => LockError::Conflict,
        Error::Api(status) if status.code == 404 => LockError::NotFound,
        _ => LockError::Request(error.into()),
    }
}

/// What a lease says, and its version.
fn versioned(lease: &Lease) -> Versioned {
    let record = lease.spec.as_ref().map(|spec| Record {
        holder: spec.holder_identity.clone().unwrap_or_default(),
        lease_duration_seconds: spec.lease_duration_seconds.unwrap_or(0),
        acquire_time: spec.acquire_time.as_ref().map(|time| time.0),
        renew_time: spec.renew_time.as_ref().map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or(0),
        preferred_holder: spec.preferred_holder.clone().unwrap_or_default(),
    });
    let version = lease.metadata.resource_version.clone().unwrap_or_default();
    Versioned { record: record.unwrap_or_default(), version }
}

/// The spec that says it; what the record knows nothing of stays.
fn written(record: Record, before: LeaseSpec) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(record.holder),
        lease_duration_seconds: Some(record.lease_duration_seconds),
        acquire_time: record.acquire_time.map(MicroTime),
        renew_time: record.renew_time.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..before
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    #[test]
    fn a_record_comes_back_from_the_lease_as_it_was_written() {
        let time = Timestamp::from_microsecond(1_700_000_000_123_456).ok();
        let record = Record {
            holder: "a".into(),
            lease_duration_seconds: 15,
            acquire_time: time,
            renew_time: time,
            transitions: 3,
            preferred_holder: "b".into(),
        };
        let before =
            LeaseSpec { preferred_holder: Some("b".into()), strategy: Some("s".into()), ..LeaseSpec::default() };
        let lease = Lease { spec: Some(written(record.clone(), before)), ..Lease::default() };
        let text = serde_json::to_string(&lease).unwrap();
        assert!(text.contains("\"renewTime\":\"2023-11-14T22:13:20.123456Z\""), "{text}");
        let read: Lease = serde_json::from_str(&text).unwrap();
        assert_eq!(versioned(&read).record, record);
        assert_eq!(read.spec.unwrap().strategy.as_deref(), Some("s"));
        assert_eq!(versioned(&Lease::default()).record, Record::default(), "a lease without a record");
    }
}
