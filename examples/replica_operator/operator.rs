//! What is done for a web set: as many pods as it wants, its status, and none of them left when it goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{DeleteParams, PostParams};
use kube_client::{Api, Client, Resource};
use kubewire_controller::{
    Cached, ListQuery, Outcome, Request, ensure_finalizer, ignore_already_exists, ignore_not_found, patch_status,
    release_finalizer, set_controller_reference,
};
use kubewire_events::{Event, Recorder};
use kubewire_indexer::Meta;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;

use crate::web_set::{WebSet, WebSetStatus};

const FINALIZER: &str = "example.com/pods";

#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) client: Client,
    pub(crate) sets: Cached<Arc<WebSet>>,
    /// Indexed by owner.
    pub(crate) pods: Cached<Arc<Pod>>,
    pub(crate) recorder: Recorder,
    pub(crate) made: Counter,
    /// How long it thinks before it looks.
    pub(crate) think: Option<Duration>,
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

impl Operator {
    pub(crate) async fn reconcile(&self, request: &Request) -> anyhow::Result<Outcome> {
        if let Some(time) = self.think {
            tokio::time::sleep(time).await;
        }
        let Some(set) = self.sets.get(request.namespace(), request.name())? else {
            println!("{request} is gone");
            return Ok(Outcome::Done);
        };
        let pods: BTreeMap<_, _> = self
            .pods
            .list(&ListQuery::all().owned_by(&*set))?
            .into_iter()
            .map(|pod| (pod.metadata.name.clone().unwrap_or_default(), pod))
            .collect();
        if set.is_being_deleted() {
            return self.finalize(request, &set, &pods).await;
        }
        let sets: Api<WebSet> = Api::namespaced(self.client.clone(), request.namespace());
        ensure_finalizer(&sets, &*set, FINALIZER).await?;
        self.scale(request, &set, &pods).await?;

        let status = WebSetStatus {
            observed_generation: set.metadata.generation,
            replicas: pods.values().filter(|pod| !pod.is_being_deleted()).count() as u32,
            ready_replicas: pods.values().filter(|pod| !pod.is_being_deleted() && is_ready(pod)).count() as u32,
        };
        if set.status.as_ref() != Some(&status) {
            if set.status.as_ref().is_none_or(|before| before.ready_replicas != status.ready_replicas) {
                println!("{request}: {} of {} pods are ready", status.ready_replicas, set.spec.replicas);
            }
            patch_status(&sets, &*set, &status).await?;
        }
        Ok(Outcome::Done)
    }

    /// Pods have numbers: a cache that is behind makes a pod be asked for twice, but never one too many.
    async fn scale(&self, request: &Request, set: &WebSet, pods: &BTreeMap<String, Arc<Pod>>) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), request.namespace());
        let wanted: Vec<_> = (0..set.spec.replicas).map(|number| format!("{}-{number}", request.name())).collect();
        for name in wanted.iter().filter(|name| !pods.contains_key(*name)) {
            let created = api.create(&PostParams::default(), &pod_of(set, name)?).await;
            if ignore_already_exists(created)?.is_none() {
                continue; // Its event is on the way.
            }
            println!("{request}: made the pod {name}");
            self.made.inc();
            self.tell(set, "PodCreated", &format!("made the pod {name}"));
        }
        for name in pods.keys().filter(|name| !wanted.contains(name)) {
            self.delete(&api, name).await?;
            println!("{request}: deleted the pod {name}, which is one too many");
            self.tell(set, "PodDeleted", &format!("deleted the pod {name}"));
        }
        Ok(())
    }

    /// The pods go first, then the finalizer.
    async fn finalize(
        &self,
        request: &Request,
        set: &WebSet,
        pods: &BTreeMap<String, Arc<Pod>>,
    ) -> anyhow::Result<Outcome> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), request.namespace());
        for (name, _) in pods.iter().filter(|(_, pod)| !pod.is_being_deleted()) {
            self.delete(&api, name).await?;
        }
        if pods.is_empty() {
            println!("{request}: all of its pods are gone, so may it");
            self.tell(set, "Finalized", "all of its pods are gone");
            let sets: Api<WebSet> = Api::namespaced(self.client.clone(), request.namespace());
            release_finalizer(&sets, set, FINALIZER).await?;
        }
        // What is left brings it back when it goes.
        Ok(Outcome::Done)
    }

    async fn delete(&self, api: &Api<Pod>, name: &str) -> anyhow::Result<()> {
        ignore_not_found(api.delete(name, &DeleteParams::default()).await)?;
        Ok(())
    }

    fn tell(&self, set: &WebSet, reason: &str, note: &str) {
        self.recorder.record(&set.object_ref(&()), Event::normal(reason, "Reconcile", note));
    }
}

fn pod_of(set: &WebSet, name: &str) -> anyhow::Result<Pod> {
    let mut pod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": set.metadata.namespace},
        "spec": {"containers": [{"name": "main", "image": set.spec.image}], "terminationGracePeriodSeconds": 1},
    }))?;
    set_controller_reference(set, &mut pod)?;
    Ok(pod)
}
