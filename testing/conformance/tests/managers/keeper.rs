//! The reconciler of the runs: it notes in each config which state of it was seen, and lets those go that are to be deleted.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::PostParams;
use kube_client::{Api, Client, ResourceExt};
use kubewire_apiserver::ApiServer;
use kubewire_controller::{BoxError, Cached, Outcome, Request, remove_finalizer};
use kubewire_leaderelection::Leadership;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::ledger::{Ledger, Run};

pub(crate) const NAMESPACE: &str = "work";
const FINALIZER: &str = "example.com/kept";
const NAMES: u64 = 8;

#[derive(Clone)]
pub(crate) struct Keeper {
    pub(crate) run: Run,
    pub(crate) client: Client,
    pub(crate) configs: Cached<Arc<ConfigMap>>,
    pub(crate) leadership: Leadership,
    pub(crate) ledger: Ledger,
    pub(crate) dice: Arc<Mutex<Dice>>,
}

impl Keeper {
    pub(crate) async fn reconcile(self, request: Request) -> Result<Outcome, BoxError> {
        let mut attempt = self.ledger.begin(&self.run, &self.leadership, &request.to_string());
        let term = attempt.term();
        tokio::select! {
            biased;
            outcome = self.keep(&request, term) => outcome,
            never = attempt.stay_within_term() => match never {},
        }
    }

    async fn keep(&self, request: &Request, term: Option<i32>) -> Result<Outcome, BoxError> {
        let Some(config) = self.configs.get(request.namespace(), request.name())? else { return Ok(Outcome::Done) };
        let (takes, luck) = {
            let mut dice = self.dice.lock();
            let longest = if dice.chance(0.1) { 20_000 } else { 300 };
            (dice.up_to(Duration::from_millis(longest)), dice.below(20))
        };
        tokio::time::sleep(takes).await;
        match luck {
            0 => return Err("as the dice say".into()),
            // Without the hook's message.
            1 => std::panic::resume_unwind(Box::new("as the dice say")),
            2 => return Ok(Outcome::Requeue),
            3 => return Ok(Outcome::RequeueAfter(Duration::from_secs(7))),
            _ => {}
        }
        let mut changed = ConfigMap::clone(&config);
        let data = changed.data.get_or_insert_default();
        let is_going = config.metadata.deletion_timestamp.is_some();
        if !is_going && data.get("seen") == data.get("want") {
            return Ok(Outcome::Done);
        }
        let want = data.get("want").cloned().unwrap_or_default();
        data.extend([("seen".to_owned(), want), ("term".to_owned(), term.unwrap_or(-1).to_string())]);
        if is_going {
            remove_finalizer(&mut changed, FINALIZER);
        }
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        // Of the version that was read: who writes late, and has missed something, changes nothing.
        api.replace(&config.name_any(), &PostParams::default(), &changed).await?;
        Ok(Outcome::Done)
    }
}

/// Makes, changes or deletes a config, as the server's own hand.
pub(crate) fn write(server: &ApiServer, dice: &mut Dice, number: u64) {
    let name = format!("it-{}", dice.below(NAMES));
    let want = |object: &mut Value| object["data"]["want"] = json!(number.to_string());
    // What is lost to somebody who writes between is no loss.
    let _ = match server.get("configmaps", NAMESPACE, &name) {
        None => {
            let meta = json!({"namespace": NAMESPACE, "name": name, "finalizers": [FINALIZER]});
            server.create("configmaps", json!({"metadata": meta, "data": {"want": number.to_string()}}))
        }
        Some(_) if dice.chance(0.2) => server.delete("configmaps", NAMESPACE, &name),
        Some(_) => server.modify("configmaps", NAMESPACE, &name, want),
    };
}

/// The configs of which the last state was not seen, or that nobody lets go.
pub(crate) fn undone(server: &ApiServer) -> Vec<Value> {
    let is_undone = |object: &Value| {
        object["metadata"]["namespace"] == NAMESPACE
            && (object["data"]["seen"] != object["data"]["want"] || !object["metadata"]["deletionTimestamp"].is_null())
    };
    server.list("configmaps").into_iter().filter(is_undone).collect()
}

/// The term that each config was written in last, with its uid.
pub(crate) fn terms(server: &ApiServer) -> Vec<(String, i32)> {
    let term = |object: &Value| {
        let term = object["data"]["term"].as_str()?.parse().ok()?;
        Some((object["metadata"]["uid"].as_str()?.to_owned(), term))
    };
    server.list("configmaps").iter().filter_map(term).collect()
}
