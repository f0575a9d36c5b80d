//! What is done for a web set: as many pods as it wants, its status, and none of them left when it goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error, Resource};
use kubewire_controller::{
    Cached, ListQuery, MergeFrom, Outcome, Request, add_finalizer, patch_status, remove_finalizer,
    set_controller_reference,
};
use kubewire_events::{Event, Recorder};
use kubewire_indexer::{IndexFunc, Meta};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;

use crate::web_set::{WebSet, WebSetStatus};

const FINALIZER: &str = "example.com/pods";
/// Pods by the uid of their controller.
const OWNER: &str = "owner";

#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) client: Client,
    pub(crate) sets: Cached<Arc<WebSet>>,
    pub(crate) pods: Cached<Arc<Pod>>,
    pub(crate) recorder: Recorder,
    pub(crate) made: Counter,
    /// How long it thinks before it looks.
    pub(crate) think: Option<Duration>,
}

/// The index that [`Operator`] reads.
pub(crate) fn index_owners(pods: &Cached<Arc<Pod>>) -> anyhow::Result<()> {
    Ok(pods.add_index(OWNER, IndexFunc::maybe(|pod: &Arc<Pod>| owner(pod)))?)
}

fn owner(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    Some(owners.find(|owner| owner.controller == Some(true))?.uid.as_str())
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
        let uid = set.metadata.uid.clone().unwrap_or_default();
        let query = ListQuery::all().namespace(request.namespace()).by_index(OWNER, uid);
        let pods: BTreeMap<_, _> = self
            .pods
            .list(&query)?
            .into_iter()
            .map(|pod| (pod.metadata.name.clone().unwrap_or_default(), pod))
            .collect();
        if set.is_being_deleted() {
            return self.finalize(request, &set, &pods).await;
        }
        let sets: Api<WebSet> = Api::namespaced(self.client.clone(), request.namespace());
        self.write(&sets, &set, |set| add_finalizer(set, FINALIZER)).await?;
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
            match api.create(&PostParams::default(), &pod_of(set, name)?).await {
                Ok(_) => {}
                // It is there already, and its event is on the way.
                Err(Error::Api(status)) if status.code == 409 => continue,
                Err(error) => return Err(error.into()),
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
            self.write(&sets, set, |set| remove_finalizer(set, FINALIZER)).await?;
        }
        // What is left brings it back when it goes.
        Ok(Outcome::Done)
    }

    async fn delete(&self, api: &Api<Pod>, name: &str) -> anyhow::Result<()> {
        match api.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }

    /// Writes what the function changes of the set, if it says so, unless somebody else has written since.
    async fn write(
        &self,
        sets: &Api<WebSet>,
        set: &WebSet,
        change: impl FnOnce(&mut WebSet) -> bool,
    ) -> anyhow::Result<()> {
        let mut after = set.clone();
        if change(&mut after)
            && let Some(patch) = MergeFrom::new(set)?.optimistic_lock().patch(&after)?
        {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            sets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
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
