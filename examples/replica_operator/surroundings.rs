//! Those who are not the operator: a user, somebody who deletes pods, and, in the embedded server, a kubelet.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Error};
use serde_json::json;
use tokio::time::sleep;

use crate::NAMESPACE;
use crate::web_set::WebSet;

/// Wants a shop and a cart, then a bigger shop and no cart.
pub(crate) async fn user(client: Client) -> anyhow::Result<()> {
    let sets: Api<WebSet> = Api::namespaced(client, NAMESPACE);
    for set in [WebSet::new("shop", 3), WebSet::new("cart", 2)] {
        match sets.create(&PostParams::default(), &set).await {
            // An earlier run has left it.
            Err(Error::Api(status)) if status.code == 409 => {}
            created => drop(created?),
        }
    }
    sleep(Duration::from_secs(3)).await;
    println!("the user wants 5 pods in the shop, and no cart");
    sets.patch("shop", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 5}}))).await?;
    sets.delete("cart", &DeleteParams::default()).await?;
    Ok(())
}

/// Deletes pods of the shop behind the operator's back, one a second.
pub(crate) async fn saboteur(client: Client, deletions: u32) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    for number in 0..deletions {
        sleep(Duration::from_secs(1)).await;
        let name = format!("shop-{}", number % 3);
        match pods.delete(&name, &DeleteParams::default().grace_period(0)).await {
            Ok(_) => println!("somebody deletes the pod {name}"),
            Err(error) => println!("somebody cannot delete the pod {name}: {error}"),
        }
    }
    Ok(())
}

/// Makes pods ready.
pub(crate) async fn kubelet(client: Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    loop {
        sleep(Duration::from_millis(200)).await;
        for pod in pods.list(&ListParams::default()).await? {
            let is_new = pod.status.as_ref().is_none_or(|status| status.phase.as_deref() != Some("Running"));
            if let (true, Some(name)) = (is_new, &pod.metadata.name) {
                // One that has gone in the meantime needs nothing.
                let _ = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&ready)).await;
            }
        }
    }
}
